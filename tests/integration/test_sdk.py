"""The Python SDK against a real daemon, and heliostat:// in Ray's own clients. The jobs run on a stub of Ray."""
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from unittest import mock

import pytest

from conftest import ray_prefix
from heliostat import ROOT, eventually

PACKAGE = ROOT / "python" / "heliostat"


def load_sdk():
    """The SDK by another name: `heliostat` is a module of these tests."""
    spec = importlib.util.spec_from_file_location("heliostat_sdk", PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE)])
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sdk = load_sdk()


def client_of(daemon, **arguments):
    """A client in the environment of a daemon's user."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("HELIOSTAT_")}
    with mock.patch.dict(os.environ, {**names, "HELIOSTAT_HOME": str(daemon.home)}, clear=True):
        return sdk.Client(**arguments)


@pytest.fixture
def client(daemon):
    with client_of(daemon) as it:
        yield it


@pytest.fixture
def code(tmp_path):
    folder = tmp_path / "code"
    (folder / "data").mkdir(parents=True)
    (folder / "main.py").write_text("import os, sys\nprint('hello', *sys.argv[1:], *sorted(os.listdir('.')))\nsys.exit(int(sys.argv[1]))\n")
    (folder / "data" / "big.bin").write_bytes(b"x" * 100)
    (folder / ".rayignore").write_text("*.bin\n")
    return folder


def test_the_first_ten_lines(client, code):
    job = client.submit(entrypoint=["python3", "main.py", "3", "two words"], workers=1, working_dir=code, name="ten", labels={"team": "vision"})
    assert job.spec.name == "ten" and job.spec.labels == {"team": "vision"} and job.spec.workers[0].count == 1
    assert list(client.follow(job.id)) == ["hello 3 two words .rayignore main.py"]
    ended = client.wait(job.id, timeout=60)
    assert (ended.state, ended.exit_code, ended.verdict.cause) == ("failed", 3, "entrypoint.exit")
    assert ended.created <= ended.first_admitted <= ended.finished
    assert client.logs(job) == "hello 3 two words .rayignore main.py\n" and client.logs_bytes(job, offset=-5) == b"n.py\n"
    assert client.logs(job, grep="nothing of it") == ""


@pytest.mark.parametrize("entrypoint, printed", [
    ("echo one | tr a-z A-Z", "ONE\n"), (["echo", "$HOME", "a b"], "$HOME a b\n"),
    (sdk.Entrypoint(script="import os\nprint(os.environ['A'])\n", language="python"), "from the job\n")])
def test_ways_to_say_what_to_run(client, entrypoint, printed):
    job = client.submit(entrypoint=entrypoint, env={"A": "from the job"})
    assert client.wait(job, timeout=60).state == "succeeded" and client.logs(job) == printed


def test_a_whole_spec_and_a_preview(client):
    spec = sdk.JobSpec(entrypoint=sdk.Entrypoint(argv=["true"]), name="whole", limits=sdk.Limits(run="1h"), retries=sdk.RetryPolicy(user=2),
                       env=[sdk.EnvVar("K", "hidden", secret=True)])
    preview = client.preview(spec, workers=2)
    assert len(preview.gang) == 3 and preview.spec.limits.run == 3600 and preview.spec.limits.readiness == 600
    job = client.submit(spec, priority=7)
    assert (job.spec.priority, job.spec.retries.user, job.spec.env[0].value) == (7, 2, "***")
    again = client.submit({"entrypoint": {"argv": ["true"]}, "name": "from a dict"})
    assert {client.wait(one, timeout=60).state for one in (job, again)} == {"succeeded"}


def test_the_same_folder_is_stored_once(client, daemon, code):
    before = set((daemon.home / "packages").glob("*.zip"))
    (code / "only-here.txt").write_text("1")
    jobs = [client.submit(entrypoint="python3 main.py 0", working_dir=code) for _ in range(2)]
    assert len(set((daemon.home / "packages").glob("*.zip")) - before) == 1
    assert {client.wait(job, timeout=60).state for job in jobs} == {"succeeded"}


def test_everything_about_a_job(client):
    job = client.submit(entrypoint="echo begun; sleep 300", workers=1, name="long")
    assert next(client.follow(job)) == "begun"
    eventually("it runs", lambda: client.get(job).state == "running")
    assert job.id in [one.id for one in client.list(state="running")] and client.list(limit=1, order="oldest")[0].id != job.id
    assert [node.role for node in client.nodes(job)] == ["head", "worker"] and job.id in {node.job for node in client.nodes()}
    assert "driver" in [stream.stream for stream in client.streams(job)]
    with pytest.raises(sdk.PreconditionFailed, match="stop it first"):
        client.remove(job)
    with pytest.raises(TimeoutError, match="still running"):
        client.wait(job, timeout=0.2)
    assert client.stop(job).stop == "user"
    ended = client.wait(job, timeout=60)
    assert ended.state == "stopped" and client.explain(job).state == "stopped"
    attempt, = client.attempts(job)
    assert attempt.number == 1 and attempt.verdict.cause == ended.verdict.cause and "submitted" in [mark.name for mark in attempt.marks]
    types = [event.type for event in client.events(job, kind="job")]
    assert types[0] == "job.submitted" and types[-1] == "job.stopped" and "job.running" in types
    again = client.rerun(job)
    assert again.rerun_of == job.id and again.spec.name == "long"
    client.stop(again)
    client.wait(again, timeout=60)
    eventually("its logs are put away", lambda: all(stream.sealed for stream in client.streams(job)), 30)
    client.remove(job)
    with pytest.raises(sdk.NotFound, match=job.id):
        client.get(job)


def test_one_key_is_one_job(client):
    jobs = {client.submit(entrypoint="true", idempotency_key="once").id for _ in range(3)}
    assert len(jobs) == 1
    with pytest.raises(sdk.Conflict):
        client.submit(entrypoint="false", idempotency_key="once")
    assert client.rerun(*jobs, idempotency_key="again").id == client.rerun(*jobs, idempotency_key="again").id
    client.wait(*jobs, timeout=60)


def test_refusals_name_the_field(client):
    for arguments, path in (({"colour": "red"}, "$.colour"), ({"workers": [{"count": -1}]}, "$.workers[0].count"),
                            ({"working_dir": "/nowhere/at/all"}, "$.runtime_env.working_dir"), ({"env": [{"name": "A"}]}, "$.env[0].value")):
        with pytest.raises(sdk.HeliostatError) as refused:
            client.submit(entrypoint="true", **arguments)
        assert refused.value.path == path and path in str(refused.value)
    with pytest.raises(sdk.InvalidArgument) as refused:
        client.logs("j-0", since="yesterday")
    assert refused.value.path == "query.since"
    for call in (client.get, client.wait, client.stop, client.remove, client.rerun, client.explain, client.attempts, client.nodes, client.logs,
                 client.streams):
        with pytest.raises(sdk.NotFound):
            call("j-0000000000000000")


def test_tokens_and_roles(client, daemon):
    url = daemon.daemon_file()["url"]
    viewer = sdk.Client(url, daemon.helio("tokens", "create", "sdk-viewer", "--role", "viewer", check=0).stdout.strip())
    with pytest.raises(sdk.PermissionDenied, match="viewer"):
        viewer.submit(entrypoint="true")
    assert viewer.list(limit=1) is not None and viewer.version().version == sdk.__version__
    with pytest.raises(sdk.Unauthenticated):
        sdk.Client(url, "nonsense").list()
    assert client_of(daemon, url=url).list(limit=1) is not None, "the home's token is good for the home's daemon"
    with pytest.raises(sdk.Unauthenticated, match="no token"):
        client_of(daemon, url="http://127.0.0.1:1").list()


def in_thread(function):
    """(thread, list that gets the result or the exception)."""
    out = []

    def run():
        try:
            out.append(function())
        except BaseException as error:
            out.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, out


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_followers_outlive_the_daemon(stubbed, how, tmp_path):
    """A log, a wait and a watch go on where they were."""
    client = client_of(stubbed)
    go = tmp_path / "go"
    job = client.submit(entrypoint=f"for i in $(seq 2000); do echo line $i; done; while ! test -e {go}; do sleep 0.1; done; "
                        "for i in $(seq 2001 4000); do echo line $i; done")
    seen, events = [], []

    def follow():
        for line in client.follow(job):
            seen.append(line)

    def watch():
        for event in client.events(job, watch=True):
            events.append(event)
            if event.type == "job.succeeded":
                return

    threads = [in_thread(follow), in_thread(watch), in_thread(lambda: client.wait(job, timeout=60))]
    eventually("the first half is out", lambda: len(seen) == 2000, 60)
    pid = stubbed.pid
    os.kill(pid, how)
    eventually("the daemon has ended", lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text(), pause=0.005)
    go.touch()
    stubbed.up()
    for thread, _ in threads:
        thread.join(60)
    followed, watched, waited = (out for _, out in threads)
    assert followed == watched == [None] and waited[0].state == "succeeded", threads
    assert seen == [f"line {i}" for i in range(1, 4001)]
    revisions = [event.revision for event in events]
    assert revisions == sorted(set(revisions))
    assert revisions == [event.revision for event in client.events(job) if event.revision <= revisions[-1]]


# --- Ray's own clients --------------------------------------------------------------------------------------------------------------
class RayUser:
    """Python and `ray` of one version, with the SDK installed and nothing said about where the daemon is but its home."""

    def __init__(self, daemon, version):
        self.prefix = ray_prefix(version)
        self.key = "sdk-" + version.replace(".", "-")
        self.env = {"PATH": f"{self.prefix}/bin:/usr/bin:/bin", "HOME": str(daemon.home), "HELIOSTAT_HOME": str(daemon.home), "LANG": "C.UTF-8",
                    "PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1", "RAY_USAGE_STATS_ENABLED": "0"}

    def run(self, *argv, code=0, **more):
        done = subprocess.run([f"{self.prefix}/bin/{argv[0]}", *argv[1:]], env={**self.env, **more}, capture_output=True, text=True, timeout=120)
        assert code is None or done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(params=["2.9.3", "2.30.0", "2.60.0"])
def ray(request, daemon):
    return RayUser(daemon, request.param)


def test_heliostat_addresses_in_the_ray_command(ray, daemon, code):
    said = ray.run("ray", "job", "submit", "--address", "heliostat://default", "--working-dir", str(code), "--submission-id", ray.key, "--",
                   "python3", "main.py", "0")
    assert "hello 0" in said and "succeeded" in said
    host = daemon.daemon_file()["url"].removeprefix("http://")
    assert "hello 0" in ray.run("ray", "job", "logs", "--address", f"heliostat://{host}/default", ray.key)
    name = "RAY_API_SERVER_ADDRESS" if ray.key.endswith("2-60-0") else "RAY_ADDRESS"
    assert "SUCCEEDED" in ray.run("ray", "job", "status", ray.key, **{name: "heliostat://default"}).upper()


def test_heliostat_addresses_in_job_submission_client(ray):
    print(ray.run("python", "-c", textwrap.dedent(f"""
        import time
        from ray.job_submission import JobSubmissionClient, JobStatus
        client = JobSubmissionClient("heliostat://default", headers={{"X-Heliostat-Workers": "1"}})
        job = client.submit_job(entrypoint="echo out", submission_id="{ray.key}-py")
        deadline = time.time() + 60
        while not (status := client.get_job_status(job)).is_terminal():
            assert time.time() < deadline, status
            time.sleep(0.1)
        assert status == JobStatus.SUCCEEDED and client.get_job_logs(job) == "out\\n"
    """)))


def test_a_wrong_heliostat_address_says_what_is_right(ray):
    said = ray.run("ray", "job", "list", "--address", "heliostat://there/a/b", code=1)
    assert "expected heliostat://WORKSPACE or heliostat://HOST:PORT/WORKSPACE" in said
    assert "helio up" in ray.run("ray", "job", "list", "--address", "heliostat://default", code=1, HELIOSTAT_HOME="/nowhere")
