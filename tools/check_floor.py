#!/usr/bin/env python3
"""The programs that run inside other people's images: which shared libraries and which glibc they need."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("helio", "helio-agent")
LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
GLIBC = (2, 34)  # Ubuntu 22.04, RHEL 9


def objdump(flag, path):
    return subprocess.run(["objdump", flag, str(path)], capture_output=True, text=True, check=True).stdout


def main():
    problems = []
    for program in PROGRAMS:
        path = ROOT / "build/release/bin" / program
        needed = set(re.findall(r"NEEDED +(\S+)", objdump("-p", path)))
        if needed - LIBRARIES:
            problems.append(f"{program}: needs {', '.join(sorted(needed - LIBRARIES))}; only {', '.join(sorted(LIBRARIES))} are everywhere")
        symbols = [(tuple(map(int, version.split("."))), name) for version, name in re.findall(r"GLIBC_([\d.]+)\)? +(\S+)", objdump("-T", path))]
        if not symbols:
            problems.append(f"{program}: no glibc symbol was found")
            continue
        newer = sorted(name for version, name in symbols if version > GLIBC)
        if newer:
            problems.append(f"{program}: {', '.join(newer)} need a glibc above {'.'.join(map(str, GLIBC))}")
        else:
            print(f"{program}: glibc {'.'.join(map(str, max(symbols)[0]))}, {path.stat().st_size / 1e6:.1f} MB")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
