#!/usr/bin/env python3
"""Ray's Jobs API of heliostat beside that of a bare Ray cluster in the same run: each call goes to both, and the status codes, the keys of the
documents and the words that clients look for have to be the same. What differs on purpose is listed with its reason and printed.
"""
import argparse
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _by_hand import free_block
from _heliostat import PREFIX, ROOT, Daemon
from _rows import Rows, add_arguments, skip

sys.path.append(f"{ROOT}/tests/integration")
from stub import make_prefix  # noqa: E402

ZIP = b"PK\x05\x06" + bytes(18)
LONG = {"entrypoint": "echo out; sleep 300", "submission_id": "long", "metadata": {"a": "b"}, "runtime_env": {"env_vars": {"A": "1"}}}

# name, method, path, body (object, bytes or None), words that the answer of both must hold
CALLS = [
    ("version", "GET", "/api/version", None, []),
    ("ray version", "GET", "/api/ray/version", None, []),
    ("version, head", "HEAD", "/api/version", None, []),
    ("version, wrong method", "PUT", "/api/version", None, []),
    ("unknown path", "GET", "/api/nope", None, []),
    ("no package", "GET", "/api/packages/gcs/_ray_pkg_00000000000000aa.zip", None, ["does not exist"]),
    ("put package", "PUT", "/api/packages/gcs/_ray_pkg_00000000000000bb.zip", ZIP, []),
    ("package is there", "GET", "/api/packages/gcs/_ray_pkg_00000000000000bb.zip", None, []),
    ("package protocol", "GET", "/api/packages/s3/a.zip", None, []),
    ("submit", "POST", "/api/jobs/", LONG, ["long"]),
    ("same id again", "POST", "/api/jobs/", LONG, ["already exists", "Please use a different submission_id"]),
    ("submit by the old name of the id", "POST", "/api/jobs/", {"entrypoint": "true", "job_id": "short"}, ["short"]),
    ("submit without an id", "POST", "/api/jobs/", {"entrypoint": "true"}, ["raysubmit_"]),
    ("submit nulls", "POST", "/api/jobs/", {"entrypoint": "true", "submission_id": "nulls", "metadata": None, "runtime_env": None, "entrypoint_num_cpus": None}, []),
    ("unknown field", "POST", "/api/jobs/", {"entrypoint": "true", "colour": "red"}, ["got an unexpected keyword argument"]),
    ("no entrypoint", "POST", "/api/jobs/", {"submission_id": "x"}, []),
    ("entrypoint of a wrong type", "POST", "/api/jobs/", {"entrypoint": 3}, ["entrypoint must be a string"]),
    ("id of a wrong type", "POST", "/api/jobs/", {"entrypoint": "true", "submission_id": 3}, ["must be a string"]),
    ("metadata of a wrong type", "POST", "/api/jobs/", {"entrypoint": "true", "metadata": {"a": 1}}, []),
    ("runtime_env of a wrong type", "POST", "/api/jobs/", {"entrypoint": "true", "runtime_env": []}, []),
    ("memory as a float", "POST", "/api/jobs/", {"entrypoint": "true", "entrypoint_memory": 1.5}, []),
    ("not JSON", "POST", "/api/jobs/", b"{", []),
    ("job", "GET", "/api/jobs/long", None, ["SUBMISSION"]),
    ("list", "GET", "/api/jobs/", None, ["long", "short"]),
    ("list without a slash", "GET", "/api/jobs", None, []),
    ("logs", "GET", "/api/jobs/long/logs", None, ["out"]),
    ("delete what runs", "DELETE", "/api/jobs/long", None, ["but it is in a non-terminal state"]),
    ("stop", "POST", "/api/jobs/long/stop", None, ["true"]),
    ("stop again, when it is over", "POST", "/api/jobs/long/stop", None, ["false"]),
    ("job after its end", "GET", "/api/jobs/long", None, ["STOPPED", "Job was intentionally stopped."]),
    ("logs after its end", "GET", "/api/jobs/long/logs", None, ["out"]),
    ("delete", "DELETE", "/api/jobs/long", None, ["true"]),
    ("job that is gone", "GET", "/api/jobs/long", None, ["does not exist"]),
    ("stop of what is gone", "POST", "/api/jobs/long/stop", None, ["does not exist"]),
    ("delete of what is gone", "DELETE", "/api/jobs/long", None, ["does not exist"]),
    ("logs of what is gone", "GET", "/api/jobs/long/logs", None, ["does not exist"]),
]

ON_PURPOSE = {
    "version, wrong method": "what the server refuses before it knows whose path it is, it refuses with a problem document",
    "unknown path": "the same",
    "not JSON": "Ray answers 500 to a body that is no JSON",
    "list without a slash": "Ray knows no such path; a redirect would lose the body of a POST, so both forms work",
}


def exchange(host, port, prefix, headers, call):
    _, method, path, body, _ = call
    connection = http.client.HTTPConnection(host, port, timeout=60)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, prefix + path, data, headers)
        reply = connection.getresponse()
        text = reply.read().decode(errors="replace")
    finally:
        connection.close()
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return reply.status, document, text


def keys(document):
    """The shape of an answer: the keys of its document, or of the documents in its list."""
    if isinstance(document, dict):
        return sorted(document)
    if isinstance(document, list):
        return sorted({key for item in document if isinstance(item, dict) for key in item})
    return None


class Bare:
    """A Ray cluster of one node, started with the fewest flags that let it live beside others."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="bj", dir="/tmp")
        base = free_block(1)
        self.port = base + 1
        self.output = open(f"{self.root}/out", "wb")
        self.process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", f"{PREFIX}/bin/ray", "start", "--head", "--block", "--node-ip-address=127.0.0.1",
             f"--port={base}", "--dashboard-host=127.0.0.1", f"--dashboard-port={self.port}", f"--ray-client-server-port={base + 2}",
             f"--dashboard-agent-listen-port={base + 3}", f"--min-worker-port={base + 20}", f"--max-worker-port={base + 99}", f"--temp-dir={self.root}", "--num-cpus=2", "--disable-usage-stats",
             "--object-store-memory=100000000"],
            env={"PATH": f"{PREFIX}/bin:/usr/bin:/bin", "HOME": self.root, "RAY_AUTH_MODE": "disabled"}, stdout=self.output, stderr=self.output,
            stdin=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 90
        while not self.up(base + 3):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("the bare cluster did not come up: " + open(f"{self.root}/out", encoding="utf-8").read()[-2000:])
            time.sleep(0.1)

    def up(self, agent):
        for port in (self.port, agent):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) != 0:
                    return False
        try:
            return exchange("127.0.0.1", self.port, "", {}, CALLS[0])[0] == 200
        except OSError:
            return False

    def close(self):
        self.process.kill()
        self.process.wait()
        self.output.close()
        shutil.rmtree(self.root, ignore_errors=True)


def settle(ask, call):
    """Lets the job get where the next call needs it: running with its output there, or over."""
    name = call[0]

    def until(check):
        deadline = time.monotonic() + 60
        while not check():
            if time.monotonic() > deadline:
                raise RuntimeError(f"before '{name}': not within 60 s")
            time.sleep(0.1)

    get = ("", "GET", "/api/jobs/long", None, [])
    if name == "job":
        until(lambda: "RUNNING" in ask(get)[2] and "out" in ask(("", "GET", "/api/jobs/long/logs", None, []))[2])
    if name == "stop again, when it is over":
        until(lambda: "STOPPED" in ask(get)[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    args = parser.parse_args()
    if not os.path.exists(f"{PREFIX}/bin/ray"):
        return skip(args, f"no Ray at {PREFIX}; ./dev setup makes it")
    rows = Rows("jobs_api")
    work = tempfile.mkdtemp(prefix="bw", dir="/tmp")
    daemon = Daemon()
    bare = None
    differ, intended = [], []
    try:
        daemon.add_image(prefix=str(make_prefix(Path(work) / "prefix")))
        bare = Bare()
        host, port = daemon.url.split("//")[1].split(":")
        ours_headers = {"Authorization": f"Bearer {daemon.token}", "Content-Type": "application/json"}
        sides = {"ours": lambda call: exchange(host, int(port), "/ray/default", ours_headers, call),
                 "ray": lambda call: exchange("127.0.0.1", bare.port, "", {"Content-Type": "application/json"}, call)}
        for call in CALLS:
            got = {}
            for side, ask in sides.items():
                if call[0] == "delete":  # nodes go a moment after their job: it is asked again until then
                    answer = None
                    deadline = time.monotonic() + 60
                    while answer is None or (answer[0] != 200 and time.monotonic() < deadline):
                        answer = ask(call)
                    got[side] = answer
                    continue
                settle(ask, call)
                got[side] = ask(call)
            ours, ray = got["ours"], got["ray"]
            same = ours[0] == ray[0] and keys(ours[1]) == keys(ray[1]) and all(word in ours[2] and word in ray[2] for word in call[4])
            if same:
                continue
            line = f"{call[0]}: ours {ours[0]} {keys(ours[1])} {ours[2][:160]!r}, Ray {ray[0]} {keys(ray[1])} {ray[2][:160]!r}"
            (intended if call[0] in ON_PURPOSE else differ).append(line)
    finally:
        if bare:
            bare.close()
        daemon.close()
        shutil.rmtree(work, ignore_errors=True)
    for line in intended:
        print(f"on purpose ({ON_PURPOSE[line.split(':')[0]]}): {line}")
    for line in differ:
        print(f"DIFFERS  {line}")
    rows.add("calls that are answered as Ray answers them, but for those that differ on purpose", "calls", len(CALLS) - len(differ), len(CALLS),
             target=len(CALLS), at_most=False)
    return rows.finish(args)


if __name__ == "__main__":
    sys.exit(main())
