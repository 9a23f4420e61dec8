#!/usr/bin/env bash
# The real clients against the server: `openai` and `anthropic` for Python, `openai` for JavaScript.
# Installs them under the target folder, and prints "N passed, 0 failed" at the end.
# Needs the default model (`causeway pull smollm2:135m`), Python 3 with pip, and node.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CAUSEWAY_HOME="${CAUSEWAY_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/causeway}"
target="${CARGO_TARGET_DIR:-target}"
mkdir -p "$target/clients"
place="$(cd "$target/clients" && pwd)"
causeway="$target/debug/causeway"

# Answers that must be fixed come from a script, which only this build serves.
if ! "$causeway" serve --help 2>/dev/null | grep -q -- --scripted; then
  cargo build -p causeway-cli --features scripted
fi

wanted="$(cat scripts/clients/requirements.txt scripts/clients/package.json)"
if [ "$(cat "$place/installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$place/python" "$place/node"
  python3 -m pip install --quiet --disable-pip-version-check --target "$place/python" \
    -r scripts/clients/requirements.txt
  if ! command -v npm >/dev/null; then
    echo "npm is missing: installing it from the system's packages" >&2
    apt-get install --yes --quiet nodejs npm >/dev/null
  fi
  mkdir -p "$place/node"
  cp scripts/clients/package.json "$place/node/"
  (cd "$place/node" && npm install --silent --no-audit --no-fund --no-package-lock)
  printf '%s' "$wanted" >"$place/installed"
fi

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$place/python" CLIENTS_NODE="$place/node" \
  exec python3 scripts/clients/drive.py "$causeway"
