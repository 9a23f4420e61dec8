#!/usr/bin/env python3
"""Runs `causeway serve` under mixed load with faults, and checks that nothing is left behind.

Clients stream, wait, hang up at every stage, cancel, run into deadlines, and send what no server
should be sent; whoever asks properly must be answered properly all the while. RSS, descriptors,
threads and gauges are sampled. At the end the server must be alive, idle and empty, every run that
began must have ended and left a record, and memory must have been flat after the first third.
What each client asks is fixed by `--seed`; how far each comes in the time is not.
"""

import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import re
import shlex
import socket
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

APIS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages")
WORDS = "one two red sky river stone green under seven apple north quiet".split()
# What a server may say to a good request when there is no room.
NO_ROOM = (429, 503)
IDLE_SECONDS_MAX = 120
# A body that is larger than the server's limit of 8 MiB.
LARGE = 10_000_000
LORIS_SOCKETS = 32


class Wrong(Exception):
    """An answer that is not what it should be."""


def text(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


def body_of(api, prompt, tokens, **fields):
    """The same question in the words of each API."""
    limit = "max_output_tokens" if api == "/v1/responses" else "max_tokens"
    said = [{"role": "user", "content": prompt}]
    asked = {"/v1/completions": {"prompt": prompt}, "/v1/responses": {"input": prompt}}
    return {**asked.get(api, {"messages": said}), limit: tokens, **fields}


def request(method, path, body=b"", headers=()):
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: soak", "Content-Type: application/json",
             "Connection: close", *headers]
    if not any(line.lower().startswith(("content-length", "transfer-enc")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Server:
    """The server under test, and how it is spoken to."""

    def __init__(self, args):
        self.patience_s = args.patience
        self.log = open(os.path.join(args.out, "serve.log"), "w")
        self.store = os.path.join(args.out, "ledger.sqlite")
        self.child = subprocess.Popen(
            [args.causeway, "serve", "-m", args.file, "--addr", "127.0.0.1:0", "--json",
             "--threads", str(args.threads), "--slots", "16", "--queue", "256",
             "--context", "2048", "--kv-tokens", str(args.kv_tokens), "--log-level", "warn",
             "--store", self.store, *shlex.split(args.serve_args)],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        found = re.search(r"127\.0\.0\.1:(\d+)", self.child.stdout.readline())
        if not found:
            raise SystemExit(f"causeway serve did not start (see {self.log.name})")
        self.address = ("127.0.0.1", int(found.group(1)))

    def connect(self):
        return socket.create_connection(self.address, timeout=self.patience_s)

    def ask(self, method, path, body=b"", headers=()):
        """Status and body of an answer that comes whole."""
        connection = http.client.HTTPConnection(*self.address, timeout=self.patience_s)
        with contextlib.closing(connection):
            fields = dict(line.split(": ", 1) for line in headers)
            connection.request(method, path, body, {"Content-Type": "application/json", **fields})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def post(self, path, body, headers=()):
        return self.ask("POST", path, json.dumps(body).encode(), headers)

    def metrics(self):
        """Every counter and gauge, summed over its labels but for `kind` and `outcome`."""
        sums = collections.Counter()
        for line in self.ask("GET", "/metrics")[1].decode().splitlines():
            name, _, value = line.rpartition(" ")
            if line.startswith("causeway_") and "_bucket" not in name:
                label = re.search(r'(?:kind|outcome|reason)="(\w+)"', name)
                short = name.partition("{")[0].removeprefix("causeway_").removesuffix("_total")
                sums[short] += float(value)
                if label:
                    sums[f"{short} {label.group(1)}"] += float(value)
        return sums

    def size(self):
        """RSS in MiB, descriptors, threads."""
        status = open(f"/proc/{self.child.pid}/status").read()
        number = {key: int(re.search(rf"{key}:\s+(\d+)", status).group(1))
                  for key in ("VmRSS", "Threads")}
        files = len(os.listdir(f"/proc/{self.child.pid}/fd"))
        return number["VmRSS"] / 1024, files, number["Threads"]

    def stored(self):
        """Records in the store itself."""
        with contextlib.closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)) as store:
            return store.execute("select count(*) from records").fetchone()[0]


def finish(status, found, api, streamed):
    """Checks that an answer to a good request is whole; returns how it ended."""
    if status in NO_ROOM:
        return f"refused {status}"
    if status != 200:
        raise Wrong(f"{api}: {status} {found[:200]!r}")
    if streamed:
        last = {"/v1/responses": b"event: response.", "/v1/messages": b"message_stop"}
        if last.get(api, b"data: [DONE]") not in found[-200_000:] or b'"error":{' in found:
            raise Wrong(f"{api}: a stream ends in {found[-200:]!r}")
    else:
        json.loads(found)
    return "streamed" if streamed else "whole"


# Each of these is one thing that a client may do: `(server, rng, name)` to what became of it.

def answer(server, rng, name, **more):
    """An ordinary question, over any API, with or without a stream."""
    api, streamed = rng.choice(APIS), rng.random() < 0.5
    fields = {"stream": streamed, **more}
    if rng.random() < 0.3:
        fields.update(rng.choice([{"temperature": 0}, {"top_p": 0.8}, {"top_k": 40}]))
    if rng.random() < 0.2:
        fields["priority"] = "batch"
    if api in APIS[:2] and rng.random() < 0.2:
        fields["n"] = rng.choice([2, 3, 5])
    asked = body_of(api, text(rng, rng.choice([2, 20, 120, 500])), rng.choice([1, 8, 24, 64]),
                    **fields)
    return finish(*server.post(api, asked, [f"X-Request-Id: {name}"]), api, streamed)


def shared(server, rng, _name):
    """A question that begins like many others."""
    prefix = text(random.Random(rng.randrange(4)), 300)
    api = rng.choice(APIS)
    return finish(*server.post(api, body_of(api, f"{prefix} {text(rng, 4)}", 8)), api, False)


def exact(server, rng, _name):
    """One of eight questions whose answers are known by now; again and again the same text."""
    index = rng.randrange(8)
    asked = body_of(APIS[0], text(random.Random(f"exact {index}"), 40), 16, seed=index,
                    cache_salt=rng.choice(["", "a", "b"]) or None, result_cache=index % 2 == 0)
    status, found = server.post(APIS[0], asked)
    if status != 200:
        return finish(status, found, APIS[0], False)
    found = json.loads(found)
    said = found["choices"][0]["text"]
    if server.__dict__.setdefault("answers", {}).setdefault(index, said) != said:
        raise Wrong(f"question {index} was answered {said!r}")
    return "given again" if found["causeway"]["choices"][0]["result_cache"] else "computed"


def deadline(server, rng, name):
    return answer(server, rng, name, timeout_ms=rng.choice([1, 2, 5, 20, 80]))


def cancel(server, rng, name):
    """Starts a long answer and deletes it from outside."""
    api = rng.choice(APIS)
    asked = body_of(api, text(rng, rng.choice([3, 400])), 400, stream=rng.random() < 0.5,
                    on_disconnect=rng.choice(["cancel", "finish"]))
    with server.connect() as client:
        client.sendall(request("POST", api, json.dumps(asked).encode(),
                               [f"X-Request-Id: {name}"]))
        time.sleep(rng.random() ** 2)
        # The server may not have read the request yet.
        for _ in range(100):
            status, found = server.ask("DELETE", f"/v1/requests/{name}")
            if status != 404:
                break
            time.sleep(0.1)
        said = b""
        while piece := client.recv(65536):
            said += piece
    answered = int(said.split(b" ", 2)[1])
    if status not in (200, 202) and answered not in NO_ROOM or answered not in (200, *NO_ROOM):
        raise Wrong(f"DELETE: {status} {found[:200]!r}, the answer {said[:200]!r}")
    return f"deleted {status}"


STAGES = ("connect", "header", "body", "sent", "sent_rst", "wait", "wait_rst", "read", "read_rst")


def leave(server, rng, name):
    """Hangs up at any stage, by FIN or by RST; returns the stage."""
    stage, share, api = rng.choice(STAGES), rng.random(), rng.choice(APIS)
    more = {"n": 3} if api in APIS[:2] and rng.random() < 0.25 else {}
    if rng.random() < 0.1:
        more["on_disconnect"] = "finish"
    asked = body_of(api, text(rng, rng.choice([3, 50, 600])), rng.choice([1, 8, 64, 200]),
                    stream=rng.random() < 0.6, **more)
    body = json.dumps(asked).encode()
    whole = request("POST", api, body, [f"X-Request-Id: {name}"])
    cut = {"connect": 0, "header": int((len(whole) - len(body)) * share),
           "body": len(whole) - int(len(body) * share) - 1}
    with server.connect() as client, contextlib.suppress(OSError):
        if stage.endswith("rst"):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(whole[:cut.get(stage, len(whole))])
        if stage.startswith("wait"):
            time.sleep(share ** 2 * 1.5)
        if stage.startswith("read"):
            left = 1 + int(share * 3000)
            while left > 0 and (piece := client.recv(256)):
                left -= len(piece)
    return f"left at {stage}"


def sleepy(server, rng, name):
    """Reads a stream a little at a time through a small window."""
    asked = body_of(APIS[1], text(rng, 10), 150, stream=True, ignore_eos=True, logprobs=True,
                    top_logprobs=20)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.settimeout(server.patience_s)
        client.connect(server.address)
        client.sendall(request("POST", APIS[1], json.dumps(asked).encode()))
        found = b""
        while piece := client.recv(4096):
            found += piece
            time.sleep(0.01)
    if b" 200 " in found[:20] and b"data: [DONE]" not in found[-200:]:
        raise Wrong(f"a slow reader's stream ends in {found[-200:]!r}")
    return "read slowly"


def burst(server, rng, name):
    """More choices at once than may wait; some are refused, each with a reason."""
    asked = json.dumps(body_of(APIS[0], text(rng, 30), 4, n=16)).encode()
    clients = [server.connect() for _ in range(24)]
    for client in clients:
        client.sendall(request("POST", APIS[0], asked))
    refused = 0
    for client in clients:
        with client:
            status = int((client.recv(4096).split(b" ", 2) + [b"0", b"0"])[1])
        if status not in (200, *NO_ROOM):
            raise Wrong(f"one of a burst is told {status}")
        refused += status in NO_ROOM
    return "burst, some refused" if refused else "burst, all answered"


def look(server, rng, _name):
    path = rng.choice(["/v1/models", "/v1/requests", "/metrics", "/health", "/ready"])
    status, found = server.ask("GET", path)
    if status != 200:
        raise Wrong(f"{path}: {status} {found[:200]!r}")
    status, _ = server.post("/tokenize", {"prompt": text(rng, 50)})
    if status != 200:
        raise Wrong(f"/tokenize: {status}")
    return "looked"


def completion(raw):
    return request("POST", "/v1/completions", raw)


CHUNKED = ["Transfer-Encoding: chunked"]
# What is sent, and what may be answered; `None` is a connection that is closed without a word.
HOSTILE = [
    ("broken JSON", completion(b'{"prompt": "a", "max_tokens": '), {400}),
    ("no object", completion(b"[1, 2]"), {400}),
    ("empty", completion(b""), {400}),
    ("deep", completion(b'{"prompt": ' + b"[" * 100_000), {400}),
    ("twice", completion(b'{"prompt": "a", "seed": 1, "seed": 2}'), {400}),
    ("wrong type", completion(b'{"prompt": 5}'), {400}),
    ("wrong type", completion(b'{"prompt": "a", "max_tokens": "many"}'), {400}),
    ("wrong type", request("POST", APIS[1], b'{"messages": {"role": 1}}'), {400}),
    ("unknown field", completion(b'{"prompt": "a", "temprature": 1}'), {400}),
    ("NaN", completion(b'{"prompt": "a", "temperature": NaN}'), {400}),
    ("huge number", completion(b'{"prompt": "a", "temperature": 1e400}'), {400}),
    ("huge number", completion(b'{"prompt": "a", "seed": 18446744073709551616}'), {400}),
    ("huge number", completion(b'{"prompt": "a", "max_tokens": 1e300}'), {400}),
    ("negative", completion(b'{"prompt": "a", "max_tokens": -1}'), {400}),
    ("too many choices", completion(b'{"prompt": "a", "n": 1000000}'), {400}),
    ("id outside", completion(b'{"prompt": [1, 4294967295]}'), {400}),
    ("id outside", completion(b'{"prompt": [99999999]}'), {400}),
    ("id outside", completion(b'{"prompt": [-1]}'), {400}),
    ("id outside", completion(b'{"prompt": "a", "allowed_token_ids": [99999999]}'), {400}),
    ("too long", completion(json.dumps({"prompt": "word " * 20_000}).encode()), {400}),
    ("broken UTF-8", completion(b'{"prompt": "\xff\xfe\xc3"}'), {400}),
    ("half a pair", completion(b'{"prompt": "\\ud800"}'), {400}),
    ("10 MB", completion(b'{"prompt": "' + b"a" * LARGE + b'"}'), {413, None}),
    ("10 MB in chunks", request("POST", APIS[0], b"%x\r\n" % LARGE + b"a" * LARGE, CHUNKED),
     {413, None}),
    ("bad chunk", request("POST", APIS[0], b"zz\r\n", CHUNKED), {400}),
    ("packed", request("POST", APIS[0], b"x", ["Content-Encoding: gzip"]), {415}),
    ("bad length", b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", {400}),
    ("large header", request("GET", "/health", b"", ["X-Large: " + "a" * 100_000]), {431, None}),
    ("no HTTP", b"\x16\x03\x01\x00\xff\x00\r\n\r\n", {400, None}),
    ("wrong method", request("PUT", APIS[0]), {405}),
    ("nothing there", request("GET", "/v1/nothing/%ff"), {404}),
]


def hostile(server, rng, _name):
    """Sends what no server should be sent, and reads what it says to that."""
    name, sent, allowed = rng.choice(HOSTILE)
    found = b""
    with server.connect() as client, contextlib.suppress(ConnectionError):
        # The server may answer and close before it has read all.
        with contextlib.suppress(ConnectionError):
            client.sendall(sent)
        while piece := client.recv(65536):
            found += piece
    status = int(found.split(b" ", 2)[1]) if found.startswith(b"HTTP/1.1 ") else None
    if status not in allowed:
        raise Wrong(f"{name}: {found[:200]!r}")
    return f"hostile {status or 'closed'}"


WEIGHTS = {answer: 30, shared: 12, exact: 12, deadline: 8, cancel: 8, leave: 16, sleepy: 1,
           burst: 1, look: 4, hostile: 14}


class Load:
    """Clients at work, what became of each request, and every sample of the server."""

    def __init__(self, server, seed):
        self.server, self.seed = server, seed
        self.counts, self.wrong, self.samples = collections.Counter(), [], []
        self.over = threading.Event()

    def note(self, action, rng, name):
        try:
            self.counts[action(self.server, rng, name)] += 1
        except (Wrong, OSError, http.client.HTTPException, LookupError, ValueError) as error:
            self.wrong.append(f"{action.__name__}: {error!r}")

    def client(self, index):
        rng, count = random.Random(f"{self.seed} {index}"), 0
        while not self.over.is_set():
            action = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            self.note(action, rng, f"soak-{self.seed}-{index}-{count}")
            count += 1

    def loris(self):
        """Sockets that begin a request and never end it; the server must close each in time."""
        begun = request("POST", APIS[0], b"", ["Content-Length: 1000"])
        while not self.over.is_set():
            # Half of them stop inside the header, half inside the body.
            clients = [self.server.connect() for _ in range(LORIS_SOCKETS)]
            for index, client in enumerate(clients):
                client.sendall(begun[:-3] if index % 2 else begun + b"{")
            for client in clients:
                with client:
                    try:
                        while client.recv(4096):
                            pass
                        self.counts["slow-loris closed"] += 1
                    except ConnectionError:
                        self.counts["slow-loris closed"] += 1
                    except TimeoutError:
                        self.wrong.append("a slow-loris socket stays open")

    def watch(self, began, period_s):
        while not self.over.wait(period_s):
            with contextlib.suppress(OSError, http.client.HTTPException):
                seen = self.server.metrics()
                self.samples.append((time.monotonic() - began, *self.server.size(), seen))
                if len(self.samples) % 12 == 0:
                    print("  " + sample_line(self.samples[-1]), flush=True)

    def run(self, minutes, clients, period_s):
        began = time.monotonic()
        threads = [threading.Thread(target=self.client, args=(index,)) for index in range(clients)]
        threads += [threading.Thread(target=self.loris),
                    threading.Thread(target=self.watch, args=(began, period_s))]
        for thread in threads:
            thread.start()
        # Counted by sleeping: while this process is stopped, no time passes.
        for _ in range(round(minutes * 60)):
            if self.server.child.poll() is None:
                time.sleep(1)
        self.over.set()
        for thread in threads:
            thread.join()

    def leave_all(self, clients, at_once):
        """So many clients, each of which hangs up somewhere."""
        places = threading.Semaphore(at_once)

        def one(index):
            with places:
                self.note(leave, random.Random(f"{self.seed} leaver {index}"), f"leaver-{index}")

        threads = [threading.Thread(target=one, args=(index,)) for index in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def sample_line(sample):
    at, rss, files, threads, seen = sample
    return (f"{at:6.0f} s  {rss:7.1f} MiB  {files:4} files  {threads:3} threads  "
            f"{seen['runs_running']:3.0f} run  {seen['runs_waiting']:3.0f} wait  "
            f"held {seen['kv_blocks held']:5.0f}  cached {seen['kv_blocks cached']:5.0f}  "
            f"free {seen['kv_blocks free']:5.0f}  {seen['runs_ended']:8.0f} ended")


def settle(server, files_idle, threads_idle):
    """Waits until nothing runs and all is given back; returns the last look."""
    for _ in range(IDLE_SECONDS_MAX):
        seen = server.metrics()
        _, files, threads = server.size()
        left = (seen["runs_running"] + seen["runs_waiting"] + seen["kv_blocks held"]
                + seen["records_pending"])
        if left == 0 and files <= files_idle and threads <= threads_idle:
            break
        time.sleep(1)
    return seen


def growth(samples):
    """RSS after the first third, and at the end: medians over a tenth of the time."""
    last = samples[-1][0]
    span = [[rss for at, rss, *_ in samples if first * last <= at <= (first + 0.1) * last]
            for first in (1 / 3, 0.9)]
    return [statistics.median(part) for part in span]


def idle_checks(server, load, idle):
    """What must hold whenever all clients are gone: rows of name, found, wanted, whether."""
    seen = settle(server, *idle[1:])
    _, files, threads = server.size()
    rows = [(f"{path} says", server.ask("GET", path)[0], "200") for path in ("/health", "/ready")]
    rows += [(f"{name} when idle", int(seen[key]), "0") for name, key in (
        ("running", "runs_running"), ("waiting", "runs_waiting"), ("held blocks", "kv_blocks held"),
        ("records pending", "records_pending"), ("records lost", "records lost"),
        ("records refused", "records refused"), ("runs that panicked", "runs_ended panic"))]
    live = json.loads(server.ask("GET", "/v1/requests")[1])["data"]
    rows.append(("requests listed when idle", len(live), "0"))
    started = int(seen["runs_started"])
    # An answer that is given again runs no step and names the first record.
    computed = started - int(seen["runs_ended given_again"])
    rows += [("runs that ended, of those started", int(seen["runs_ended"]), f"{started}"),
             ("records counted as stored", int(seen["records stored"]), f"{computed}"),
             ("records in the store", server.stored(), f"{computed}"),
             ("answers that were wrong", len(load.wrong), "0")]
    checked = [(name, found, want, str(found) == want) for name, found, want in rows]
    checked += [(name, found, f"<= {most}", found <= most)
                for name, found, most in (("files open when idle", files, idle[1]),
                                          ("threads when idle", threads, idle[2]))]
    return checked


def memory_check(args, load):
    if len(load.samples) < 30:
        return [("samples of memory", len(load.samples), ">= 30", False)]
    third, end = growth(load.samples)
    free = [seen["kv_blocks free"] for at, *_, seen in load.samples if at > load.samples[-1][0] / 3]
    return [("RSS after a third, MiB", f"{third:.1f}", "", True),
            ("RSS at the end, MiB", f"{end:.1f}", "", True),
            ("largest RSS, MiB", f"{max(rss for _, rss, *_ in load.samples):.1f}", "", True),
            ("end over third", f"{end / third:.3f}", f"<= {args.growth_max}",
             end / third <= args.growth_max),
            ("fewest free blocks after a third", f"{min(free):.0f}", "", True)]


def warm(server):
    """Every API once, so that what is opened once is open; then sizes when idle."""
    for api in APIS:
        for streamed in (False, True):
            finish(*server.post(api, body_of(api, "a", 2, stream=streamed)), api, streamed)
    server.ask("GET", "/v1/requests/unknown")
    server.post("/v1/completions", body_of(APIS[0], "a", 2, result_cache=True))
    time.sleep(15)
    return server.size()


def table(load, rows):
    for outcome, count in sorted(load.counts.items()):
        print(f"{outcome:<38}{count:>12}")
    print()
    for name, found, want, holds in rows:
        print(f"{name:<38}{found:>12}  {want:<10}{'' if holds else 'FAILS'}")
    for line in load.wrong[:10]:
        print(f"  wrong: {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--causeway", required=True, help="the program, of a release build")
    parser.add_argument("--file", required=True, help="the model file")
    parser.add_argument("--minutes", type=float, default=30, help="of mixed load; 0 leaves it out")
    parser.add_argument("--workers", type=int, default=24, help="clients at once in mixed load")
    parser.add_argument("--clients", type=int, default=0,
                        help="clients that then all hang up, 48 at once")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--patience", type=float, default=180,
                        help="seconds that a client waits before it says that nothing comes")
    parser.add_argument("--kv-tokens", type=int, default=8192, help="small, to be full early")
    parser.add_argument("--growth-max", type=float, default=1.05)
    parser.add_argument("--serve-args", default="", help="further flags of `causeway serve`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="folder of the server's log and store")
    args = parser.parse_args()
    args.out = args.out or tempfile.mkdtemp(prefix="soak-")
    os.makedirs(args.out, exist_ok=True)
    server = Server(args)
    load, rows = Load(server, args.seed), []
    try:
        idle = warm(server)
        print(f"idle: {idle[0]:.1f} MiB, {idle[1]} files, {idle[2]} threads", flush=True)
        if args.minutes:
            load.run(args.minutes, args.workers, period_s=5)
            rows += idle_checks(server, load, idle) + memory_check(args, load)
        if args.clients:
            load.leave_all(args.clients, at_once=48)
            rows += [(f"then {args.clients} who hang up", "", "", True)]
            rows += idle_checks(server, load, idle)
        table(load, rows)
    finally:
        server.child.terminate()
        code = server.child.wait(timeout=60)
    print(f"the server ended with code {code} after SIGTERM")
    sys.exit(0 if code == 0 and all(holds for *_, holds in rows) else 1)


if __name__ == "__main__":
    main()
