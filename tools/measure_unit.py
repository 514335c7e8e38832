#!/usr/bin/env python3
"""Runs one compilation and holds it to the budget of HELIO_UNIT_BUDGET ("CPU-SECONDS:MB"), which the test suite sets.

ccache calls it in front of the compiler when it has no result, so a unit is measured once per content.
"""
import os
import resource
import subprocess
import sys


def main():
    code = subprocess.call(sys.argv[1:])
    budget = os.environ.get("HELIO_UNIT_BUDGET")
    if code != 0 or not budget:
        return code
    seconds, megabytes = map(float, budget.split(":"))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    memory = used.ru_maxrss / 1024
    if cpu <= seconds and memory <= megabytes:
        return 0
    source = next((word for word in sys.argv if word.endswith(".cpp")), "a unit")
    print(f"{source}: took {cpu:.0f} CPU-seconds and {memory:.0f} MB to compile; a unit may take {seconds:.0f} and {megabytes:.0f}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
