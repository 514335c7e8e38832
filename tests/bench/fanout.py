#!/usr/bin/env python3
"""Many followers of one job's output over Ray's Jobs API, and some that stop reading: every line arrives, in order, and how late.

The driver (on a stand-in for Ray) prints 10,000 numbered lines a second with the time of each; the readers compare that with their own clock,
which is the same machine's.
"""
import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _heliostat import BIN, ROOT, Daemon, cpu_seconds, resident_mb
from _rows import Rows, add_arguments

sys.path.append(f"{ROOT}/tests/integration")
from stub import make_prefix  # noqa: E402

WRITER = """
import os, sys, time
rate, seconds = 10000, {seconds}
while not os.path.exists({go!r}):
    time.sleep(0.05)
start = time.monotonic()
number, pad = 0, "x" * 30
while number < rate * seconds:
    due = min(rate * seconds, int((time.monotonic() - start) * rate) + 1)
    lines = [f"{{n}} {{time.time_ns()}} {{pad}}\\n" for n in range(number, due)]
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
    number = max(number, due)
    time.sleep(0.005)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--followers", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=10)
    add_arguments(parser)
    args = parser.parse_args()
    rows = Rows("fanout")
    work = Path(tempfile.mkdtemp(prefix="bf", dir="/tmp"))
    daemon = Daemon()
    try:
        daemon.add_image(prefix=str(make_prefix(work / "prefix")))
        go = work / "go"
        (work / "writer.py").write_text(WRITER.format(seconds=args.seconds, go=str(go)))
        status, reply = daemon.call("POST", "/ray/default/api/jobs/", {"entrypoint": f"{sys.executable} -u {work}/writer.py"})
        if status != 200:
            raise RuntimeError(f"submit: {status} {reply}")
        job = reply["submission_id"]
        while daemon.call("GET", f"/ray/default/api/jobs/{job}")[1]["status"] != "RUNNING":
            time.sleep(0.1)
        readers = subprocess.Popen([f"{BIN}/bench-peers", "follow", daemon.url.rsplit(":", 1)[1], f"/ray/default/api/jobs/{job}/logs/tail",
                                    f"Authorization: Bearer {daemon.token}", str(args.followers), "1"], stdout=subprocess.PIPE, text=True)
        if readers.stdout.readline().strip() != "open":
            raise RuntimeError("followers were refused")
        before = cpu_seconds(daemon.pid)
        go.touch()
        seen = json.loads(readers.communicate(timeout=args.seconds * 6 + 60)[0])
        used = cpu_seconds(daemon.pid) - before
        written = 10000 * args.seconds
        rows.add(f"lines that a follower of {args.followers} got, of {written}", "lines", seen["fewest"], target=written, at_most=False)
        rows.add("lines out of order", "lines", seen["out_of_order"], target=0)
        rows.add("followers whose connection broke", "", seen["unclean"], target=0)
        rows.add("a line is behind its writing, p50", "ms", seen["lag_p50"])
        rows.add("a line is behind its writing, p99", "ms", seen["lag_p99"], target=1000)
        rows.add("a line is behind its writing, the latest", "ms", seen["lag_max"])
        rows.add("daemon, CPU-seconds for each second of output", "", used / args.seconds)
        rows.add("daemon, resident memory with one reader stalled", "MB", resident_mb(daemon.pid), target=100)
    finally:
        daemon.close()
        shutil.rmtree(work, ignore_errors=True)
    return rows.finish(args)


if __name__ == "__main__":
    sys.exit(main())
