#!/usr/bin/env python3
"""Runs causeway and mistral.rs in turn on the same file and prints the ratios, pair by pair.

mistral.rs comes from the wheel `mistralrs`, which must be installed for the Python that runs this.
It has no benchmark of a forward pass: each run answers one prompt of `--prompt` tokens or more
with `--new` tokens, greedily, and its own usage figures give the tokens a second of either part.
Causeway's are those of `causeway bench speed`. Its model is opened once; its prefix cache is off.
"""

import argparse
import json
import os
import statistics
import subprocess


def causeway(args):
    line = subprocess.run(
        [args.causeway, "bench", "speed", "-m", args.file, "--threads", str(args.threads),
         "-p", str(args.prompt), "-n", str(args.new), "-r", "1", "--json"],
        check=True, capture_output=True, text=True).stdout
    run = json.loads(line)
    return run["prefill_tokens_per_s"], run["decode_tokens_per_s"]


def open_mistral(args):
    # Read when the library starts.
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    os.environ["RUST_LOG"] = "error"
    from mistralrs import Runner, Which
    folder, name = os.path.split(os.path.abspath(args.file))
    return Runner(
        which=Which.GGUF(quantized_model_id=folder, quantized_filename=name),
        no_kv_cache=False, prefix_cache_n=0, max_seqs=1)


def mistral(args, runner, turn):
    from mistralrs import CompletionRequest
    # A word is a token or more; another first word each time, so that nothing can be kept.
    prompt = f"{turn} " + "the sea was calm and " * (args.prompt // 5)
    response = runner.send_completion_request(CompletionRequest(
        model="default", prompt=prompt, max_tokens=args.new, temperature=0.0))
    usage = response.usage
    return usage.avg_prompt_tok_per_sec, usage.avg_compl_tok_per_sec


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--causeway", required=True, help="the release binary")
    parser.add_argument("--file", required=True, help="a .gguf file")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=128)
    args = parser.parse_args()
    runner = open_mistral(args)
    mistral(args, runner, "first")
    pairs = [(causeway(args), mistral(args, runner, turn)) for turn in range(args.pairs)]
    print(f"{'':<14}{'causeway':>10}{'mistral.rs':>11}{'ratio':>8}   ratio of each pair")
    for index, name in enumerate((f"prefill {args.prompt}", f"decode {args.new}")):
        ours = statistics.median(pair[0][index] for pair in pairs)
        theirs = statistics.median(pair[1][index] for pair in pairs)
        ratios = [pair[0][index] / pair[1][index] for pair in pairs]
        each = " ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{name:<14}{ours:>10.1f}{theirs:>11.1f}{statistics.median(ratios):>8.2f}   {each}")


if __name__ == "__main__":
    main()
