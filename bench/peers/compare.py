#!/usr/bin/env python3
"""Runs causeway and llama.cpp in turn on the same file and prints every row of the comparison.

Each pair is one run of either side, A B A B and so on: a machine whose speed drifts takes both
along. Figures are tokens a second; a ratio is causeway's over llama.cpp's. The parts:

  speed   prefill, decode after none, streams together
  depth   decode after a long context
  q4_0    causeway on the file against llama.cpp on its own Q4_0 of it: prefill, decode
  spin    decode beside a process that spins on core 1, as a share of the same engine's without
  limits  causeway's shares of the read bandwidth and of the int8 peak, measured in the same run
  memory  causeway's load time and resident memory, once it has answered
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys

PARTS = ("speed", "depth", "q4_0", "spin", "limits", "memory")
MIB = 1 << 20


def output(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def causeway(args, *flags):
    """One counted run of `causeway bench speed`, after one that is not."""
    return json.loads(output(
        [args.causeway, "bench", "speed", "-m", args.file, "--threads", str(args.threads),
         "-r", "1", "--json", *map(str, flags)]))


def llama_bench(args, file, *flags):
    """llama-bench's tests as pairs: whether it decoded, tokens a second."""
    runs = json.loads(output(
        [f"{args.llama_cpp}/llama-bench", "-m", file, "-t", str(args.threads), "-r", "1",
         "-o", "json", *map(str, flags)]))
    return {run["n_gen"] > 0: run["avg_ts"] for run in runs}


def llama_batched(args):
    lines = output(
        [f"{args.llama_cpp}/llama-batched-bench", "-m", args.file, "-t", str(args.threads),
         "-c", str(args.streams * (128 + args.new) + 256), "-npp", "128",
         "-ntg", str(args.new), "-npl", str(args.streams), "--output-format", "jsonl"])
    return next(json.loads(line) for line in lines.splitlines() if line.startswith("{"))


@contextlib.contextmanager
def spinning(core):
    """A process that does nothing, all the time, on one core."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(process.pid, {core})
        yield
    finally:
        process.kill()
        process.wait()


def speed(args):
    def ours():
        run = causeway(args, "-p", args.prompt, "-n", args.new, "-b", args.streams,
                       "--batch-prompt", 128)
        return (run["prefill_tokens_per_s"], run["decode_tokens_per_s"],
                run["batches"][0]["tokens_per_s"])

    def theirs():
        runs = llama_bench(args, args.file, "-p", args.prompt, "-n", args.new)
        return runs[False], runs[True], llama_batched(args)["speed_tg"]

    names = (f"prefill {args.prompt}", f"decode {args.new}", f"{args.streams} streams")
    in_pairs(args, names, ours, theirs)


def depth(args):
    def ours():
        run = causeway(args, "-p", 1, "-n", args.new, "--depth", args.depth)
        return (run["decode_tokens_per_s"],)

    def theirs():
        return (llama_bench(args, args.file, "-p", 0, "-n", args.new, "-d", args.depth)[True],)

    in_pairs(args, (f"decode at {args.depth}",), ours, theirs)


def q4_0(args):
    file = args.q4_0 or f"{os.path.splitext(args.file)[0]}-q4_0.gguf"
    if not os.path.exists(file):
        output([f"{args.llama_cpp}/llama-quantize", "--allow-requantize", args.file, file, "Q4_0"])

    def ours():
        run = causeway(args, "-p", args.prompt, "-n", args.new)
        return run["prefill_tokens_per_s"], run["decode_tokens_per_s"]

    def theirs():
        runs = llama_bench(args, file, "-p", args.prompt, "-n", args.new)
        return runs[False], runs[True]

    names = (f"prefill {args.prompt}, its Q4_0", f"decode {args.new}, its Q4_0")
    in_pairs(args, names, ours, theirs)


def spin(args):
    def ours():
        return causeway(args, "-p", 1, "-n", args.new)["decode_tokens_per_s"]

    def theirs():
        return llama_bench(args, args.file, "-p", 0, "-n", 32)[True]

    for name, run in (("causeway", ours), ("llama.cpp", theirs)):
        shares = []
        for _ in range(args.pairs):
            idle = run()
            with spinning(1):
                shares.append(run() / idle)
        each = " ".join(f"{share:.2f}" for share in shares)
        print(f"{name} beside a spinning process: {statistics.median(shares):.0%} of its own "
              f"idle decode   {each}")


def limits(args):
    speed = [causeway(args, "-p", args.prompt, "-n", args.new) for _ in range(args.pairs)]
    kernels = [
        json.loads(output([args.causeway, "bench", "kernels", "-m", args.file, "--threads",
                           str(args.threads), "--rows", f"1,{args.prompt}", "--json"]))
        for _ in range(args.pairs)]

    def show(name, figures, form):
        each = " ".join(form.format(figure) for figure in figures)
        print(f"{name:<40}{form.format(statistics.median(figures)):>8}   {each}", flush=True)

    for key, name, form in (("read_gb_per_s", "read, GB/s", "{:.1f}"),
                            ("int8_gop_per_s", "int8, Gop/s", "{:.0f}"),
                            ("step_ns", "empty step of all threads, ns", "{:.0f}")):
        show(name, [run["limits"][key] for run in speed], form)
    show("decode, of the read bandwidth", [run["decode_read_share"] for run in speed], "{:.0%}")
    show("prefill, of the int8 peak", [run["prefill_int8_share"] for run in speed], "{:.0%}")
    # The first total is of one row, the last of a prompt.
    shares = [run["totals"][-1]["int8_share"] for run in kernels]
    show("products of a prefill, of the int8 peak", shares, "{:.0%}")


def memory(args):
    run = causeway(args, "-p", args.prompt, "-n", args.new)
    taken = run["memory"]
    allowed = taken["file_bytes"] + taken["kv_bytes"] + 80 * MIB
    print(f"loaded after {run['load_ms']:.0f} ms of the process; resident "
          f"{taken['resident_bytes'] / MIB:.0f} MiB, at most {taken['peak_bytes'] / MIB:.0f} MiB; "
          f"file, KV and 80 MiB are {allowed / MIB:.0f} MiB")


def in_pairs(args, names, ours, theirs):
    pairs = [(ours(), theirs()) for _ in range(args.pairs)]
    for index, name in enumerate(names):
        left = statistics.median(pair[0][index] for pair in pairs)
        right = statistics.median(pair[1][index] for pair in pairs)
        ratios = [pair[0][index] / pair[1][index] for pair in pairs]
        each = " ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{name:<24}{left:>10.1f}{right:>11.1f}{statistics.median(ratios):>8.2f}   {each}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--causeway", required=True, help="the release binary")
    parser.add_argument("--llama-cpp", required=True, help="the folder that llama_cpp.sh prints")
    parser.add_argument("--file", required=True, help="a .gguf file")
    parser.add_argument("--parts", default=",".join(PARTS), help="which, separated by commas")
    parser.add_argument("--q4-0", help="llama.cpp's Q4_0 of the file, made where it is missing "
                                       "[default: beside the file]")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--depth", type=int, default=4096)
    parser.add_argument("--streams", type=int, default=8)
    args = parser.parse_args()
    parts = args.parts.split(",")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part `{unknown[0]}`: {', '.join(PARTS)} exist")
    print(f"{'':<24}{'causeway':>10}{'llama.cpp':>11}{'ratio':>8}   ratio of each pair")
    for part in PARTS:
        if part in parts:
            globals()[part](args)


if __name__ == "__main__":
    main()
