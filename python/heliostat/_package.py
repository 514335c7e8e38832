"""Packs a local folder for upload: the rules of `helio` for what stays at home, and the same bytes for the same content."""
from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Dict, List, NoReturn, Pattern, Sequence, Tuple

from ._errors import error

LIMIT = 100 << 20  # of a zip: the daemon's own default; it has the last word
MOST_FILES = 65535
MOST_BYTES = (1 << 32) - 1  # of one file in a zip
DEEPEST = 64
MOST_STARS = 16
PIECE = 1 << 16


class Package:
    """A zip to upload. Close it: the file goes with it when it was made here."""

    def __init__(self, file: IO[bytes], sha256: str):
        self.file = file
        self.sha256 = sha256

    @property
    def address(self) -> str:
        """What runtime_env says in the folder's place."""
        return f"helio://packages/{self.sha256}.zip"

    def close(self) -> None:
        """Gives the file back."""
        self.file.close()


def pack_code(spec: Dict[str, Any], excludes: Sequence[str] = ()) -> List[Package]:
    """Packs every local folder or zip that spec["runtime_env"] names (working_dir, py_modules) and puts its address in its place.

    Relative paths start at the current folder. excludes: patterns as in a .gitignore, on top of runtime_env.excludes. Raises NotFound;
    InvalidArgument for what cannot be packed; ResourceExhausted for what is too large. `path` names the field.
    """
    if isinstance(excludes, str):
        _fail("invalid_argument", "expected a list of patterns", "excludes")
    runtime_env = spec.get("runtime_env")
    packages: List[Package] = []
    if not isinstance(runtime_env, dict):
        return packages
    own = runtime_env.get("excludes")
    patterns = [*excludes, *(one for one in (own if isinstance(own, list) else []) if isinstance(one, str))]

    def packed(value: Any, path: str, as_module: bool) -> Any:
        if not isinstance(value, str) or "://" in value:
            return value
        packages.append(_pack(value, path, patterns, as_module))
        return packages[-1].address

    try:
        if "working_dir" in runtime_env:
            runtime_env["working_dir"] = packed(runtime_env["working_dir"], "$.runtime_env.working_dir", False)
        modules = runtime_env.get("py_modules")
        if isinstance(modules, list):
            runtime_env["py_modules"] = [packed(one, f"$.runtime_env.py_modules[{i}]", True) for i, one in enumerate(modules)]
    except BaseException:
        for package in packages:
            package.close()
        raise
    return packages


def _pack(local: str, path: str, excludes: Sequence[str], as_module: bool) -> Package:
    try:
        if os.path.isfile(local):
            return _zip_file(local, path)
        root = os.path.realpath(local)
        if not os.path.isdir(root):
            _fail("not_found" if not os.path.exists(root) else "invalid_argument", f"there is no folder {local}", path)
        # Ray finds a module below its own name.
        return _zip_folder(Path(root), local, path, excludes, os.path.basename(root) if as_module else "")
    except OSError as failed:
        _fail("permission_denied" if isinstance(failed, PermissionError) else "internal", f"reading {local}: {failed}", path)


def _zip_file(local: str, path: str) -> Package:
    if not local.endswith(".zip"):
        hint = "; a wheel is taken by its URL only" if local.endswith(".whl") else ""
        _fail("invalid_argument", f"{local} is neither a folder nor a .zip{hint}", path)
    if os.path.getsize(local) > LIMIT:
        _fail("resource_exhausted", f"{local} has {_size(os.path.getsize(local))}, more than {_size(LIMIT)}", path)
    file = open(local, "rb")
    if file.read(2) != b"PK":
        file.close()
        _fail("invalid_argument", f"{local} is not a zip file", path)
    return Package(file, _digest(file))


def _zip_folder(root: Path, local: str, path: str, excludes: Sequence[str], parent: str) -> Package:
    found = _Walk(root, path, excludes).run()
    if not found:
        _fail("invalid_argument", f"{local} holds no file to upload", path)
    if len(found) > MOST_FILES:
        _fail("invalid_argument", f"{local} has more than {MOST_FILES} files; leave some out with excludes or a .gitignore", path)
    file = tempfile.TemporaryFile(prefix="heliostat-")
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in found:
                _add(archive, file, root / one.name, f"{parent}/{one.name}" if parent else one.name, one, path)
                if file.tell() > LIMIT:
                    break
        if file.tell() > LIMIT:
            largest = ", ".join(f"{one.name} {_size(one.size)}" for one in sorted(found, key=lambda one: -one.size)[:5])
            _fail("resource_exhausted", f"{local} packs to more than {_size(LIMIT)}; the largest files are {largest}; leave out what the job does "
                  "not need with excludes or a .gitignore, or put it where the nodes can read it with mounts", path)
        return Package(file, _digest(file))
    except BaseException:
        file.close()
        raise


@dataclass
class _Found:
    name: str  # below the folder
    size: int
    executable: bool


def _add(archive: zipfile.ZipFile, file: IO[bytes], source: Path, name: str, found: _Found, path: str) -> None:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        _fail("invalid_argument", f"the name {name!r} is not UTF-8, which a zip needs", path)
    if found.size > MOST_BYTES:
        _fail("invalid_argument", f"{source} has more than 4 GiB, which a zip cannot hold", path)
    # One date and two modes: content alone decides the digest.
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, so that the mode holds
    entry.external_attr = (stat.S_IFREG | (0o755 if found.executable else 0o644)) << 16
    entry.file_size = found.size
    left = found.size  # a file that grows meanwhile is taken as it was
    with open(source, "rb") as content, archive.open(entry, "w") as out:
        while left > 0 and file.tell() <= LIMIT:
            piece = content.read(min(left, PIECE))
            if not piece:
                _fail("conflict", f"{source} became shorter while it was packed; try again", path)
            out.write(piece)
            left -= len(piece)


class _Walk:
    def __init__(self, root: Path, path: str, excludes: Sequence[str]):
        self._root = root
        self._path = path
        self._found: List[_Found] = []
        self._rules = IgnoreRules()
        for line in (".git", "__pycache__/", *excludes):
            self._rules.add(line)

    def run(self) -> List[_Found]:
        self._folder("", 0)
        return sorted(self._found, key=lambda one: os.fsencode(one.name))

    def _folder(self, below: str, depth: int) -> None:
        if depth > DEEPEST:
            _fail("invalid_argument", f"{below} is more than {DEEPEST} folders deep (a link to itself?)", self._path)
        here = self._root / below
        for name in (".gitignore", ".rayignore"):
            rules = here / name
            if not rules.exists():
                continue
            if not rules.is_file():  # a fifo would be waited for, and without its rules what they keep out would be uploaded
                _fail("invalid_argument", f"{rules} is not a regular file", self._path)
            for line in rules.read_text(encoding="utf-8", errors="surrogateescape").split("\n"):
                self._rules.add(line, below)
        for name in os.listdir(here):
            self._entry(f"{below}/{name}" if below else name, depth)

    def _entry(self, name: str, depth: int) -> None:
        file = self._root / name
        is_link = file.is_symlink()
        try:
            info = os.stat(file)
        except FileNotFoundError:
            if not self._rules.ignored(name, False):
                _fail("invalid_argument", f"{file} is a link to nothing; remove it or exclude it", self._path)
            return
        is_folder = stat.S_ISDIR(info.st_mode)
        if self._rules.ignored(name, is_folder):
            return
        if is_link:
            target = Path(os.path.realpath(file))
            if target != self._root and self._root not in target.parents:
                _fail("invalid_argument", f"link {file} leads out of {self._root} to {target}; copy the file or exclude the link", self._path)
        if is_folder:
            self._folder(name, depth + 1)
        elif stat.S_ISREG(info.st_mode):
            self._found.append(_Found(name, info.st_size, bool(info.st_mode & stat.S_IXUSR)))


@dataclass
class _Rule:
    pattern: Pattern[str]
    base: str
    negated: bool
    folders_only: bool
    anchored: bool  # holds a '/': matches from `base` on, not at any depth


class IgnoreRules:
    """Patterns of .gitignore in the order in which they were added; the last one that matches decides."""

    def __init__(self) -> None:
        self._rules: List[_Rule] = []

    def add(self, line: str, base: str = "") -> None:
        """One line as it stands in a .gitignore in folder `base` ("" = the root, "a/b"). Comments and blank lines add nothing."""
        while line.endswith(("\r", " ")) and not line.endswith("\\ "):
            line = line[:-1]
        if not line or line.startswith("#"):
            return
        negated = line.startswith("!")
        line = line[1:] if negated else line
        folders_only = line.endswith("/")
        line = line[:-1] if folders_only else line
        anchored = "/" in line
        line = line[1:] if line.startswith("/") else line
        if line:
            self._rules.append(_Rule(glob(line), base, negated, folders_only, anchored))

    def ignored(self, path: str, is_folder: bool) -> bool:
        """Does the entry at `path`, below the root, stay at home?"""
        for rule in reversed(self._rules):
            if rule.folders_only and not is_folder:
                continue
            below = path
            if rule.base:
                if not path.startswith(rule.base + "/"):
                    continue
                below = path[len(rule.base) + 1:]
            if not rule.anchored:
                below = below.rpartition("/")[2]
            if rule.pattern.fullmatch(below):
                return not rule.negated
        return False


@functools.lru_cache(maxsize=None)
def glob(pattern: str) -> Pattern[str]:
    """`*` and `?` stop at '/', `**` does not, [a-z] and [!a-z] are classes, `\\` quotes; the whole path has to match."""
    if pattern.count("*") > MOST_STARS:
        # It would take exponential time: the literal text before the first star decides.
        return re.compile(re.escape(pattern[:pattern.index("*")]) + ".*", re.DOTALL)
    out, at = "", 0
    while at < len(pattern):
        c = pattern[at]
        if c == "*":
            end = at
            while end < len(pattern) and pattern[end] == "*":
                end += 1
            deep = end - at > 1
            at = end
            if deep and pattern.startswith("/", at):
                out += "(?:.*/)?"  # "**/" may be nothing
                at += 1
            else:
                out += ".*" if deep else "[^/]*"
            continue
        if c == "[":
            text, used = _class(pattern[at:])
            if used:
                out += text
                at += used
                continue
        if c == "\\" and at + 1 < len(pattern):
            at += 1
            c = pattern[at]
            out += re.escape(c)
        else:
            out += "[^/]" if c == "?" else re.escape(c)
        at += 1
    return re.compile(out, re.DOTALL)


def _class(pattern: str) -> Tuple[str, int]:
    """A class that begins at pattern[0] as a regular expression, and its length; 0 when it is not closed."""
    at = 1
    inverted = pattern[at:at + 1] in ("!", "^")
    at += inverted
    members, first = "", True
    while at < len(pattern) and (first or pattern[at] != "]"):
        first = False
        if pattern[at + 1:at + 2] == "-" and pattern[at + 2:at + 3] not in ("", "]"):
            low, high = pattern[at], pattern[at + 2]
            members += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
            at += 3
        else:
            members += re.escape(pattern[at])
            at += 1
    if at >= len(pattern):
        return "", 0
    if inverted:
        return f"[^/{members}]", at + 1
    return f"(?!/)[{members}]" if members else "(?!)", at + 1


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    for piece in iter(lambda: file.read(PIECE), b""):
        digest.update(piece)
    return digest.hexdigest()


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f}".rstrip("0").rstrip(".") + name
    return f"{count}B"


def _fail(code: str, message: str, path: str) -> NoReturn:
    raise error(code, message, path)
