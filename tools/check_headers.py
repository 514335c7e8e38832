#!/usr/bin/env python3
"""Every header compiles alone: includes what it uses. Results are kept by content, so only what changed is compiled again."""
import argparse
import concurrent.futures
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEEP = ROOT / "build" / "header-check"
COMMAND = ["clang++-19", "-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-pragma-once-outside-header",
           "-Wno-error=deprecated-declarations", "-DHELIO_VERSION=\"0\"", "-DBOOST_ASIO_SEPARATE_COMPILATION", "-DBOOST_BEAST_SEPARATE_COMPILATION",
           "-DBOOST_BEAST_USE_STD_STRING_VIEW", "-Isrc", "-x", "c++"]


def check(header, tree):
    stamp = KEEP / hashlib.sha256((str(header) + tree).encode()).hexdigest()
    if stamp.exists():
        return None
    done = subprocess.run(COMMAND + [str(header)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        return f"{header}: is not self-contained\n{done.stderr[:1500]}"
    stamp.touch()
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    KEEP.mkdir(parents=True, exist_ok=True)
    headers = sorted(p.relative_to(ROOT) for p in (ROOT / "src").rglob("*.h"))
    # A header depends on the others: one digest over all of them decides.
    digest = hashlib.sha256()
    for header in headers:
        digest.update((ROOT / header).read_bytes())
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        problems = [p for p in pool.map(lambda h: check(h, digest.hexdigest()), headers) if p]
    print("\n".join(problems + [f"headers: {len(headers)} files, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
