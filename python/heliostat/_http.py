"""HTTP to the daemon: kept-alive connections, problem documents as exceptions, and repeats where nothing can happen twice."""
from __future__ import annotations

import collections
import http.client
import json
import os
import selectors
import socket
import ssl
import time
import urllib.parse
from typing import IO, Any, Callable, Deque, Dict, Iterator, Mapping, Optional, Tuple, Union

from ._connect import Daemon
from ._errors import DeadlineExceeded, HeliostatError, InvalidArgument, Unavailable, problem_error
from ._models import VERSION

REPEAT_S = 10.0  # for so long a request whose connection broke is sent again
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0  # between two tries
MOST_IDLE = 8  # connections that are kept
PIECE = 1 << 16

Query = Mapping[str, Any]
Body = Union[bytes, IO[bytes], None]
Connection = http.client.HTTPConnection


class Broken(Unavailable):
    """The connection broke when the daemon may already have taken the request."""


class Silent(DeadlineExceeded):
    """An answer has begun, and then nothing came for as long as the caller has patience."""


class Backoff:
    """Puts up with a daemon that is away, for `patience_s` at most."""

    def __init__(self, patience_s: float):
        self._patience_s = patience_s
        self.progress()

    def progress(self) -> None:
        """The daemon is there."""
        self._lost_at: Optional[float] = None
        self._pause_s = FIRST_PAUSE_S

    def lost(self, error: HeliostatError) -> None:
        """Pauses before the next try. Raises `error` when that has been going on for too long."""
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        if now - self._lost_at > self._patience_s:
            raise error
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)


class Http:
    """The daemon's HTTP API, for any number of threads: each request has a connection for itself, and idle ones are used again."""

    def __init__(self, find: Callable[[], Daemon], timeout_s: float):
        """find: where the daemon is now; asked for each new connection. timeout_s: without a byte of an answer."""
        self._find = find
        self._timeout_s = timeout_s
        self._idle: Deque[Tuple[Connection, Daemon]] = collections.deque()
        self._pid = os.getpid()

    def close(self) -> None:
        """Closes the idle connections; a later request opens another."""
        try:
            while True:
                self._idle.pop()[0].close()
        except IndexError:
            pass

    def json(self, method: str, target: str, *, query: Optional[Query] = None, body: Any = None, headers: Optional[Mapping[str, str]] = None,
             repeat: Optional[bool] = None, timeout_s: Optional[float] = None) -> Any:
        """As request(), with `body` sent as JSON and the answer decoded: None when it is empty. Raises "internal" when it is no JSON."""
        data = None if body is None else json.dumps(body).encode()
        more = {} if data is None else {"Content-Type": "application/json"}
        answer = self.request(method, target, query=query, body=data, headers={**more, **(headers or {})}, repeat=repeat, timeout_s=timeout_s)
        try:
            return json.loads(answer) if answer.strip() else None
        except ValueError as error:
            raise HeliostatError("internal", f"the answer to {method} {target} is no JSON: {answer[:100].decode('utf-8', 'replace')}") from error

    def request(self, method: str, target: str, *, query: Optional[Query] = None, body: Body = None, headers: Optional[Mapping[str, str]] = None,
                repeat: Optional[bool] = None, timeout_s: Optional[float] = None) -> bytes:
        """The body of the answer. target: path below the daemon's address; query: its parameters, those that are None left out.

        repeat: may the request be sent again when its connection broke, so that it may have been carried out already? By default that holds
        for GET and PUT, which do no more when they come twice. Raises the exception of a problem document; Unavailable when no daemon answers
        or the connection broke; DeadlineExceeded when nothing came for `timeout_s`.
        """
        may_repeat = method in ("GET", "PUT") if repeat is None else repeat
        backoff: Optional[Backoff] = None
        while True:
            try:
                return self._exchange(method, target + _encoded(query), body, headers or {}, timeout_s or self._timeout_s)
            except Unavailable as error:
                if isinstance(error, Broken) and may_repeat and backoff is None:
                    backoff = Backoff(REPEAT_S)
                # A status says that the daemon itself has refused. Before a connection broke, a daemon that is not there is an error at once.
                if error.status or backoff is None:
                    raise
                backoff.lost(error)

    def stream(self, target: str, *, query: Optional[Query] = None, silence_s: float) -> Iterator[bytes]:
        """The body of a GET in pieces, as they come; they end only when it is whole.

        Raises the exception of a problem document; Unavailable when no daemon answers or the connection broke; Silent when nothing came for
        `silence_s`.
        """
        daemon = self._find()
        connection = _open(daemon, silence_s)
        try:
            try:
                connection.request("GET", _target(daemon, target + _encoded(query)), headers=_headers(daemon))
                response = connection.getresponse()
                refusal = response.read() if response.status >= 300 else None
            except (OSError, http.client.HTTPException) as error:
                raise _broken(daemon, error) from error
            if refusal is not None:
                raise problem_error(response.status, refusal)
            while True:
                try:
                    piece = response.read1(PIECE)
                    # Of a body whose length was told, read1() takes the end of the connection for its end.
                    if not piece and response.length:
                        raise http.client.IncompleteRead(b"", response.length)
                except socket.timeout as error:
                    raise Silent("deadline_exceeded", f"nothing came from {daemon.url} for {silence_s:g}s") from error
                except (OSError, http.client.HTTPException) as error:
                    raise _broken(daemon, error) from error
                if not piece:
                    return
                yield piece
        finally:
            connection.close()

    def _exchange(self, method: str, target: str, body: Body, headers: Mapping[str, str], timeout_s: float) -> bytes:
        """One try of request()."""
        connection, daemon = self._take(timeout_s)
        try:
            if body is not None and not isinstance(body, bytes):
                body.seek(0)  # a former try may have read it
            try:
                connection.request(method, _target(daemon, target), body, {**_headers(daemon), **headers})
            except (BrokenPipeError, ConnectionResetError):
                pass  # a refusal may have come before the body was taken: getresponse() tells
            response = connection.getresponse()
            answer = response.read()
        except socket.timeout as error:
            connection.close()
            raise DeadlineExceeded("deadline_exceeded", f"{daemon.url} did not answer {method} {target} within {timeout_s:g}s") from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _broken(daemon, error) from error
        except BaseException:  # Ctrl-C, say: half an answer is left in it
            connection.close()
            raise
        if response.will_close or len(self._idle) >= MOST_IDLE:
            connection.close()
        else:
            self._idle.append((connection, daemon))
        if response.status >= 300:
            raise problem_error(response.status, answer)
        return answer

    def _take(self, timeout_s: float) -> Tuple[Connection, Daemon]:
        if self._pid != os.getpid():  # after a fork: the connections are the parent's
            self._pid, self._idle = os.getpid(), collections.deque()
        while self._idle:
            try:
                connection, daemon = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if not _readable(connection.sock):
                connection.sock.settimeout(timeout_s)
                return connection, daemon
            connection.close()
        daemon = self._find()
        return _open(daemon, timeout_s), daemon


def _open(daemon: Daemon, timeout_s: float) -> Connection:
    parts = urllib.parse.urlsplit(daemon.url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        connection: Connection = http.client.HTTPSConnection(host, parts.port, timeout=timeout_s, blocksize=PIECE, context=_trust(daemon))
    else:
        connection = Connection(host, parts.port, timeout=timeout_s, blocksize=PIECE)
    try:
        connection.connect()
    except ssl.SSLError as error:
        hint = "give ca=, or set HELIOSTAT_CA to a file with its certificate"
        raise Unavailable("unavailable", f"no secret connection to {daemon.url} ({error}); if its certificate is its own, {hint}") from error
    except OSError as error:
        raise Unavailable("unavailable", f"no daemon answers at {daemon.url} ({error}); start it with `helio up`") from error
    return connection


def _trust(daemon: Daemon) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=daemon.ca)
    except OSError as error:
        raise InvalidArgument("invalid_argument", f"no certificates in {daemon.ca}: {error}", "ca") from error


def _readable(sock: socket.socket) -> bool:
    """An idle connection has nothing to read unless the daemon has closed it: so a request is not sent into the void."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _headers(daemon: Daemon) -> Dict[str, str]:
    return {"Authorization": f"Bearer {daemon.token}", "User-Agent": f"heliostat-python/{VERSION}"}


def _target(daemon: Daemon, target: str) -> str:
    return urllib.parse.urlsplit(daemon.url).path + target


def _encoded(query: Optional[Query]) -> str:
    pairs = [(name, ("false", "true")[value] if isinstance(value, bool) else value) for name, value in (query or {}).items() if value is not None]
    return "?" + urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote) if pairs else ""


def _broken(daemon: Daemon, error: Exception) -> Broken:
    return Broken("unavailable", f"the connection to {daemon.url} broke ({type(error).__name__}: {error}); the request may have been carried out")
