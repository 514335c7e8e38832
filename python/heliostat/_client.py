"""The daemon's API as methods."""
from __future__ import annotations

import json
import time
import urllib.parse
import uuid
from datetime import datetime
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from ._connect import find
from ._errors import DeadlineExceeded, HeliostatError, InvalidArgument, NotFound, PreconditionFailed, Unavailable, problem_error
from ._http import Backoff, Http, Silent
from ._model import Model, format_time, to_json
from ._models import Attempt, EventView, ExplanationView, Job, JobSpec, Node, PreviewView, StreamView, VersionView
from ._package import Package, pack_code
from ._spec import build_cluster, build_spec
from ._sse import SseParser

TERMINAL_STATES = ("succeeded", "failed", "stopped")
"""States in which a job stays."""

WAIT_S = 60.0  # of one request
WAIT_SILENCE_S = 45.0  # the daemon says something every 15 s
EVENT_SILENCE_S = 45.0
LOG_SILENCE_S = 60.0  # a quiet program: the log is asked for again, from where it stands
PAGE = 200

M = TypeVar("M", bound=Model)
JobLike = Union[str, Job]
Since = Union[str, datetime]


class Client:
    """One daemon. Any thread; after a fork, the child's requests open connections of their own.

    Every method that talks to the daemon raises HeliostatError: a subclass for what the daemon answered, Unavailable when no daemon answers or
    the connection broke, DeadlineExceeded when it did not answer in time. Where a job is asked for, its id or a Job will do.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, ca: Optional[str] = None, timeout: float = 30.0,
                 patience: float = 300.0):
        """url: else HELIOSTAT_URL, else the daemon that runs with HELIOSTAT_HOME (~/.heliostat). token: else HELIOSTAT_TOKEN, else that home's.
        ca: PEM file of certificates to trust for https, else HELIOSTAT_CA, else the system's.

        timeout: seconds without a byte of an answer. patience: seconds for which wait(), follow() and a watch put up with a daemon that is
        away. Nothing is sent yet. Raises InvalidArgument for a URL that is none.
        """
        self._http = Http(find(url, token, ca), timeout)
        self._patience_s = patience

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections. The client can still be used."""
        self._http.close()

    # --- submitting ----------------------------------------------------------------------------------------------------------------
    def submit(self, spec: Union[JobSpec, Mapping[str, Any], None] = None, *, entrypoint: Any = None, workers: Any = None, env: Any = None,
               working_dir: Any = None, py_modules: Optional[Sequence[Any]] = None, excludes: Sequence[str] = (),
               idempotency_key: Optional[str] = None, **fields: Any) -> Job:
        """Submits a job and returns it; it need not have started.

        spec: a whole job, as a JobSpec or as a job file has it; what else is given wins over it.
        entrypoint: a str is one shell line, a list are words that are passed verbatim, an Entrypoint or dict is taken as it is.
        workers: how many, or the groups as a list of WorkerGroup or dict. env: a dict of variables, or a list of EnvVar.
        working_dir, py_modules: local folders or zips, which are uploaded, or URLs. excludes: .gitignore patterns of what stays at home.
        idempotency_key: the same key with the same job gives the job that the first call made; by default, one of this call's own.
        fields: any other field of the job file: image, name, priority, retries, limits, runtime_env, requirements, labels, ...

        A connection that breaks is no danger: the request is sent again under its key. Raises InvalidArgument with the path of the field, and
        what cannot be packed or sent: NotFound, ResourceExhausted, PermissionDenied.
        """
        document = build_spec(spec, entrypoint, workers, env, working_dir, py_modules, fields)
        packages = pack_code(document, excludes)
        try:
            if packages:
                # A wrong field is told before an upload that nobody needs.
                self._http.json("POST", "/v1/jobs:preview", body=document, repeat=True)
            for package in packages:
                self._upload(package)
        finally:
            for package in packages:
                package.close()
        return _read(Job, self._http.json("POST", "/v1/jobs", body=document, headers=_key(idempotency_key), repeat=True))

    def preview(self, spec: Union[JobSpec, Mapping[str, Any], None] = None, *, entrypoint: Any = None, workers: Any = None, env: Any = None,
                working_dir: Any = None, py_modules: Optional[Sequence[Any]] = None, excludes: Sequence[str] = (), **fields: Any) -> PreviewView:
        """What submit() would do, every default filled in. Nothing is stored or uploaded. Arguments and errors are submit()'s."""
        document = build_spec(spec, entrypoint, workers, env, working_dir, py_modules, fields)
        for package in pack_code(document, excludes):
            package.close()
        return _read(PreviewView, self._http.json("POST", "/v1/jobs:preview", body=document, repeat=True))

    def rerun(self, job: JobLike, *, idempotency_key: Optional[str] = None) -> Job:
        """Submits the same job again, on a new cluster, and returns the new one. Raises NotFound."""
        return _read(Job, self._http.json("POST", _path(job, "/rerun"), headers=_key(idempotency_key), repeat=True))

    # --- jobs ----------------------------------------------------------------------------------------------------------------------
    def get(self, job: JobLike) -> Job:
        """A job as it is now. Raises NotFound."""
        return _read(Job, self._http.json("GET", _path(job)))

    def list(self, *, state: Union[str, Iterable[str], None] = None, workspace: Optional[str] = None, order: str = "newest",
             limit: Optional[int] = None) -> List[Job]:
        """Jobs, the newest first (order="oldest": the other way). state: one or several; limit: at most so many, else all."""
        states = state if state is None or isinstance(state, str) else ",".join(state)
        jobs: List[Job] = []
        cursor = None
        while limit is None or len(jobs) < limit:
            want = PAGE if limit is None else min(PAGE, limit - len(jobs))
            query = {"state": states, "workspace": workspace, "order": order, "limit": want, "cursor": cursor}
            page = self._http.json("GET", "/v1/jobs", query=query)
            jobs += _items(Job, page)
            cursor = page.get("next")
            if not cursor:
                break
        return jobs

    def wait(self, job: JobLike, timeout: Optional[float] = None) -> Job:
        """Returns the job when it has ended, however it ended: look at `state`, `exit_code` and `verdict`.

        timeout: seconds; else for ever. Survives a restart of the daemon. Raises NotFound, and DeadlineExceeded (a TimeoutError) when the job
        goes on after `timeout`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        now = self.get(job)
        backoff = Backoff(self._patience_s)
        lost: Optional[HeliostatError] = None
        while now.state not in TERMINAL_STATES:
            left = WAIT_S if deadline is None else min(WAIT_S, deadline - time.monotonic())
            if left <= 0:
                why = f"job '{now.id}' is still {now.state} after {timeout:g}s: {now.reason}"
                if lost is not None:
                    why = f"job '{now.id}' was {now.state} when it was last seen, {timeout:g}s are over, and {lost.detail}"
                raise DeadlineExceeded("deadline_exceeded", why, arguments={"job": str(now.id), "state": str(now.state)}) from lost
            try:
                answer = self._http.json("GET", _path(job, "/wait"), query={"timeout": f"{left:.3f}s"}, repeat=False, timeout_s=WAIT_SILENCE_S)
            except (Unavailable, DeadlineExceeded) as error:
                lost = error
                backoff.lost(error)
                continue
            lost = None
            backoff.progress()
            if isinstance(answer, dict) and isinstance(answer.get("status"), int):
                # It went wrong after the status line was out, so the problem document came as the answer.
                raise problem_error(answer["status"], json.dumps(answer).encode())
            now = _read(Job, answer)
        return now

    def stop(self, job: JobLike) -> Job:
        """Asks a job to stop, whatever it is doing, and returns at once; wait() tells when it has ended. Of a job that has ended, gives back the
        nodes that were kept for inspection. Raises NotFound, PermissionDenied."""
        return _read(Job, self._http.json("POST", _path(job, "/stop")))

    def remove(self, job: JobLike) -> None:
        """Removes an ended job with its logs and files. Raises NotFound, PermissionDenied, and PreconditionFailed while it or
        a node of it lives."""
        self._http.request("DELETE", _path(job))

    def explain(self, job: JobLike) -> ExplanationView:
        """Why a job is where it is, and what would help. Raises NotFound."""
        return _read(ExplanationView, self._http.json("GET", _path(job, "/explain")))

    def attempts(self, job: JobLike) -> List[Attempt]:
        """The attempts of a job, each with its verdict. Raises NotFound."""
        return _items(Attempt, self._http.json("GET", _path(job, "/attempts")))

    def nodes(self, job: Optional[JobLike] = None) -> List[Node]:
        """The nodes of a job over all its attempts; without a job, all that live. Raises NotFound."""
        return _items(Node, self._http.json("GET", "/v1/nodes" if job is None else _path(job, "/nodes")))

    # --- long-lived clusters ---------------------------------------------------------------------------------------------------------
    def create_cluster(self, name: str, *, workers: Any = None, env: Any = None, idle: Any = None, wait: bool = True,
                       idempotency_key: Optional[str] = None, **fields: Any) -> Job:
        """Makes a long-lived cluster and returns its job: wherever a job is asked for, it will do.

        workers, env: as in submit(). idle: it is shut down after so long without use ("2h"; "0s": never). wait: until it is ready; False
        returns at once. fields: image, head, limits, retries, priority, labels, ... Raises Conflict while another one lives that has the
        name, InvalidArgument with the path of a field, and PreconditionFailed when it ends instead of becoming ready.
        """
        document = build_cluster(name, workers, env, idle, fields)
        job = _read(Job, self._http.json("POST", "/v1/clusters", body=document, headers=_key(idempotency_key), repeat=True))
        return self._until_ready(job) if wait else job

    def cluster(self, name: str) -> Job:
        """The job of the long-lived cluster that has this name, or had it last; "running" means ready. Raises NotFound."""
        return _read(Job, self._http.json("GET", _cluster_path(name)))

    def clusters(self, *, ended: bool = False) -> List[Job]:
        """Long-lived clusters by their names. ended: the last of each name, whether or not it lives."""
        return _items(Job, self._http.json("GET", "/v1/clusters", query={"ended": ended or None}))

    def scale_cluster(self, name: str, count: int, *, group: Optional[str] = None) -> Job:
        """Asks a long-lived cluster for another number of workers, and returns at once: more come when there is room for all of them, of fewer the
        last leave when their work has ended. group: of workers, where there are several. Raises NotFound, PermissionDenied, InvalidArgument,
        ResourceExhausted when there can never be so many, PreconditionFailed when it has ended."""
        body = {"count": count} if group is None else {"count": count, "group": group}
        return _read(Job, self._http.json("POST", _cluster_path(name) + "/scale", body=body))

    def delete_cluster(self, name: str) -> Job:
        """Takes a long-lived cluster down, with all that runs in it, and returns at once; wait() tells when it is gone. Its record stays.
        Raises NotFound, PermissionDenied."""
        return _read(Job, self._http.json("DELETE", _cluster_path(name)))

    def _until_ready(self, job: Job) -> Job:
        for event in self.events(job, watch=True):
            if event.kind not in ("job", None):
                continue
            now = self.get(job)
            if now.state == "running":
                return now
            if now.state in TERMINAL_STATES:
                raise PreconditionFailed("precondition_failed", f"the cluster is {now.state}: {now.reason}", arguments={"job": str(now.id)})
        raise Unavailable("unavailable", "the daemon ended the watch")

    # --- logs ----------------------------------------------------------------------------------------------------------------------
    def logs(self, job: JobLike, *, node: Optional[str] = None, stream: str = "driver", attempt: int = 0, offset: int = 0, limit: int = -1,
             since: Optional[Since] = None, grep: Optional[str] = None) -> str:
        """What a job has printed so far, over all its attempts. Bytes that are no UTF-8 are replaced.

        node: head, w1, ..., or a node id, else the one that ran the entrypoint. stream: see streams(). attempt: its number, 0 for all.
        offset: first byte; negative: so many before the end. limit: at most so many bytes, -1 for all. since: a time, or how far back: "10m".
        grep: only lines that match this RE2 pattern. Raises NotFound, and InvalidArgument with the path of the parameter.
        """
        return self.logs_bytes(job, node=node, stream=stream, attempt=attempt, offset=offset, limit=limit, since=since,
                               grep=grep).decode("utf-8", "replace")

    def logs_bytes(self, job: JobLike, *, node: Optional[str] = None, stream: str = "driver", attempt: int = 0, offset: int = 0, limit: int = -1,
                   since: Optional[Since] = None, grep: Optional[str] = None) -> bytes:
        """As logs(), byte by byte as it was printed."""
        query = {"node": node, "stream": stream, "attempt": attempt, "offset": offset, "limit": limit, "grep": grep,
                 "since": format_time(since) if isinstance(since, datetime) else since}
        return self._http.request("GET", _path(job, "/logs"), query=query)

    def follow(self, job: JobLike, *, node: Optional[str] = None, stream: str = "driver", attempt: int = 0, offset: int = 0) -> Iterator[str]:
        """The lines of a log as they are printed, without their ends, until the job has ended.

        Starts at byte `offset` (not negative) of the whole log, so that what was printed before comes first. Survives broken connections and a
        restart of the daemon: it goes on at the byte where it stood, no line lost or doubled. Arguments and errors are those of logs().
        """
        if offset < 0:
            raise InvalidArgument("invalid_argument", "expected the first byte, 0 or more", "offset")
        return self._lines(job, {"node": node, "stream": stream, "attempt": attempt}, offset)

    def _lines(self, job: JobLike, selection: Dict[str, Any], offset: int) -> Iterator[str]:
        partial = b""
        for piece in self._pieces(job, selection, offset):
            *lines, partial = (partial + piece).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace")
        if partial:
            yield partial.decode("utf-8", "replace")

    def _pieces(self, job: JobLike, selection: Dict[str, Any], offset: int) -> Iterator[bytes]:
        self.get(job)  # what is wrong from the start is told at once
        backoff = Backoff(self._patience_s)
        while True:
            try:
                for piece in self._http.stream(_path(job, "/logs"), query={**selection, "offset": offset, "follow": True}, silence_s=LOG_SILENCE_S):
                    backoff.progress()
                    offset += len(piece)
                    yield piece
                # A clean end is the end of the log only when the job has ended too.
                if self.get(job).state in TERMINAL_STATES:
                    return
                raise Unavailable("unavailable", "the daemon ended the log of a job that goes on")
            except Silent:
                backoff.progress()  # a quiet program is no broken connection
            except (Unavailable, DeadlineExceeded) as error:
                backoff.lost(error)

    def streams(self, job: JobLike) -> List[StreamView]:
        """The log streams of a job. Raises NotFound."""
        return _items(StreamView, self._http.json("GET", _path(job, "/streams")))

    # --- events --------------------------------------------------------------------------------------------------------------------
    def events(self, job: Optional[JobLike] = None, *, since: int = 0, kind: Optional[str] = None, id: Optional[str] = None,
               watch: bool = False) -> Iterator[EventView]:
        """What happened, in order of `revision`: to one job, or to everything.

        since: only what has a greater revision. kind, id: only of such a resource. watch: then goes on with what happens, until you leave the
        loop; survives broken connections and a restart of the daemon, nothing lost or doubled. A watch that was away for longer than events
        are kept gives one of type "resync" and goes on from there. Raises NotFound for a job that is not there.
        """
        target = "/v1/events" if job is None else _path(job, "/events")
        query: Dict[str, Any] = {"kind": kind, "id": id}
        while True:
            page = self._http.json("GET", target, query={**query, "since": since})
            for event in _items(EventView, page):
                since = max(since, event.revision or 0)
                yield event
            if not page.get("next"):
                break
            since = int(page["next"])
        if watch:
            yield from self._watch(target, query, since)

    def _watch(self, target: str, query: Dict[str, Any], since: int) -> Iterator[EventView]:
        backoff = Backoff(self._patience_s)
        while True:
            parser = SseParser()
            try:
                for piece in self._http.stream(target, query={**query, "since": since, "watch": True}, silence_s=EVENT_SILENCE_S):
                    backoff.progress()
                    for message in parser.feed(piece):
                        event = _read(EventView, message.json())
                        if message.type == "resync":
                            event.type, event.message = message.type, str(message.json().get("reason"))
                        since = max(since, event.revision or 0)
                        yield event
                raise Unavailable("unavailable", "the daemon ended the watch")
            except (Unavailable, DeadlineExceeded) as error:
                backoff.lost(error)

    # --- the rest ------------------------------------------------------------------------------------------------------------------
    def version(self) -> VersionView:
        """The version of the daemon."""
        return _read(VersionView, self._http.json("GET", "/v1/version"))

    def request(self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None, body: Any = None) -> Any:
        """Any other route of /v1/openapi.json: sends `body` as JSON and returns the decoded answer, None when it is empty.

        `path` starts with /v1/. Raises the exception of a problem document.
        """
        return self._http.json(method, path, query=query, body=None if body is None else to_json(body))

    def _upload(self, package: Package) -> None:
        target = "/v1/packages/" + package.sha256
        try:
            self._http.json("GET", target)
        except NotFound:
            size = package.file.seek(0, 2)
            self._http.request("PUT", target, body=package.file, headers={"Content-Type": "application/zip", "Content-Length": str(size)})


def _path(job: JobLike, rest: str = "") -> str:
    job_id = job.id if isinstance(job, Job) else job
    if not isinstance(job_id, str) or not job_id:
        raise InvalidArgument("invalid_argument", f"expected the id of a job, not {job_id!r}", "job")
    return "/v1/jobs/" + urllib.parse.quote(job_id, safe="") + rest


def _cluster_path(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidArgument("invalid_argument", f"expected the name of a cluster, not {name!r}", "name")
    return "/v1/clusters/" + urllib.parse.quote(name, safe="")


def _key(idempotency_key: Optional[str]) -> Dict[str, str]:
    return {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}


def _read(cls: Type[M], document: Any) -> M:
    try:
        return cls.from_dict(document)
    except TypeError as error:
        raise HeliostatError("internal", f"the daemon's answer is not what this SDK expects: {error}") from error


def _items(cls: Type[M], page: Any) -> List[M]:
    if not isinstance(page, dict) or not isinstance(page.get("items"), list):
        raise HeliostatError("internal", "the daemon's answer is not what this SDK expects: a list has no items")
    return [_read(cls, item) for item in page["items"]]
