"""Talks to a daemon of its own for a benchmark: started on a fresh home, stopped and wiped at the end."""
import glob
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BIN = os.environ.get("HELIOSTAT_BIN", os.path.join(ROOT, "build", "release", "bin"))
CACHE = os.environ.get("HELIOSTAT_DEV_CACHE", os.path.expanduser("~/.cache/heliostat"))
PREFIX = os.environ.get("HELIOSTAT_RAY_PREFIX", os.path.join(CACHE, "images", "ray-2.60.0"))


class Daemon:
    def __init__(self, config="", cpu=None):
        self.home = tempfile.mkdtemp(prefix="hb", dir="/tmp")
        os.chmod(self.home, 0o700)
        if config:
            with open(f"{self.home}/config.yaml", "w", encoding="utf-8") as file:
                file.write(config)
        self.log = open(f"{self.home}/daemon.log", "wb")
        command = [f"{BIN}/heliostatd", "--home", self.home]
        if cpu is not None:
            command = ["taskset", "-c", str(cpu)] + command
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 30
        while True:
            try:
                with open(f"{self.home}/daemon.json", encoding="utf-8") as file:
                    self.url = json.load(file)["url"]
                with open(f"{self.home}/admin.token", encoding="utf-8") as file:
                    self.token = file.read().strip()
                if self.call("GET", "/v1/healthz")[0] == 200:
                    break
            except (OSError, ValueError, KeyError):
                pass
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("heliostatd did not come up: " + open(f"{self.home}/daemon.log", encoding="utf-8").read()[-2000:])
            time.sleep(0.02)

    @property
    def pid(self):
        return self.process.pid

    def call(self, method, path, body=None, headers=None):
        """(status, decoded JSON or bytes)."""
        parts = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
        try:
            data = json.dumps(body).encode() if body is not None else None
            connection.request(method, path, data, {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"} | (headers or {}))
            reply = connection.getresponse()
            raw = reply.read()
            try:
                return reply.status, json.loads(raw)
            except ValueError:
                return reply.status, raw
        finally:
            connection.close()

    def must(self, method, path, body=None):
        status, reply = self.call(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {reply}")
        return reply

    def add_image(self, name="default", prefix=PREFIX):
        self.must("PUT", f"/v1/images/{name}", {"name": name, "prefix": prefix})

    def submit(self, spec):
        return self.must("POST", "/v1/jobs", spec)["id"]

    def wait(self, job, limit=180):
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            row = self.must("GET", f"/v1/jobs/{job}/wait?timeout=30s")
            if row["state"] in ("succeeded", "failed", "stopped"):
                return row
        raise RuntimeError(f"job {job} did not end in {limit} s: {row['state']} ({row.get('reason')})")

    def attempts(self, job):
        reply = self.must("GET", f"/v1/jobs/{job}/attempts")
        return reply["items"] if isinstance(reply, dict) else reply

    def agents(self):
        """Pids of this home's agents: each is the first process of its node, so its end is the node's."""
        out = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                if open(path, "rb").read().startswith(self.home.encode() + b"/agents/"):
                    out.append(int(path.split("/")[2]))
            except OSError:
                continue
        return out

    def close(self):
        """Also after a failure: nodes go on without a daemon, so they are ended before their home is wiped."""
        for pid in self.agents():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


def cpu_seconds(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Rss:"):
                return int(line.split()[1]) / 1024
    return 0.0
