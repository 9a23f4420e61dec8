#!/usr/bin/env python3
"""Runs causeway and llama.cpp in turn on the same file and prints the ratios, pair by pair.

Each pair is one run of either side, A B A B and so on: a machine whose speed drifts takes both
along. Figures are tokens a second; the ratio is causeway's over llama.cpp's.
"""

import argparse
import json
import statistics
import subprocess


def output(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def causeway(args):
    line = output(
        [args.causeway, "bench", "speed", "-m", args.file, "--threads", str(args.threads),
         "-p", str(args.prompt), "-n", str(args.new), "-b", str(args.streams),
         "--batch-prompt", "128", "-r", "1", "--json"])
    figures = json.loads(line)
    return (figures["prefill_tokens_per_s"], figures["decode_tokens_per_s"],
            figures["batches"][0]["tokens_per_s"])


def llama_cpp(args):
    runs = json.loads(output(
        [f"{args.llama_cpp}/llama-bench", "-m", args.file, "-t", str(args.threads),
         "-p", str(args.prompt), "-n", str(args.new), "-r", "1", "-o", "json"]))
    prefill = next(run["avg_ts"] for run in runs if run["n_gen"] == 0)
    decode = next(run["avg_ts"] for run in runs if run["n_gen"] > 0)
    lines = output(
        [f"{args.llama_cpp}/llama-batched-bench", "-m", args.file, "-t", str(args.threads),
         "-c", str(args.streams * (128 + args.new) + 256), "-npp", "128",
         "-ntg", str(args.new), "-npl", str(args.streams), "--output-format", "jsonl"])
    batch = next(json.loads(line) for line in lines.splitlines() if line.startswith("{"))
    return prefill, decode, batch["speed_tg"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--causeway", required=True, help="the release binary")
    parser.add_argument("--llama-cpp", required=True, help="the folder that llama_cpp.sh prints")
    parser.add_argument("--file", required=True, help="a .gguf file")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--streams", type=int, default=8)
    args = parser.parse_args()
    names = (f"prefill {args.prompt}", f"decode {args.new}", f"{args.streams} streams")
    pairs = [(causeway(args), llama_cpp(args)) for _ in range(args.pairs)]
    print(f"{'':<14}{'causeway':>10}{'llama.cpp':>11}{'ratio':>8}   ratio of each pair")
    for index, name in enumerate(names):
        ours = statistics.median(pair[0][index] for pair in pairs)
        theirs = statistics.median(pair[1][index] for pair in pairs)
        ratios = [pair[0][index] / pair[1][index] for pair in pairs]
        each = " ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{name:<14}{ours:>10.1f}{theirs:>11.1f}{statistics.median(ratios):>8.2f}   {each}")


if __name__ == "__main__":
    main()
