"""Starts the servers, drives them with the real clients, and counts what passed."""

import json
import os
import pathlib
import subprocess
import sys
import time
import traceback

from harness import CHECKS, Servers

import with_anthropic  # noqa: F401  (its checks register themselves)
import with_openai  # noqa: F401

FOLDER = pathlib.Path(__file__).resolve().parent


def serve(causeway, *flags):
    """A server on a free port, and its address."""
    command = [causeway, "serve", "--addr", "127.0.0.1:0", "--json", "--no-ledger"]
    command += ["--log-level", "off"]
    server = subprocess.Popen(
        [*command, "--drain-ms", "500", *flags], stdout=subprocess.PIPE, text=True
    )
    line = server.stdout.readline()
    if not line:
        sys.exit(f"the server with {' '.join(flags)} did not start")
    return server, f"http://{json.loads(line)['addr']}"


def run_python(servers):
    """Every check of the Python clients."""
    passed = failed = 0
    for check in CHECKS:
        try:
            check(servers)
            passed += 1
        except Exception:
            failed += 1
            print(f"FAILED {check.__module__}.{check.__name__}")
            traceback.print_exc(limit=4, file=sys.stdout)
    return passed, failed


def run_node(servers):
    """Every check of the JavaScript client, in a process of its own."""
    environment = {**os.environ, "SCRIPTED": servers.scripted, "MODEL": servers.model}
    command = ["node", str(FOLDER / "with_openai.mjs")]
    node = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    lines = node.stdout.strip().splitlines()
    for line in lines[:-1]:
        print(line)
    try:
        counts = json.loads(lines[-1])
    except (IndexError, ValueError):
        print("FAILED with_openai.mjs ended without a count:", node.stdout)
        return 0, 1
    return counts["passed"], counts["failed"]


def main():
    causeway = sys.argv[1]
    began = time.monotonic()
    running = []
    try:
        script = str(FOLDER / "script.json")
        scripted, scripted_url = serve(causeway, "--scripted", script)
        running.append(scripted)
        model, model_url = serve(causeway, "--model", "smollm2:135m", "--context", "1024")
        running.append(model)
        servers = Servers(scripted_url, model_url)
        passed, failed = run_python(servers)
        node_passed, node_failed = run_node(servers)
    finally:
        for server in running:
            server.terminate()
        for server in running:
            server.wait(timeout=10)
    passed, failed = passed + node_passed, failed + node_failed
    print(f"clients: {time.monotonic() - began:.0f} s")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
