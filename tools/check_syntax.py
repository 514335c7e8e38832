#!/usr/bin/env python3
"""What the build itself does not check: every header compiles alone with clang, and every unit parses with g++, which others will use.

Results are kept by content, so only what changed is looked at again.
"""
import argparse
import concurrent.futures
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEEP = ROOT / "build" / "syntax-check"
COMMON = ["-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-error=deprecated-declarations", "-DHELIO_VERSION=\"0\"",
          "-DHELIO_API_CASES=\"\"", "-DHELIO_OPENAPI=\"\"", "-DHELIO_TEST_AGENT=\"\"",
          "-DBOOST_ASIO_SEPARATE_COMPILATION", "-DBOOST_BEAST_SEPARATE_COMPILATION", "-DBOOST_BEAST_USE_STD_STRING_VIEW", "-Isrc"]
CLANG = ["clang++-19", *COMMON, "-Wno-pragma-once-outside-header", "-x", "c++"]
# An assertion of GoogleTest is an `if` with its `else`: where it stands alone under an `if`, g++ warns.
GCC = ["g++", *COMMON, "-Wno-dangling-else", "-Wno-missing-field-initializers", "-Wno-error=maybe-uninitialized"]


def check(command, path, headers):
    """None, or what is wrong with it."""
    text = "\0".join([*command, str(path), headers])
    stamp = KEEP / hashlib.sha256(text.encode() + (ROOT / path).read_bytes()).hexdigest()
    if stamp.exists():
        return None
    done = subprocess.run([*command, str(path)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        return f"{path}: {command[0]} refuses it\n{done.stderr[:1500]}"
    stamp.touch()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("what", nargs="?", choices=["headers", "gcc"], default="headers")
    args = parser.parse_args()
    KEEP.mkdir(parents=True, exist_ok=True)
    headers = sorted(p.relative_to(ROOT) for p in (ROOT / "src").rglob("*.h"))
    units = sorted(p.relative_to(ROOT) for p in (ROOT / "src").rglob("*.cpp"))
    # Each depends on headers: one digest over all of them decides.
    digest = hashlib.sha256()
    for header in headers:
        digest.update((ROOT / header).read_bytes())
    command, paths = (CLANG, headers) if args.what == "headers" else (GCC, units)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        problems = [p for p in pool.map(lambda path: check(command, path, digest.hexdigest()), paths) if p]
    print("\n".join(problems + [f"{args.what}: {len(paths)} files, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
