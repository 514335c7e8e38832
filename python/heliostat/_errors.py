"""What goes wrong, as exceptions: one class for each code that a program would tell apart."""
from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Type


class HeliostatError(Exception):
    """A request that the daemon refused, or that did not reach it.

    code: one of the API's closed set, such as "not_found" (docs/en/cli.md lists them). detail: what went wrong, for people. path: the field
    or parameter at fault, such as "$.workers[0].count", or "". arguments: named facts (`args` of the problem document, a name that Python's
    exceptions have taken). status: HTTP status, 0 when it is no answer of the daemon.
    """

    def __init__(self, code: str, detail: str, path: str = "", arguments: Optional[Mapping[str, str]] = None, status: int = 0):
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.path = path
        self.arguments: Dict[str, str] = dict(arguments or {})
        self.status = status

    def __str__(self) -> str:
        return f"{self.code}{' at ' + self.path if self.path else ''}: {self.detail}"

    def __reduce__(self) -> Any:
        # Exceptions cross processes by pickle, which would call the class with `detail` alone.
        return type(self), (self.code, self.detail, self.path, self.arguments, self.status)


class InvalidArgument(HeliostatError):
    """A field or parameter is wrong: `path` names it."""


class Unauthenticated(HeliostatError):
    """There is no token, or it is wrong, expired or revoked."""


class PermissionDenied(HeliostatError):
    """The token's role may not do this."""


class NotFound(HeliostatError):
    """There is no such job, stream, image, ..."""


class AlreadyExists(HeliostatError):
    """The name is taken."""


class Conflict(HeliostatError):
    """It does not go together with what is there: one idempotency key for two bodies, say."""


class PreconditionFailed(HeliostatError):
    """Something has to be done before: a job is stopped before it is removed, say."""


class ResourceExhausted(HeliostatError):
    """Over a limit: a package that is too large, too many requests."""


class Unavailable(HeliostatError, ConnectionError):
    """No daemon answers, or the connection broke and the request could not be repeated."""


class DeadlineExceeded(HeliostatError, TimeoutError):
    """Not within the time that was given."""


CLASSES: Dict[str, Type[HeliostatError]] = {
    "invalid_argument": InvalidArgument, "unauthenticated": Unauthenticated, "permission_denied": PermissionDenied, "not_found": NotFound,
    "already_exists": AlreadyExists, "conflict": Conflict, "precondition_failed": PreconditionFailed, "resource_exhausted": ResourceExhausted,
    "unavailable": Unavailable, "deadline_exceeded": DeadlineExceeded,
}


def error(code: str, detail: str, path: str = "", arguments: Optional[Mapping[str, str]] = None, status: int = 0) -> HeliostatError:
    """The exception of a code."""
    return CLASSES.get(code, HeliostatError)(code, detail, path, arguments, status)


def problem_error(status: int, body: bytes) -> HeliostatError:
    """The exception of an answer that is no success: of its problem document, or "internal" with its first words when it is none."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str):
        start = body[:200].decode("utf-8", "replace")
        return error("internal", f"the daemon answered {status}: {start or 'nothing'}", status=status)
    arguments = problem.get("args")
    facts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in arguments.items()} if isinstance(arguments, dict) else {}
    return error(problem["code"], str(problem.get("detail") or problem.get("title") or ""), str(problem.get("path") or ""), facts, status)
