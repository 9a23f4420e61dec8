#!/usr/bin/env python3
"""`causeway quantize` beside llama-quantize: time, and what is lost.

Both write the same F16 or F32 file to q4_k with `--pure`, in turn, and the time of each pair is
compared. llama-perplexity then computes how far either result is from the source over one text,
the whole vocabulary, at the second half of each window of 512 tokens.
"""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time


def seconds(command):
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - began


def divergence(args, base, file=None):
    """Writes the source's logits to `base`; with a file, its KL from them: lines of the report."""
    command = [f"{args.llama_cpp}/llama-perplexity", "-m", file or args.file, "-f", args.text,
               "-t", str(args.threads), "-c", "512", "--kl-divergence-base", base]
    command += ["--kl-divergence"] if file else []
    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.findall(r"^((?:Mean|Median) +KLD): +(\S+(?: ± +\S+)?)", report, re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--causeway", required=True, help="the release binary")
    parser.add_argument("--llama-cpp", required=True, help="the folder that llama_cpp.sh prints")
    parser.add_argument("--file", required=True, help="an F16 or F32 .gguf file")
    parser.add_argument("--text", required=True, help="what the results read")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = {side: os.path.join(folder, f"{side}.gguf") for side in ("causeway", "llama.cpp")}
        commands = {
            "causeway": [args.causeway, "quantize", args.file, files["causeway"], "--type", "q4_k",
                         "--pure", "--threads", str(args.threads)],
            "llama.cpp": [f"{args.llama_cpp}/llama-quantize", "--pure", args.file,
                          files["llama.cpp"], "Q4_K_M", str(args.threads)],
        }
        times = {side: [] for side in files}
        for index in range(args.pairs):
            for side in list(files)[::1 if index % 2 == 0 else -1]:
                if os.path.exists(files[side]):
                    os.remove(files[side])
                times[side].append(seconds(commands[side]))
        ratios = [a / b for a, b in zip(times["causeway"], times["llama.cpp"])]
        each = " ".join(f"{ratio:.3f}" for ratio in ratios)
        ours, theirs = (statistics.median(times[side]) for side in files)
        print(f"seconds: {ours:.2f} {theirs:.2f} {statistics.median(ratios):.3f}   {each}")
        base = os.path.join(folder, "base.dat")
        divergence(args, base)
        for side, file in files.items():
            for name, value in divergence(args, base, file):
                print(f"{side}: {name} {value}")


if __name__ == "__main__":
    main()
