"""Ray's own clients, unmodified, against heliostat: what a user of `ray job` and JobSubmissionClient sees. The jobs run on a stub of Ray."""
import base64
import json
import os
import re
import signal
import subprocess
import textwrap
import threading

import pytest

from conftest import ray_prefix
from heliostat import eventually, processes_tagged

CLIENTS = ["2.9.3", "2.30.0", "2.60.0"]


class Client:
    """`ray job` and Python of one Ray version, in the environment that `helio login --env` prints."""

    def __init__(self, daemon, version, token=None):
        self.prefix = ray_prefix(version)
        self.env = {"PATH": f"{self.prefix}/bin:/usr/bin:/bin", "HOME": str(daemon.home), "LANG": "C.UTF-8", "RAY_USAGE_STATS_ENABLED": "0"}
        lines = daemon.helio("login", "--env", "--ray", version, check=0, env={"HELIOSTAT_TOKEN": token} if token else None).stdout
        for name, value in re.findall(r"^export (\w+)='(.*)'$", lines, re.M):
            self.env[name] = value

    def popen(self, *args, **options):
        return subprocess.Popen([f"{self.prefix}/bin/ray", "job", *args], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                **options)

    def job(self, *args, check=0, cwd=None):
        done = subprocess.run([f"{self.prefix}/bin/ray", "job", *args], env=self.env, cwd=cwd, capture_output=True, text=True, timeout=120)
        assert check is None or done.returncode == check, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def python(self, code, check=0):
        done = subprocess.run([f"{self.prefix}/bin/python", "-c", textwrap.dedent(code)], env=self.env, capture_output=True, text=True, timeout=120)
        assert done.returncode == check, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(params=CLIENTS)
def client(request, daemon):
    return Client(daemon, request.param)


def one_key(client):
    return client.prefix.name.replace("ray-", "v").replace(".", "-")


def test_a_folder_is_sent_run_and_followed(client, daemon, tmp_path):
    (tmp_path / "main.py").write_text("import sys\nprint('hello', *sys.argv[1:])\nsys.exit(int(sys.argv[1]))\n")
    said = client.job("submit", "--working-dir", str(tmp_path), "--submission-id", f"{one_key(client)}-0", "--", "python3", "main.py", "0", "two words")
    assert "hello 0" in said and "succeeded" in said
    said = client.job("submit", "--working-dir", str(tmp_path), "--", "python3", "main.py", "3", check=1)
    assert "hello 3" in said and "failed" in said and "exit" in said
    assert "hello 0" in daemon.helio("logs", f"{one_key(client)}-0", check=0).stdout, "a job is found by the id that its client knows"
    assert "different submission_id" in client.job("submit", "--submission-id", f"{one_key(client)}-0", "--", "true", check=None)


def test_every_call_of_the_sdk(client, daemon):
    print(client.python(f"""
        import json, os, time
        from ray.job_submission import JobSubmissionClient, JobStatus
        client = JobSubmissionClient(headers=json.loads(os.environ.get("RAY_JOB_HEADERS", "null")))
        job = client.submit_job(entrypoint="echo out; echo err >&2; sleep 300", submission_id="{one_key(client)}-sdk", metadata={{"team": "vision"}},
                                runtime_env={{"env_vars": {{"A": "1"}}}})
        assert job == "{one_key(client)}-sdk", job
        deadline = time.time() + 60
        while (status := client.get_job_status(job)) != JobStatus.RUNNING:
            assert status == JobStatus.PENDING and time.time() < deadline, status
            time.sleep(0.1)
        while client.get_job_logs(job) != "out\\nerr\\n":
            assert time.time() < deadline, client.get_job_logs(job)
            time.sleep(0.1)
        info = client.get_job_info(job)
        assert info.entrypoint.startswith("echo out") and info.metadata == {{"team": "vision"}} and info.runtime_env == {{"env_vars": {{"A": "1"}}}}
        assert info.type == "SUBMISSION" and info.submission_id == job and info.start_time > 1.7e12 and info.end_time is None
        assert job in [one.submission_id for one in client.list_jobs()]
        try:
            client.delete_job(job)
            raise SystemExit("a running job was deleted")
        except RuntimeError as error:
            assert "non-terminal" in str(error), error
        assert client.stop_job(job) is True
        while (status := client.get_job_status(job)) != JobStatus.STOPPED:
            assert time.time() < deadline, status
            time.sleep(0.1)
        assert client.stop_job(job) is False
        assert client.get_job_info(job).end_time and client.get_job_logs(job) == "out\\nerr\\n"
        while True:
            try:
                assert client.delete_job(job) is True
                break
            except RuntimeError as error:  # its last node goes a moment after it
                assert "still" in str(error) and time.time() < deadline, error
                time.sleep(0.1)
        for call in (client.get_job_status, client.get_job_logs, client.stop_job, client.delete_job):
            try:
                call(job)
                raise SystemExit(f"{{call}} knows a job that was deleted")
            except RuntimeError as error:
                assert "does not exist" in str(error), error
    """))


def test_a_job_is_stopped_while_it_waits(client, daemon):
    cpu = daemon.get("/v1/hosts")["items"][0]["capacity"]["cpu"]
    daemon.helio("flavors", "set", "all", "--cpu", cpu, "--memory", "512MiB", check=0)
    blocker = daemon.submit("--head-flavor", "all", "--", "sleep", "300")
    daemon.until(blocker, ["running"])
    key = f"{one_key(client)}-waits"
    try:
        client.job("submit", "--no-wait", "--submission-id", key, "--", "true")
        said = client.job("status", key)
        assert "PENDING" in said.upper(), said
        client.job("stop", key)
        assert "STOPPED" in client.job("status", key).upper()
    finally:
        daemon.helio("stop", "--wait", blocker, check=0)


def test_followers_hold_on_over_queue_and_retry(client, daemon, tmp_path):
    """One socket from before the job starts to its end, over an attempt that the platform lost."""
    key = f"{one_key(client)}-retry"
    follower = client.popen("submit", "--submission-id", key, "--", "sh", "-c", f"test -e {tmp_path}/again && echo second && exit 0; "
                            f"touch {tmp_path}/again; echo first; sleep 300")
    def running():
        return next((job for job in daemon.get("/v1/jobs?state=running")["items"] if f"{tmp_path}/again" in job["spec"]["entrypoint"].get("command", "")), None)

    row = eventually("it runs", running, 60)
    eventually("its first line is out", lambda: "first" in daemon.helio("logs", row["id"], check=0).stdout)
    raylet = next(pid for pid, command in processes_tagged(f"{row['id']}-1-h") if command.split()[0].endswith("/raylet"))
    os.kill(raylet, signal.SIGKILL)
    said, _ = follower.communicate(timeout=120)
    assert follower.returncode == 0, said
    assert "first" in said and "second" in said and "succeeded" in said, said
    assert len(daemon.attempts(row["id"])) == 2


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_follower_takes_the_daemons_end_for_the_jobs(stubbed, how):
    followers = [Client(stubbed, version).popen("submit", "--submission-id", f"f{i}", "--", "sleep", "300") for i, version in enumerate(CLIENTS)]
    eventually("all follow", lambda: stubbed.get("/v1/status")["connections"] > len(followers), 90)
    eventually("they run", lambda: len(stubbed.get("/v1/jobs?state=running")["items"]) == len(followers), 60)
    os.kill(stubbed.pid, how)
    for follower in followers:
        said, _ = follower.communicate(timeout=60)
        assert follower.returncode != 0, said
    stubbed.up()
    for i in range(len(followers)):
        assert stubbed.api("GET", f"/ray/default/api/jobs/f{i}")[1]["status"] == "RUNNING"
        stubbed.api("POST", f"/ray/default/api/jobs/f{i}/stop")


def test_ten_followers_and_a_kill(stubbed, tmp_path):
    """Two jobs run and eight wait when the daemon is killed and comes back: no follower says that its job succeeded, and every job then does."""
    capacity = stubbed.get("/v1/hosts")["items"][0]["capacity"]
    half = {"cpu": 1, "memory": capacity["memory"] * 45 // 100, "shm": capacity["memory"] // 10, "gpus": 0}
    status, reply = stubbed.api("PUT", "/v1/flavors/half", {"name": "half", "resources": half})
    assert status < 300, reply
    client, gate = Client(stubbed, "2.60.0"), tmp_path / "go"
    followers = {f"ten-{i}": client.popen("submit", "--submission-id", f"ten-{i}", "--metadata-json", '{"heliostat.head-flavor": "half"}', "--", "sh", "-c",
                                          f"while test ! -e {gate}; do sleep 0.1; done; echo {i}") for i in range(10)}
    eventually("two run", lambda: len(stubbed.get("/v1/jobs?state=running")["items"]) == 2, 90)
    eventually("eight wait", lambda: len(stubbed.get("/v1/jobs?state=queued")["items"]) == 8, 90)
    eventually("all follow", lambda: stubbed.get("/v1/status")["connections"] > len(followers), 60)
    stubbed.kill9()
    stubbed.up()
    for key, follower in followers.items():
        said, _ = follower.communicate(timeout=60)
        assert follower.returncode != 0, f"{key}: {said}"
    gate.touch()
    for key in followers:
        eventually(f"{key} succeeds", lambda key=key: stubbed.api("GET", f"/ray/default/api/jobs/{key}")[1]["status"] == "SUCCEEDED", 120)


def test_roles_and_owners(daemon):
    tokens = {role: daemon.helio("tokens", "create", f"r-{role}", "--role", role, check=0).stdout.strip() for role in ("viewer", "developer")}
    other = daemon.helio("tokens", "create", "someone-else", "--role", "developer", check=0).stdout.strip()
    mine = Client(daemon, "2.60.0", tokens["developer"])
    mine.job("submit", "--no-wait", "--submission-id", "owned", "--", "sleep", "300")
    viewer = Client(daemon, "2.60.0", tokens["viewer"])
    assert "owned" in viewer.job("list")
    assert "role viewer may not" in viewer.job("submit", "--no-wait", "--", "true", check=None)
    assert "may not stop" in Client(daemon, "2.60.0", other).job("stop", "owned", check=None)
    mine.job("stop", "owned")
    wrong = Client(daemon, "2.60.0", tokens["developer"])
    wrong.env["RAY_AUTH_TOKEN"] = "nonsense"
    assert "wrong, expired or revoked" in wrong.job("list", check=None)


def test_tokens_come_in_every_way_that_a_client_has(daemon):
    for headers in ({"Authorization": f"Bearer {daemon.token}"}, {"X-Ray-Authorization": f"Bearer {daemon.token}", "Authorization": ""},
                    {"Authorization": "Basic " + base64.b64encode(f"user:{daemon.token}".encode()).decode()}):
        assert daemon.api("GET", "/ray/default/api/version", headers=headers)[0] == 200, headers
    modern = Client(daemon, "2.60.0")
    del modern.env["RAY_AUTH_MODE"], modern.env["RAY_AUTH_TOKEN"]
    modern.env["RAY_JOB_HEADERS"] = json.dumps({"Authorization": f"Bearer {daemon.token}"})
    modern.job("list")
    for version in CLIENTS:
        basic = Client(daemon, version)
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_JOB_HEADERS"):
            basic.env.pop(name, None)
        name = "RAY_ADDRESS" if "RAY_ADDRESS" in basic.env else "RAY_API_SERVER_ADDRESS"
        basic.env[name] = basic.env[name].replace("http://", f"http://user:{daemon.token}@")
        basic.job("list")


def test_of_two_submits_with_one_id_exactly_one_wins(daemon):
    answers = []
    body = {"entrypoint": "true", "submission_id": "twins"}
    threads = [threading.Thread(target=lambda: answers.append(daemon.api("POST", "/ray/default/api/jobs/", body))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(status for status, _ in answers) == [200] + 7 * [500]
    assert len([job for job in daemon.api("GET", "/ray/default/api/jobs/")[1] if job["submission_id"] == "twins"]) == 1
