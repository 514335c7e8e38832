"""Where the daemon is, and with which token to talk to it: the same rules as the `helio` command's."""
from __future__ import annotations

import json
import os
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Optional

from ._errors import InvalidArgument, PermissionDenied, Unauthenticated, Unavailable


@dataclass(frozen=True)
class Daemon:
    """url: without a slash at its end. ca: PEM file of certificates to trust for https, None: the system's."""

    url: str
    token: str = field(repr=False)
    ca: Optional[str] = None


def find(url: Optional[str] = None, token: Optional[str] = None, ca: Optional[str] = None) -> Callable[[], Daemon]:
    """Says, whenever it is called, where the daemon is now: a daemon that was started again may listen elsewhere.

    url: an argument, else HELIOSTAT_URL, else the daemon that runs with HELIOSTAT_HOME (~/.heliostat). token: an argument, else
    HELIOSTAT_TOKEN, else the administrator's of that home, which goes to no process but the daemon that wrote the home's daemon.json. ca: an
    argument, else HELIOSTAT_CA.

    Raises InvalidArgument for a URL that is none. What it returns raises Unavailable when no daemon runs, Unauthenticated without a token,
    and PermissionDenied when the home's token cannot be read.
    """
    url = url or os.environ.get("HELIOSTAT_URL")
    token = token or os.environ.get("HELIOSTAT_TOKEN")
    ca = ca or os.environ.get("HELIOSTAT_CA") or None
    home = home_folder()
    if url:
        url = checked(url)
        return lambda: Daemon(url, token or _token_of_home_for(home, url), ca)
    return lambda: _of_home(home, token, ca)


def home_folder() -> Path:
    """HELIOSTAT_HOME, or ~/.heliostat."""
    named = os.environ.get("HELIOSTAT_HOME")
    return Path(named) if named else Path(os.path.expanduser("~")) / ".heliostat"


def checked(url: str) -> str:
    """`url` without a slash at its end. Raises InvalidArgument when it is no address of a daemon."""
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise InvalidArgument("invalid_argument", f"expected an address such as http://127.0.0.1:7070, not {url!r}", "url")
    if parts.username is not None or parts.password is not None:
        raise InvalidArgument("invalid_argument", "a token does not belong into the address: give token=, or set HELIOSTAT_TOKEN", "url")
    return url.rstrip("/")


def _of_home(home: Path, token: Optional[str], ca: Optional[str]) -> Daemon:
    document = _running(home)
    if document is None:
        hint = "; HELIOSTAT_TOKEN is set: for another daemon set HELIOSTAT_URL too" if os.environ.get("HELIOSTAT_TOKEN") else ""
        raise Unavailable("unavailable", f"no daemon runs with {home}; start it with `helio up`{hint}")
    return Daemon(checked(document["url"]), token or _token_in(home), ca)


def _token_of_home_for(home: Path, url: str) -> str:
    """For an address that the user gave without a token."""
    document = _running(home)
    if document is not None and document["url"].rstrip("/") == url:
        return _token_in(home)
    raise Unauthenticated("unauthenticated", f"no token for {url}: give token=, or set HELIOSTAT_TOKEN")


def _token_in(home: Path) -> str:
    file = home / "admin.token"
    try:
        words = file.read_text(encoding="utf-8").split()
    except PermissionError as error:
        raise PermissionDenied("permission_denied", f"{file} is not yours to read: set HELIOSTAT_TOKEN to a token of your own") from error
    except OSError as error:
        raise Unauthenticated("unauthenticated", f"no token: {error}; set HELIOSTAT_TOKEN, or start the daemon with `helio up`") from error
    if not words:
        raise Unauthenticated("unauthenticated", f"no token: {file} is empty; set HELIOSTAT_TOKEN")
    return words[0]


def _running(home: Path) -> Optional[Dict[str, Any]]:
    """daemon.json of a home, if the process that wrote it lives: what listens at its address otherwise is somebody else's."""
    try:
        document = json.loads((home / "daemon.json").read_text(encoding="utf-8"))
        pid, ticks, boot = int(document["pid"]), int(document["start_ticks"]), document["boot_id"]
        if pid <= 0 or not document["url"]:
            return None
        boot_now = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        # The name may hold blanks and parentheses: the last ')' ends it. Behind it stand the fields from the third on.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        state, started = fields[0], int(fields[19])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None  # there is no such file, it is damaged, or there is no such process
    return document if boot == boot_now and started == ticks and state not in ("Z", "X") else None
