#!/usr/bin/env python3
"""The request path of the daemon with 5,000 jobs stored, against a bare Beast server and bare durable SQLite inserts in the same run.

The server under test runs on core 0, the load generator on core 1: wrk for rates, which are per CPU-second of the server, so that a busy
machine does not change them much; a client that never sleeps for latencies. Jobs are stored by submitting them behind one that fills the pool, and stopping them while they queue; that one runs on
a stand-in for `ray`, so that nothing else works meanwhile.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _heliostat import BIN, ROOT, Daemon, cpu_seconds, resident_mb
from _rows import Rows, add_arguments, median, skip

sys.path.append(f"{ROOT}/tests/integration")
from stub import make_prefix  # noqa: E402

SECONDS = 4


def rate(url, token, pid):
    before = cpu_seconds(pid)
    command = ["taskset", "-c", "1", "wrk", "-t1", "-c16", f"-d{SECONDS}s", "-H", f"Authorization: Bearer {token}", url]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = cpu_seconds(pid) - before
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    if bad := re.search(r"Non-2xx or 3xx responses: (\d+)", out):
        raise RuntimeError(f"{bad.group(1)} of {requests} answers of {url} were errors")
    return requests / used


def post(daemon, path, body, count):
    """Median microseconds of `count` requests, one after the other on one connection."""
    port = daemon.url.rsplit(":", 1)[1]
    request = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {daemon.token}\r\nContent-Type: application/json\r\n"
               f"Content-Length: {len(body)}\r\n\r\n{body}")
    return float(subprocess.run(["taskset", "-c", "1", f"{BIN}/bench-peers", "post", port, str(count)], input=request, capture_output=True,
                                text=True, check=True).stdout)


def store_jobs(daemon, count):
    """`count` ended jobs: queued behind one that takes the whole pool, then stopped."""
    host = daemon.must("GET", "/v1/hosts")["items"][0]
    daemon.must("PUT", "/v1/flavors/all", {"name": "all", "resources": host["capacity"] | {"gpus": 0, "shm": host["capacity"]["memory"] // 4}})
    blocker = daemon.submit({"name": "blocker", "entrypoint": {"command": "sleep 600"}, "head": {"flavor": "all"}, "retries": {"platform": 9},
                             "limits": {"readiness": "1h"}})
    spec = {"name": "stored", "entrypoint": {"command": "python train.py --epochs 10 --lr 0.001"}, "workers": [{"count": 2, "flavor": "small"}],
            "env": [{"name": "DATA", "value": "/data/set"}], "labels": {"team": "vision"}}
    ids = [daemon.submit(spec) for _ in range(count)]
    return blocker, ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    add_arguments(parser)
    args = parser.parse_args()
    if not shutil.which("wrk"):
        return skip(args, "wrk is not installed (apt-get install wrk)")
    rows = Rows("api")
    work = tempfile.mkdtemp(prefix="ba", dir="/tmp")
    daemon = Daemon(cpu=0)
    peer = None
    try:
        daemon.add_image(prefix=str(make_prefix(Path(work) / "prefix")))
        blocker, ids = store_jobs(daemon, args.jobs)
        for job in ids:
            daemon.must("POST", f"/v1/jobs/{job}/stop")
        memory = resident_mb(daemon.pid)
        target = ids[len(ids) // 2]
        body = len(json.dumps(daemon.must("GET", f"/v1/jobs/{target}"), separators=(",", ":")))
        peer = subprocess.Popen(["taskset", "-c", "0", f"{BIN}/bench-peers", "serve", "18973", str(body)], stdout=subprocess.PIPE)
        peer.stdout.readline()
        ours, bare = [], []
        for _ in range(args.rounds):
            ours.append(rate(f"{daemon.url}/v1/jobs/{target}", daemon.token, daemon.pid))
            bare.append(rate("http://127.0.0.1:18973/", "none", peer.pid))
        rows.add("GET /v1/jobs/<id> per CPU-second, against a bare Beast server", "1/CPU-s", median(ours), median(bare), target=0.2, at_most=False, of="ratio")

        payload = json.dumps({"name": "bench", "entrypoint": {"command": "true"}, "workers": [{"count": 2, "flavor": "small"}]})
        submit, insert = [], []
        for i in range(4 * args.rounds):  # short ones in turn: the disk of a shared machine is not as fast at all times
            submit.append(post(daemon, "/v1/jobs", payload, 1500))
            out = subprocess.run(["taskset", "-c", "0", f"{BIN}/bench-peers", "insert", f"{daemon.home}/bench{i}.db", "2000", "1500"],
                                 capture_output=True, text=True, check=True).stdout
            insert.append(float(out))
        rows.add("durable submit p50, against a bare SQLite insert", "us", median(submit), median(insert), target=2.0, of="ratio")
        rows.add(f"resident memory with {args.jobs} jobs", "MB", memory, target=60)

        queued = daemon.must("GET", "/v1/jobs?state=queued&limit=1000")
        while queued["items"]:
            for row in queued["items"]:
                daemon.must("POST", f"/v1/jobs/{row['id']}/stop")
            queued = daemon.must("GET", "/v1/jobs?state=queued&limit=1000")
        daemon.must("POST", f"/v1/jobs/{blocker}/stop")
        daemon.wait(blocker)
        time.sleep(2)
        before, started = cpu_seconds(daemon.pid), time.monotonic()
        time.sleep(20)
        rows.add("idle daemon, share of a core", "%", 100 * (cpu_seconds(daemon.pid) - before) / (time.monotonic() - started), target=0.1)
    finally:
        if peer:
            peer.kill()
        daemon.close()
        shutil.rmtree(work, ignore_errors=True)
    return rows.finish(args)


if __name__ == "__main__":
    sys.exit(main())
