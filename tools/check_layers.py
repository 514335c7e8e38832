#!/usr/bin/env python3
"""Checks every #include of src/ against the layer table (docs/design.md section 6) and the doors of third-party headers."""
import re
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"

# folder -> folders that it may include beside itself
LAYERS = {
    "base": set(),
    "model": {"base"},
    "sched": {"base", "model"},
    "node": {"base", "model"},
    "sim": {"base", "model", "sched", "node", "service", "control", "obs", "provider", "provider/fake", "store"},
    "rt": {"base"},
    "proc": {"base", "rt"},
    "net": {"base", "rt"},
    "store": {"base", "model"},
    "ray": {"base", "rt", "net"},
    "auth": {"base", "model", "store"},
    "obs": {"base", "rt"},
    "provider": {"base", "model", "obs"},
    "provider/local": {"base", "model", "obs", "provider", "rt", "proc"},
    "provider/fake": {"base", "model", "obs", "provider", "node"},  # its nodes are run by the agent's own state machine
    "link": {"base", "model", "store", "net", "rt", "obs"},
    "service": {"base", "model", "sched", "store", "auth", "obs"},
    "control": {"base", "model", "sched", "store", "provider", "obs"},
    "api": {"base", "model", "service", "auth", "link", "net", "rt", "obs"},
    "agent": {"base", "model", "node", "rt", "net", "proc", "ray", "obs"},
    "cli": {"base", "model", "net", "rt", "proc"},
    "daemon": {"base", "model", "sched", "store", "rt", "proc", "net", "auth", "obs", "ray", "provider", "provider/local", "provider/fake",
               "link", "service", "control", "api"},
}

# header (regular expression) -> where it may be included; a folder, or a file without suffix
DOORS = [
    (r"boost/(asio|beast|system)[./]", {"rt", "net", "proc"}),
    (r"boost/url", {"net"}),
    (r"boost/(json|describe|mp11)", None),  # the vocabulary of documents: everywhere
    (r"boost/", set()),
    (r"openssl/", {"net", "auth", "base/hash"}),
    (r"yaml-cpp/", {"base/json/yaml"}),
    (r"sqlite3\.h", {"store"}),
    (r"sodium", {"auth"}),
    (r"CLI/", {"cli", "daemon/options", "sim/main"}),
    (r"re2/", {"base/pattern"}),
    (r"zstd\.h", {"base/zstd", "store"}),
    (r"archive(_entry)?\.h", {"service"}),
    (r"zlib\.h", {"cli/zip_writer"}),
    (r"gtest/|gmock/", None),
    (r"benchmark/", None),
]

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def below(folder):
    """What a folder stands on, directly or not: tests may build their world from it."""
    found, waiting = set(), [folder]
    while waiting:
        for name in LAYERS[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def folder_of(path):
    parts = path.parent.parts
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if name in LAYERS:
            return name
    return parts[0] if parts else ""


def target_folder(include):
    return folder_of(Path(include))


def door_problem(path, include):
    for pattern, doors in DOORS:
        if not re.match(pattern, include):
            continue
        if doors is None:
            return None
        stem = str(path.with_suffix(""))
        if any(stem == d or stem.startswith(d + "/") for d in doors):
            return None
        if stem.endswith("_test") and any(stem.startswith(d.split("/")[0] + "/") for d in doors):
            return None
        return f"<{include}> belongs to {', '.join(sorted(doors)) or 'no folder'}"
    return None


def check(path):
    """Problems of one file, as 'line: text'."""
    relative = path.relative_to(SRC)
    folder = folder_of(relative)
    if folder not in LAYERS:
        yield 0, f"folder '{folder}' is not in the layer table"
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        include = found.group(2)
        if found.group(1) == "<":
            problem = door_problem(relative, include)
            if problem:
                yield number, problem
            continue
        if not (SRC / include).exists():
            yield number, f'"{include}" does not exist from the root of src/'
            continue
        target = target_folder(include)
        allowed = below(folder) if relative.stem.endswith("_test") else LAYERS[folder]
        if target != folder and target not in allowed:
            yield number, f"{folder} may not include {target}"


def main():
    count = bad = 0
    for path in sorted(SRC.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        count += 1
        for number, text in check(path):
            bad += 1
            print(f"src/{path.relative_to(SRC)}:{number}: {text}")
    print(f"layers: {count} files, {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
