#!/usr/bin/env python3
"""A driver that prints 200 MB: nothing lost, what it costs daemon and agent, and how soon a follower sees a line."""
import argparse
import glob
import hashlib
import http.client
import os
import sys
import threading
import time
import urllib.parse

from _heliostat import PREFIX, Daemon, cpu_seconds
from _rows import Rows, add_arguments, median, skip

PRINTER = """
import hashlib, sys
digest = hashlib.sha256(); size = 0; target = %d; i = 0
while size < target:
    block = b"".join(b"%%010d the quick brown fox jumps over the lazy dog, line of a busy driver with some text in it\\n" %% n for n in range(i, i + 1000))
    i += 1000; size += len(block); digest.update(block); sys.stdout.buffer.write(block)
sys.stdout.buffer.flush()
open(sys.argv[1], "w").write(f"{digest.hexdigest()} {size}")
"""

TICKER = """
import time
for i in range(100):
    print(f"tick {i} {time.time():.6f}", flush=True)
    time.sleep(0.05)
"""


def agents_of(job):
    """Pids of the agents of a job."""
    out = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if f"RAY_CLOUD_INSTANCE_ID={job}-".encode() in open(path, "rb").read() and b"helio-agent" in open(path.replace("environ", "cmdline"), "rb").read():
                out.append(int(path.split("/")[2]))
        except OSError:
            continue
    return out


def follow(daemon, job, on_data):
    parts = urllib.parse.urlsplit(daemon.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=300)
    connection.request("GET", f"/v1/jobs/{job}/logs?follow=true", headers={"Authorization": f"Bearer {daemon.token}"})
    reply = connection.getresponse()
    while True:
        piece = reply.read1(1 << 20)
        if not piece:
            break
        on_data(piece, time.time())
    connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    add_arguments(parser)
    args = parser.parse_args()
    if not os.path.exists(f"{PREFIX}/bin/ray"):
        return skip(args, f"no Ray at {PREFIX}; ./dev setup makes it")
    rows = Rows("logs")
    daemon = Daemon()
    try:
        daemon.add_image()
        result = f"{daemon.home}/printed"
        job = daemon.submit({"name": "printer", "entrypoint": {"argv": ["python", "-c", PRINTER % (args.megabytes * 1_000_000), result]}})
        before = cpu_seconds(daemon.pid)
        agent_cpu, agents, job_state = 0.0, [], None
        while job_state not in ("succeeded", "failed", "stopped"):
            agents = agents or agents_of(job)
            for pid in agents:
                try:
                    agent_cpu = max(agent_cpu, cpu_seconds(pid))
                except OSError:
                    pass
            job_state = daemon.must("GET", f"/v1/jobs/{job}")["state"]
            time.sleep(0.05)
        used = cpu_seconds(daemon.pid) - before
        if not agents or agent_cpu == 0:
            raise RuntimeError("no agent of the job was seen, so its cost is not known")
        if job_state != "succeeded":
            raise RuntimeError(f"job {job_state}: {daemon.must('GET', f'/v1/jobs/{job}').get('verdict')}")
        digest, size = open(result, encoding="utf-8").read().split()
        got, total, head = hashlib.sha256(), 0, b""

        def take(piece, _):
            nonlocal total, head
            if len(head) < 4096:
                head += piece[:4096]
            total += len(piece)
            pieces.append(piece)

        pieces = []
        follow(daemon, job, take)
        text = b"".join(pieces)
        start = text.index(b"0000000000 the quick")          # Ray's own lines stand before it
        got.update(text[start:])
        rows.add("bytes lost of the driver's log", "B", int(size) - (total - start), target=0)
        rows.add("digest differs", "", 0 if got.hexdigest() == digest else 1, target=0)
        rows.add("daemon CPU per 100 MB", "CPU-s", used * 100e6 / int(size), target=1.0)
        rows.add("agent CPU per 100 MB", "CPU-s", agent_cpu * 100e6 / int(size), target=1.0)

        job = daemon.submit({"name": "ticker", "entrypoint": {"argv": ["python", "-c", TICKER]}})
        delays, rest = [], b""

        def tick(piece, now):
            nonlocal rest
            *lines, rest = (rest + piece).split(b"\n")
            delays.extend((now - float(line.split()[2])) * 1000 for line in lines if line.startswith(b"tick "))

        reader = threading.Thread(target=follow, args=(daemon, job, tick))
        reader.start()
        daemon.wait(job)
        reader.join(60)
        rows.add("lines that the follower saw, of 100", "", len(delays), target=100, at_most=False)
        rows.add("line written to follower, median", "ms", median(delays))
        rows.add("line written to follower, worst", "ms", max(delays), target=300)
    finally:
        daemon.close()
    return rows.finish(args)


if __name__ == "__main__":
    sys.exit(main())
