#!/usr/bin/env bash
# The tests: fetches the models that they read, once, then runs them all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One folder for the fetch and for the tests, whatever the platform's own would be.
export CAUSEWAY_HOME="${CAUSEWAY_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/causeway}"

# Built with the tests, so that nothing is compiled twice; then the models, then the tests.
cargo test --workspace --no-run
"${CARGO_TARGET_DIR:-target}/debug/causeway" pull --all
cargo test --workspace "$@"
