#!/usr/bin/env python3
"""Runs `causeway serve` and llama-server in turn under the same load and prints the ratios.

Each pair is one run of either side, A B A B and so on, with servers started anew: the same model
file, slots, threads, load tool, arrival list, sampling fields and forced lengths. The rate of the
open loop is a share of llama-server's own saturation, which is found first. Ratios are causeway's
over llama-server's.
"""

import argparse
import contextlib
import json
import math
import os
import re
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PROMPT_WORDS = (64, 1024)
OUTPUT_TOKENS = (32, 256)
# llama.cpp's own chain, said to both: the defaults of the two differ, one drawing from the whole
# vocabulary and one from the forty best, so that requests that leave it open ask for other work.
SAMPLING = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
START_SECONDS_MAX = 120
# Pairs of runs with and without records that one pair of servers lives through.
PAIRS_OF_A_ROUND = 8


def mean_log_uniform(least, most):
    """The mean of whole numbers from `least` to `most` with density ln((k + 1) / k)."""
    terms = (count * math.log((count + 1) / count) for count in range(least, most + 1))
    return sum(terms) / math.log((most + 1) / least)


def wait_until_ready(url, path, server):
    for _ in range(START_SECONDS_MAX * 10):
        if server.poll() is not None:
            raise SystemExit(f"the server at {url} ended with code {server.returncode}")
        with contextlib.suppress(urllib.error.URLError, OSError):
            if urllib.request.urlopen(url + path, timeout=1).status == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"the server at {url} is not ready after {START_SECONDS_MAX} s")


def causeway_server(args, log, caches):
    extra = args.causeway_args if caches else f"{args.causeway_args} {args.no_cache_args}"
    server = subprocess.Popen(
        [args.causeway, "serve", "-m", args.file, "--addr", "127.0.0.1:0", "--json",
         "--threads", str(args.threads), "--slots", str(args.slots),
         "--context", str(args.context), "--kv-tokens", str(args.slots * args.context),
         *shlex.split(extra)],
        stdout=subprocess.PIPE, stderr=log, text=True)
    address = None
    while address is None:
        line = server.stdout.readline()
        if not line:
            raise SystemExit(f"causeway serve ended with code {server.wait()} (see {log.name})")
        address = re.search(r"127\.0\.0\.1:\d+", line)
    return server, f"http://{address.group()}", "/ready"


def llama_server(args, log, caches):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    without = [] if caches else ["--no-cache-prompt", "--cache-ram", "0"]
    server = subprocess.Popen(
        [f"{args.llama_cpp}/llama-server", "-m", args.file, "--host", "127.0.0.1",
         "--port", str(port), "-np", str(args.slots), "-c", str(args.slots * args.context),
         "-t", str(args.threads), "-tb", str(args.threads), "--no-webui", *without],
        stdout=log, stderr=log)
    return server, f"http://127.0.0.1:{port}", "/health"


SIDES = {"causeway": causeway_server, "llama-server": llama_server}


@contextlib.contextmanager
def running(args, side, caches=False):
    """A server that lives as long as the block; its words go to a file of its own."""
    with open(os.path.join(args.out, f"{side}.log"), "a") as log:
        server, url, path = SIDES[side](args, log, caches)
        try:
            wait_until_ready(url, path, server)
            yield url
        finally:
            server.terminate()
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def load(args, url, side, name, *flags, seed=None):
    """One run of the load tool; its report is kept, and returned."""
    words, tokens = ("..".join(map(str, span)) for span in (PROMPT_WORDS, OUTPUT_TOKENS))
    own = args.llama_body if side == "llama-server" else args.causeway_body
    body = json.dumps({**json.loads(args.body), **json.loads(own)})
    command = [args.load or args.causeway, "load", "--url", url, "--json", "--ignore-eos",
               "--body", body, "--seed", str(args.seed if seed is None else seed)]
    if "--prompt-words" not in flags:
        command += ["--prompt-words", words, "--output-tokens", tokens]
    line = subprocess.run([*command, *flags], check=True, stdout=subprocess.PIPE, text=True).stdout
    with open(os.path.join(args.out, f"{name}.{side}.jsonl"), "a") as kept:
        kept.write(line)
    report = json.loads(line)
    failed = report["requests"]["failed"]
    if failed or report["tokens"]["other_length"]:
        print(f"  {side}: {failed} failed {report['requests']['errors']}, "
              f"{report['tokens']['other_length']} answers of another length")
    return report


def pairs(args, name, run):
    """Runs both sides in turn; returns the reports of each pair."""
    reports = []
    for index in range(args.pairs):
        # Whoever goes first changes from pair to pair.
        order = list(SIDES)[::1 if index % 2 == 0 else -1]
        pair = {}
        for side in order:
            with running(args, side) as url:
                pair[side] = run(url, side, name)
        reports.append(pair)
    return reports


def show(name, reports, figure, unit):
    ours, theirs = ([figure(pair[side]) for pair in reports] for side in SIDES)
    ratios = [a / b for a, b in zip(ours, theirs)]
    each = " ".join(f"{ratio:.3f}" for ratio in ratios)
    print(f"{name:<22}{statistics.median(ours):>11.1f}{statistics.median(theirs):>14.1f} {unit:<9}"
          f"{statistics.median(ratios):>8.3f}   {each}", flush=True)


def saturation(args):
    """Output tokens a second with as many requests at a time as there are slots."""
    reports = pairs(args, "saturation", lambda url, side, name: load(
        args, url, side, name, "--arrivals", f"concurrency:{args.slots}",
        "--duration", f"{args.saturation_seconds}s", "--warmup", f"{args.warmup}s"))
    show(f"saturated, {args.slots} at a time", reports,
         lambda report: report["throughput"]["output_tokens_per_s"], "tokens/s")
    return statistics.median(
        pair["llama-server"]["throughput"]["output_tokens_per_s"] for pair in reports)


def latency(args, rate):
    print(f"open loop at {rate:.3f} requests/s", flush=True)
    reports = pairs(args, "latency", lambda url, side, name: load(
        args, url, side, name, "--arrivals", f"poisson:{rate:.4f}",
        "--duration", f"{args.seconds}s", "--warmup", f"{args.warmup}s"))
    for pair in reports:
        hashes = {report["conditions"]["plan"]["hash"] for report in pair.values()}
        assert len(hashes) == 1, "both sides are asked the same"
    for figure in ("ttft_ms", "itl_ms", "tpot_ms"):
        for percentile in ("p50", "p99"):
            show(f"{figure[:-3].upper()} {percentile}", reports,
                 lambda report: report[figure][percentile], "ms")
    show("output", reports, lambda report: report["throughput"]["output_tokens_per_s"], "tokens/s")
    lag = max(report["lag_ms"]["p99"] for pair in reports for report in pair.values())
    print(f"the load tool's own lag: p99 {lag:.1f} ms at most")


def outcomes(args, url, side, name, *flags, seed=None):
    """One run; the outcome of each request, in the order of the plan."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as kept:
        load(args, url, side, name, "--out", kept.name, *flags, seed=seed)
        return sorted(map(json.loads, kept), key=lambda outcome: outcome["index"])


def prefix(args):
    """TTFT of a second request over the first's, where they share their beginning."""
    for side in SIDES:
        ratios = []
        with running(args, side, caches=True) as url:
            # The first seed only warms the server up.
            for seed in range(args.seed, args.seed + 1 + args.prefix_repeats):
                first, second = outcomes(
                    args, url, side, "prefix", "--arrivals", "concurrency:1", "--requests", "2",
                    "--shared-prefix", str(args.prefix_words), "--prompt-words", "8",
                    "--output-tokens", "16", seed=seed)
                ratios.append(second["ttft_ms"] / first["ttft_ms"])
        each = " ".join(f"{ratio:.3f}" for ratio in ratios[1:])
        print(f"shared prefix, {first['prompt_tokens']} tokens ({second['cached_tokens']} cached): "
              f"{side} {statistics.median(ratios[1:]):.3f}   {each}", flush=True)


def exact(args):
    """Answers that differ between requests sent alone and the same ones sent together."""
    for side in SIDES:
        texts = []
        for clients in (1, args.exact_requests):
            with running(args, side) as url:
                texts.append([outcome["text_sha256"] for outcome in outcomes(
                    args, url, side, "exact", "--arrivals", f"concurrency:{clients}",
                    "--requests", str(args.exact_requests), "--seeds")])
        different = sum(alone != together for alone, together in zip(*texts))
        print(f"alone and together: {different} of {len(texts[0])} answers differ with {side}",
              flush=True)


def interval(values):
    """Bounds of the median with 95 % confidence, from ranks alone: no shape is assumed."""
    ordered, count = sorted(values), len(values)
    outside, below = 0, 0.0
    while outside < count / 2 and below + math.comb(count, outside) / 2**count <= 0.025:
        below += math.comb(count, outside) / 2**count
        outside += 1
    # Of too few values not even the extremes bound it so well.
    return ordered[max(outside - 1, 0)], ordered[count - max(outside, 1)]


def overhead(args):
    """Time of the same requests, 16 at a time, with and without records, pair by pair.

    Both servers live through the pairs of a round, so that a pair is two runs right after one
    another: the machine's speed changes by more than what is measured within a minute. Each round
    has servers of its own, since one process may be faster than another of the same program.
    """
    usual, kinds = args.causeway_args, ("", args.bare_args)
    lost = []
    for start in range(0, args.pairs, PAIRS_OF_A_ROUND):
        with contextlib.ExitStack() as stack:
            urls = {}
            for extra in kinds[::1 if start // PAIRS_OF_A_ROUND % 2 == 0 else -1]:
                args.causeway_args = f"{usual} {extra}"
                urls[extra] = stack.enter_context(running(args, "causeway"))
            for index in range(start - 1, min(start + PAIRS_OF_A_ROUND, args.pairs)):
                seconds = {}
                for extra in kinds[::1 if index % 2 == 0 else -1]:
                    began = time.monotonic()
                    load(args, urls[extra], "causeway", "overhead", "--requests",
                         str(args.overhead_requests), "--arrivals", f"concurrency:{args.slots}",
                         seed=args.seed + index)
                    seconds[extra] = time.monotonic() - began
                # The first pair of a round warms both.
                if index >= start:
                    lost.append(1 - seconds[args.bare_args] / seconds[""])
    args.causeway_args = usual
    low, high = interval(lost)
    each = " ".join(f"{ratio:.4f}" for ratio in lost)
    print(f"time lost against `{args.bare_args}`: {statistics.median(lost):.4f} "
          f"({low:.4f} to {high:.4f} with 95 %)   {each}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--causeway", required=True, help="the release binary")
    parser.add_argument("--load", help="the binary with the load tool, where it is another one")
    parser.add_argument("--llama-cpp", required=True, help="the folder that llama_cpp.sh prints")
    parser.add_argument("--file", required=True, help="a .gguf file")
    parser.add_argument("--rows", default="saturation,latency,prefix,exact",
                        help="of saturation, latency, prefix, exact, overhead")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=240, help="of each open loop")
    parser.add_argument("--saturation-seconds", type=int, default=120, help="of each closed loop")
    parser.add_argument("--warmup", type=int, default=20, help="seconds before either")
    parser.add_argument("--rate", type=float, help="requests a second, in place of the share")
    parser.add_argument("--share", type=float, default=0.75, help="of llama-server's saturation")
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048, help="tokens of each slot")
    parser.add_argument("--prefix-words", type=int, default=1000)
    parser.add_argument("--prefix-repeats", type=int, default=5)
    parser.add_argument("--exact-requests", type=int, default=24)
    parser.add_argument("--overhead-requests", type=int, default=48, help="of each run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--causeway-args", default="", help="more flags of causeway serve")
    parser.add_argument("--no-cache-args", default="--no-prefix-cache",
                        help="flags of causeway serve that turn its prefix cache off")
    parser.add_argument("--bare-args", default="", help="flags that turn records off, for overhead")
    parser.add_argument("--body", default=json.dumps(SAMPLING), help="fields of each request")
    parser.add_argument("--causeway-body", default="{}", help="more fields, causeway's alone")
    parser.add_argument("--llama-body", default="{}", help="more fields, llama-server's alone")
    parser.add_argument("--out", help="folder for reports and the servers' words")
    return parser.parse_args()


def main():
    args = arguments()
    # A run that is stopped takes its servers along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    args.out = args.out or tempfile.mkdtemp(prefix="serve-")
    os.makedirs(args.out, exist_ok=True)
    rows = args.rows.split(",")
    unknown = set(rows) - {"saturation", "latency", "prefix", "exact", "overhead"}
    if unknown:
        raise SystemExit(f"no such rows: {', '.join(sorted(unknown))}")
    print(f"{args.file}, {args.slots} slots, {args.threads} threads; reports in {args.out}")
    print(f"{'':<22}{'causeway':>11}{'llama-server':>14} {'':<9}{'ratio':>8}   of each pair")
    rate = args.rate
    if "saturation" in rows or ("latency" in rows and rate is None):
        tokens_per_s = saturation(args)
        rate = rate or args.share * tokens_per_s / mean_log_uniform(*OUTPUT_TOKENS)
    if "latency" in rows:
        latency(args, rate)
    if "prefix" in rows:
        prefix(args)
    if "exact" in rows:
        exact(args)
    if "overhead" in rows:
        overhead(args)


if __name__ == "__main__":
    main()
