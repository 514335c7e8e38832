#!/usr/bin/env python3
"""A long queue of short jobs on real Ray, on a pool that holds two at a time: all end right, never more than the pool, and the daemon
does not grow. 20 jobs by default. Memory is compared from the tenth part of the queue on.
"""
import argparse
import os
import sys
import time

from _heliostat import PREFIX, Daemon, resident_mb
from _rows import Rows, add_arguments, skip


def footprint(daemon):
    return {"memory": resident_mb(daemon.pid), "descriptors": len(os.listdir(f"/proc/{daemon.pid}/fd")),
            "threads": len(os.listdir(f"/proc/{daemon.pid}/task")), "node folders": len(os.listdir(f"{daemon.home}/nodes"))}


def most_at_once(attempts):
    """How many attempts held nodes at the worst instant."""
    edges = []
    for attempt in attempts:
        at = {mark["name"]: mark["at"] for mark in attempt["marks"]}
        edges += [(at["admitted"], 1), (at["gone"], -1)]
    held = most = 0
    for _, change in sorted(edges):
        held += change
        most = max(most, held)
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=20)
    add_arguments(parser)
    args = parser.parse_args()
    if not os.path.exists(f"{PREFIX}/bin/ray"):
        return skip(args, f"no Ray at {PREFIX}; ./dev setup makes it")
    rows = Rows("queue")
    daemon = Daemon()
    try:
        daemon.add_image()
        capacity = daemon.must("GET", "/v1/hosts")["items"][0]["capacity"]
        daemon.must("PUT", "/v1/flavors/half", {"name": "half", "resources": {"cpu": capacity["cpu"] / 2, "memory": "2GiB"}})
        jobs = [daemon.submit({"name": f"n{i}", "head": {"flavor": "half"}, "entrypoint": {"command": f"echo {i}"}}) for i in range(args.jobs)]
        begin = args.jobs // 10 - 1
        early = {}
        for i, job in enumerate(jobs):
            daemon.wait(job, 600)
            if i == begin:
                early = footprint(daemon)
            if i % 10 == 9:
                print(f"{i + 1} of {args.jobs}: {footprint(daemon)}", file=sys.stderr)
        deadline = time.monotonic() + 20  # the last node goes after its job has ended
        while os.listdir(f"{daemon.home}/nodes") and time.monotonic() < deadline:
            time.sleep(0.1)
        late = footprint(daemon)
        attempts = [attempt for job in jobs for attempt in daemon.attempts(job)]
        right = 0
        for i, job in enumerate(jobs):
            status, text = daemon.call("GET", f"/v1/jobs/{job}/logs?stream=driver")
            row = daemon.must("GET", f"/v1/jobs/{job}")
            right += row["state"] == "succeeded" and status == 200 and str(i) in str(text)
    finally:
        daemon.close()
    rows.add("jobs that ended right", "jobs", right, target=args.jobs, at_most=False)
    rows.add("attempts per job", "", len(attempts) / args.jobs, target=1)
    rows.add("jobs at once, at most", "jobs", most_at_once(attempts), target=2)
    rows.add("memory gained", "MB", late["memory"] - early["memory"], target=2)
    for what in ("descriptors", "threads"):
        rows.add(f"{what} gained", "", late[what] - early[what], target=0)
    rows.add("node folders left", "", late["node folders"], target=0)
    return rows.finish(args)


if __name__ == "__main__":
    sys.exit(main())
