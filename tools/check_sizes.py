#!/usr/bin/env python3
"""Files over 800 lines warn, over 1,200 fail; functions over 80 lines fail (test bodies and data tables apart)."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WARN_FILE, FAIL_FILE, FAIL_FUNCTION = 800, 1200, 80

NOISE = re.compile(r'R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])'" + r"|//[^\n]*|/\*(?:.|\n)*?\*/|^\s*#(?:[^\n]*\\\n)*[^\n]*", re.M)
CONTAINER = re.compile(r"\b(namespace|class|struct|enum|union|extern)\b[^()]*$")


def functions(text):
    """(first line, length) of each function with a body: braces are counted, a function is one that stands in a namespace or class."""
    text = NOISE.sub(lambda m: "\n" * m.group().count("\n"), text)
    stack, line, start, words = [], 1, 1, ""
    for c in text:
        if c == "\n":
            line += 1
        if c == "{":
            outside = not stack or stack[-1][0] == "container"
            kind = "container" if outside and CONTAINER.search(words) else "function" if outside and "(" in words else "inner"
            stack.append((kind, start))
            words = ""
        elif c == "}":
            if stack:
                kind, first = stack.pop()
                if kind == "function":
                    yield first, line - first + 1
            words = ""
        elif c == ";":
            words = ""
        else:
            if not words.strip() and not c.isspace():
                words, start = "", line
            words += c


def main():
    bad = 0
    files = [p for folder in ("src", "tests") for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".h", ".cpp")]
    for path in files:
        lines = path.read_text().splitlines()
        name = path.relative_to(ROOT)
        if len(lines) > FAIL_FILE:
            bad += 1
            print(f"{name}: {len(lines)} lines, at most {FAIL_FILE}")
        elif len(lines) > WARN_FILE:
            print(f"{name}: {len(lines)} lines, over {WARN_FILE} (warning)")
        if path.stem.endswith("_test"):
            continue
        for line, length in functions("\n".join(lines)):
            # Route tables are data in the form of a function.
            if length > FAIL_FUNCTION and not re.search(r"\badd_\w+_routes\b", lines[line - 1]):
                bad += 1
                print(f"{name}:{line}: function of {length} lines, at most {FAIL_FUNCTION}")
    print(f"sizes: {len(files)} files, {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
