"""One heliostat for a test: its own data folder, its daemon, its CLI, and what it may not leave behind."""
import hashlib
import http.client
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.parse
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("HELIOSTAT_BIN", ROOT / "build/release/bin"))
IMAGES = Path(os.environ.get("HELIOSTAT_IMAGES", Path.home() / ".cache/heliostat/images"))
ENDED = ("succeeded", "failed", "stopped")
LIVING = ("queued", "starting", "running", "restarting", "suspended", "stopping")


def eventually(what, check, seconds=10.0, pause=0.05):
    """The first true value of check(); fails naming `what` after so long."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds}s: {what() if callable(what) else what}")
        time.sleep(pause)


def processes_tagged(text):
    """(pid, command) of every process whose environment has a node id with this text."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes()
            if f"RAY_CLOUD_INSTANCE_ID={text}".encode() in environment:
                found.append((int(entry), Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")))
        except OSError:
            continue
    return found


def listening_ports():
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


class Heliostat:
    def __init__(self, folder=None, settings=None):
        self.home = Path(folder or tempfile.mkdtemp(prefix="helio-it-"))
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("HELIOSTAT_", "RAY_"))}
        self.env["HELIOSTAT_HOME"] = str(self.home)
        self.env["HELIOSTAT_INTEGRATION"] = "1"
        if settings:
            (self.home / "config.yaml").write_text(json.dumps(settings))

    # --- the CLI --------------------------------------------------------------------------------------------------------------------
    def helio(self, *args, timeout=60, check=None, env=None, cwd=None, stdin=None):
        """Runs the CLI; `check` is the exit code that is expected."""
        done = subprocess.run([str(BIN / "helio"), *map(str, args)], env={**self.env, **(env or {})}, cwd=cwd, capture_output=True, text=True,
                              timeout=timeout, input=stdin)
        if check is not None and done.returncode != check:
            raise AssertionError(f"helio {' '.join(map(str, args))} ended with {done.returncode}, expected {check}\n--- stdout\n{done.stdout[-3000:]}"
                                 f"\n--- stderr\n{done.stderr[-3000:]}\n--- daemon\n{self.daemon_log()[-2000:]}")
        return done

    def popen(self, *args, **options):
        return subprocess.Popen([str(BIN / "helio"), *map(str, args)], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def submit(self, *args, check=0, **options):
        """Id of a new job."""
        return json.loads(self.helio("submit", "-o", "json", *args, check=check, **options).stdout)["id"]

    def wait(self, job, timeout=120):
        """The job's document once it has ended."""
        return json.loads(self.helio("wait", "-o", "json", "--timeout", f"{timeout}s", job, timeout=timeout + 30).stdout)

    def add_image(self, name, prefix, *flags):
        self.helio("image", "add", name, "--python", prefix, *flags, check=0)

    # --- the daemon -----------------------------------------------------------------------------------------------------------------
    def up(self):
        self.helio("up", check=0)
        return self

    def daemon_file(self):
        return json.loads((self.home / "daemon.json").read_text())

    @property
    def pid(self):
        return self.daemon_file()["pid"]

    def kill9(self):
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        eventually("the daemon is dead", lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text(), pause=0.005)

    def daemon_log(self):
        file = self.home / "daemon.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def down(self):
        self.helio("down", check=0)

    # --- the API --------------------------------------------------------------------------------------------------------------------
    @property
    def token(self):
        return (self.home / "admin.token").read_text().strip()

    def connect(self, timeout=30):
        url = urllib.parse.urlsplit(self.daemon_file()["url"])
        return http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)

    def api(self, method, path, body=None, token=None, headers=None):
        """(status, decoded body)."""
        connection = self.connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            text = reply.read()
            return reply.status, json.loads(text) if text and "json" in (reply.getheader("Content-Type") or "") else text.decode()
        finally:
            connection.close()

    def get(self, path):
        status, body = self.api("GET", path)
        assert status == 200, f"{path}: {status} {body}"
        return body

    def job(self, job):
        return self.get(f"/v1/jobs/{job}")

    def attempts(self, job):
        return self.get(f"/v1/jobs/{job}/attempts")["items"]

    def nodes(self, job):
        return self.get(f"/v1/jobs/{job}/nodes")["items"]

    def until(self, job, states, seconds=60):
        """The job once it is in one of `states`."""
        def check():
            row = self.job(job)
            if row["state"] in ENDED and row["state"] not in states:
                raise AssertionError(f"{job} {row['state']} instead of {states}: {row.get('verdict')}")
            return row if row["state"] in states else None
        return eventually(lambda: f"{job} is {states}, not {self.job(job)['state']}: {self.job(job)['reason']}", check, seconds)

    # --- what may not be left -------------------------------------------------------------------------------------------------------
    @property
    def home_id(self):
        return hashlib.sha256(os.path.realpath(self.home).encode()).hexdigest()

    def left_by(self, job, nodes):
        """Processes, ports, cgroups and files of a job that has ended."""
        left = [f"process {pid}: {command[:120]}" for pid, command in processes_tagged(job)]
        open_ports = listening_ports()
        for node in nodes:
            base = node.get("port_base") or 0
            left += [f"port {p} of {node['id']}" for p in range(base, base + 100) if base and p in open_ports]
        return left

    def left(self):
        """What nodes of this home have left, when none should be there."""
        left = [f"process {pid}: {command[:120]}" for pid, command in processes_tagged("j-") if self.owns(pid)]
        left += [f"folder {path}" for path in (self.home / "nodes").glob("*")] if (self.home / "nodes").exists() else []
        session = Path(f"/tmp/hs{os.geteuid()}") / self.home_id[:4]
        if session.exists():
            left += [f"session {path}" for path in session.glob("*/*")]
        for folder, below, _ in os.walk("/sys/fs/cgroup"):  # folders may go meanwhile
            if os.path.basename(folder) == f"heliostat-{self.home_id[:8]}":
                left += [f"cgroup {folder}/{name}" for name in below]
        return left

    def owns(self, pid):
        try:
            return str(self.home).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False

    def assert_nothing_left(self, seconds=10):
        eventually(lambda: "nothing is left: " + "; ".join(self.left()), lambda: not self.left(), seconds)

    def close(self):
        """Ends everything of this home; what is left then is a failure."""
        if not (self.home / "daemon.json").exists():
            return
        try:
            self.helio("up")
            self.helio("down", "--stop-jobs", timeout=120)
            self.assert_nothing_left()
        finally:
            for pid, _ in processes_tagged("j-"):
                if self.owns(pid):
                    os.kill(pid, signal.SIGKILL)


def marks(attempt):
    return {mark["name"]: mark["at"] for mark in attempt["marks"]}


def seconds_between(first, second):
    """Of two times as the API writes them."""
    return (datetime.fromisoformat(second.replace("Z", "+00:00")) - datetime.fromisoformat(first.replace("Z", "+00:00"))).total_seconds()
