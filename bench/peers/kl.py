#!/usr/bin/env python3
"""Measures how far causeway's and llama.cpp's distributions are from float32 references.

Both engines read the same token ids from the same files and give their logits at the same
positions, those of `testdata/logits/MODEL.logits.json`: 2 threads, keys and values in f16. The
figure is the mean, in nats, of KL(reference || engine) over the positions, of the reference's 64
best tokens and of all others taken as one, as `crates/model/tests/real.rs` computes it.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess

# Name, file in the home, fixture.
MODELS = (
    ("smollm2:135m", "smollm2-135m.gguf", "smollm2"),
    ("qwen2.5-coder:0.5b", "qwen2.5-coder-0.5b.gguf", "qwen2.5-coder-0.5b"),
    ("gemma3:270m", "gemma3-270m.gguf", "gemma3-270m"),
)
FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "testdata" / "logits"
ENGINES = ("causeway", "llama.cpp")


def lines(command, text=None):
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, input=text)
    return {row["position"]: row for row in map(json.loads, run.stdout.splitlines())}


def causeway(args, file, ids, positions, wanted):
    def joined(numbers):
        return ",".join(map(str, numbers))

    return lines([args.causeway, "logits", "-m", file, "--threads", str(args.threads),
                  "--kv-type", "f16", "--ids", joined(ids), "--at", joined(wanted),
                  "--last", str(len(ids) - positions[0]), "--json"])


def llama_cpp(args, file, ids, positions, wanted):
    numbers = ([args.threads], ids, positions, wanted)
    text = "".join(" ".join(map(str, line)) + "\n" for line in numbers)
    return lines([f"{args.llama_cpp}/llama-logits", file], text)


def divergence(reference, row):
    """KL of the reference's 64 best tokens, and of what is left as one, to the engine's."""
    logits = dict(row["at"])
    p_left, q_left, total = 1.0, 1.0, 0.0
    for token, logit in zip(reference["top_ids"], reference["top_logits"]):
        log_p = logit - reference["logsumexp"]
        log_q = logits[token] - row["logsumexp"]
        total += math.exp(log_p) * (log_p - log_q)
        p_left -= math.exp(log_p)
        q_left -= math.exp(log_q)
    if p_left > 1e-12:
        total += p_left * math.log(p_left / max(q_left, 1e-12))
    return total


def measure(args, engine, file, prompts):
    """The divergence at every position of every prompt."""
    found = []
    for prompt in prompts:
        references = sorted(prompt["positions"], key=lambda reference: reference["pos"])
        positions = [reference["pos"] for reference in references]
        wanted = sorted({token for reference in references for token in reference["top_ids"]})
        rows = engine(args, file, prompt["ids"], positions, wanted)
        found += [divergence(reference, rows[reference["pos"]]) for reference in references]
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--causeway", required=True, help="the release binary")
    parser.add_argument("--llama-cpp", required=True, help="the folder that llama_cpp.sh prints")
    parser.add_argument("--home", default=os.environ.get("CAUSEWAY_HOME"),
                        help="where `causeway pull` leaves models [default: $CAUSEWAY_HOME]")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if args.home is None:
        parser.error("neither --home nor $CAUSEWAY_HOME is given")
    print(f"{'mean KL in nats':<22}" + "".join(f"{name:>12}" for name in ENGINES)
          + f"{'worst':>12}{'worst':>12}{'positions':>11}")
    for name, file, fixture in MODELS:
        path = os.path.join(args.home, "models", file)
        if not os.path.isfile(path):
            parser.error(f"{path} is missing: run `causeway pull {name}`")
        prompts = json.loads((FIXTURES / f"{fixture}.logits.json").read_text())["prompts"]
        both = [measure(args, engine, path, prompts) for engine in (causeway, llama_cpp)]
        means = "".join(f"{sum(found) / len(found):>12.6f}" for found in both)
        worst = "".join(f"{max(found):>12.6f}" for found in both)
        print(f"{name:<22}{means}{worst}{len(both[0]):>11}", flush=True)


if __name__ == "__main__":
    main()
