#!/usr/bin/env python3
"""Times answers held to a JSON schema on `causeway serve` and llama-server, in turn.

Both servers run the same model file with the same threads and one slot, and are asked over the
same API with the same messages and schema, greedily. Each pair is one answer of either side; who
goes first alternates. Ratios are causeway's over llama-server's.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import time
import urllib.request

import serve

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SYSTEM = ("You triage support tickets. Answer with one JSON object that has two fields: "
          '"reasoning", a short text that names the facts that decide, and "risk_score", a whole '
          "number from 0 (no risk) to 10 (act now).")
# Long enough for about sixty tokens, so that both sides write as many.
VERDICT = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "minLength": 200, "maxLength": 240},
        "risk_score": {"type": "integer", "minimum": 0, "maximum": 10},
    },
    "required": ["reasoning", "risk_score"],
    "additionalProperties": False,
}
FLAGS = ["is_refund", "is_outage", "is_billing", "is_urgent", "is_angry", "is_legal",
         "is_security", "is_duplicate", "is_spam", "needs_reply", "needs_human", "has_attachment"]
TWELVE = {
    "type": "object",
    "properties": {name: {"type": "boolean"} for name in FLAGS},
    "required": FLAGS,
    "additionalProperties": False,
}
SCHEMAS = {"verdict": VERDICT, "twelve fields": TWELVE}


def ask(url, schema, ticket):
    """One answer: seconds, output tokens, decode passes where the server tells, text."""
    body = {
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ticket}],
        "temperature": 0, "max_tokens": 400,
        "response_format": {"type": "json_schema",
                            "json_schema": {"name": "answer", "schema": schema}},
    }
    request = urllib.request.Request(
        url + "/v1/chat/completions", json.dumps(body).encode(),
        {"Content-Type": "application/json"})
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=300) as reply:
        answer = json.load(reply)
    seconds = time.perf_counter() - began
    text = answer["choices"][0]["message"]["content"]
    json.loads(text)
    return seconds, answer["usage"]["completion_tokens"], answer.get("causeway"), text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--causeway", required=True, help="the release binary")
    parser.add_argument("--llama-cpp", required=True, help="the folder that llama_cpp.sh prints")
    parser.add_argument("--file", required=True, help="a .gguf file")
    parser.add_argument("--ticket", default=os.path.join(ROOT, "examples/ticket/ticket-short.txt"))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.slots, args.context = 1, 2048
    args.causeway_args, args.no_cache_args = "", "--no-prefix-cache"
    args.out = tempfile.mkdtemp(prefix="schema-")
    return args


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with open(args.ticket) as file:
        ticket = file.read().strip()
    with contextlib.ExitStack() as stack:
        urls = {side: stack.enter_context(serve.running(args, side)) for side in serve.SIDES}
        for name, schema in SCHEMAS.items():
            # The first answer of each side compiles the schema and warms it up.
            for url in urls.values():
                ask(url, schema, ticket)
            pairs = []
            for index in range(args.pairs):
                order = list(urls)[::1 if index % 2 == 0 else -1]
                pairs.append({side: ask(urls[side], schema, ticket) for side in order})
            show(name, pairs)


def show(name, pairs):
    ratios = [pair["causeway"][0] / pair["llama-server"][0] for pair in pairs]
    for side in serve.SIDES:
        seconds = statistics.median(pair[side][0] for pair in pairs)
        _, tokens, extension, text = pairs[0][side]
        told = f"{name}: {side} {seconds * 1000:.0f} ms, {tokens} tokens"
        if extension:
            choice = extension["choices"][0]
            decode = choice["passes"]["decode"]
            told += (f", {choice['tokens']['forced']} forced, {decode} decode passes "
                     f"({decode / tokens:.2f} of the tokens)")
        print(told, flush=True)
        print(f"  {text[:160]}")
    each = " ".join(f"{ratio:.3f}" for ratio in ratios)
    print(f"{name}: ratio {statistics.median(ratios):.3f}   {each}", flush=True)


if __name__ == "__main__":
    main()
