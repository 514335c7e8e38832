#!/usr/bin/env python3
"""Words that must not be in the tree: left-overs, absolute paths of one machine, empty promises."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIP = {"tools/check_words.py", "LICENSE"}
WORDS = [
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "unfinished work: finish it, or write it into docs/limits.md"),
    (re.compile(r"(?<![\w.])/work/(main|shared)|(?<![\w.])/root/\."), "a path of one machine"),
    (re.compile(r"^(<{7}|={7}|>{7})( |$)"), "a merge mark"),
    (re.compile(r"\bstd::regex\b"), "std::regex on input can take for ever: use base/pattern.h"),
    (re.compile(r"[ \t]+$"), "space at the end of the line"),
]


def main():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    bad = 0
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if name in SKIP or not path.is_file() or path.is_symlink():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for pattern, why in WORDS:
                if pattern.search(line):
                    bad += 1
                    print(f"{name}:{number}: {why}")
    print(f"words: {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
