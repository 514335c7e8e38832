#!/usr/bin/env python3
"""How long from submit to the entrypoint's first line, against the same cluster started by hand in the same run, alternating.

Rows: heliostat's own share (all that is not Ray), the ratio of medians against a hand-made cluster with the same Ray flags, and against
Ray's default flags. 7 pairs by default, 25 with --pairs 25.
"""
import argparse
import os
import sys
import time
from datetime import datetime

import _by_hand as by_hand
from _heliostat import PREFIX, Daemon
from _rows import Rows, add_arguments, median, skip


def spec(command):
    return {"name": "start", "entrypoint": {"command": command}, "workers": [{"count": 2, "flavor": "small"}], "retries": {"platform": 0, "node": 0, "unknown": 0}}


def marks_of(attempt):
    return {mark["name"]: datetime.fromisoformat(mark["at"].replace("Z", "+00:00")).timestamp() * 1000 for mark in attempt["marks"]}


def one_run(daemon):
    job = daemon.submit(spec("echo hello"))
    row = daemon.wait(job)
    if row["state"] != "succeeded":
        raise RuntimeError(f"job {job} {row['state']}: {row.get('verdict')}")
    return marks_of(daemon.attempts(job)[0])


def wait_idle():
    """Until what the last cluster left to the kernel (freeing memory, closing sockets) is over: the load of one side must not hit the other."""
    def busy():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(x) for x in file.readline().split()[1:]]
        return sum(fields) - fields[3] - fields[4], sum(fields)
    for _ in range(40):
        first = busy()
        time.sleep(0.25)
        second = busy()
        if (second[0] - first[0]) / max(1, second[1] - first[1]) < 0.05:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    add_arguments(parser)
    args = parser.parse_args()
    if not os.path.exists(f"{PREFIX}/bin/ray"):
        return skip(args, f"no Ray at {PREFIX}; ./dev setup makes it")
    daemon = Daemon()
    try:
        daemon.add_image()
        job = daemon.submit(spec("sleep 3"))
        while not any(mark["name"] == "submitted" for attempt in daemon.attempts(job) for mark in attempt["marks"]):
            time.sleep(0.1)
        recipe = by_hand.read_recipe(job)
        daemon.wait(job)
        if len(recipe) != 3:
            raise RuntimeError(f"expected the start lines of 3 nodes, found {len(recipe)}")
        default = by_hand.default_recipe(PREFIX, 2, 1)
        ours, hand, plain, own = [], [], [], {}
        sides = ["ours", "hand", "plain"]
        for i in range(args.pairs):
            # All of them in every round, each first in its turn: the machine is not as fast at all times.
            for side in sides[i % 3:] + sides[:i % 3]:
                wait_idle()
                if side != "ours":
                    took = by_hand.run(recipe if side == "hand" else default, "echo hello")["first_line"]
                    (hand if side == "hand" else plain).append(took)
                    continue
                marks = one_run(daemon)
                ours.append(marks["first_line"] - marks["accepted"])
                parts = {"accepted to admitted": marks["admitted"] - marks["accepted"], "admitted to ray start": marks["ray_exec"] - marks["admitted"],
                         "nodes alive to submitted": marks["submitted"] - marks["nodes_alive"]}
                for name, value in parts.items():
                    own.setdefault(name, []).append(value)
                own.setdefault("sum", []).append(sum(parts.values()))
                print(f"pair {i + 1}: " + ", ".join(f"{name} {marks[name] - marks['accepted']:.0f}" for name in
                      ("admitted", "ray_exec", "gcs_up", "api_up", "nodes_alive", "submitted", "first_line") if name in marks) + " ms", file=sys.stderr)
    finally:
        daemon.close()
    rows = Rows("start")
    for name, values in own.items():
        if name != "sum":
            rows.add(f"own share: {name}", "ms", median(values))
    rows.add("own share between submit and first line", "ms", median(own["sum"]), target=300)
    limit = 1.05 if args.pairs >= 25 else 1.10
    rows.add("first line, same Ray flags by hand", "ms", median(ours), median(hand), target=limit, of="ratio")
    rows.add("first line, Ray's default flags by hand", "ms", median(ours), median(plain), target=1.0, of="ratio")
    return rows.finish(args)


if __name__ == "__main__":
    sys.exit(main())
