"""Bad input: a clear error with the field's path and what would be right, and nothing left behind."""
import json
import os
import socket
import subprocess
import time

import pytest

from heliostat import BIN, Heliostat, eventually, processes_tagged

RUN = {"entrypoint": {"command": "true"}}

# body, status, code, path, a word of the message
BAD = [
    ({**RUN, "nmae": "x"}, 400, "invalid_argument", "$.nmae", "unknown field"),
    ({**RUN, "name": 5}, 400, "invalid_argument", "$.name", "string"),
    ({**RUN, "workers": [{"count": -1}]}, 400, "invalid_argument", "$.workers[0].count", ""),
    ({**RUN, "workers": [{"count": 0}]}, 400, "invalid_argument", "$.workers[0].count", ""),
    ({**RUN, "workers": [{"count": "two"}]}, 400, "invalid_argument", "$.workers[0].count", "integer"),
    ({**RUN, "workers": [{"name": "a"}]}, 400, "invalid_argument", "$.workers[0].count", "missing"),
    ({**RUN, "workers": [{"count": 1}, {"count": 1}]}, 400, "invalid_argument", "$.workers[1].name", ""),
    ({**RUN, "workers": [{"count": 100000}]}, 429, "resource_exhausted", "$.workers[0].count", ""),
    ({**RUN, "workers": [{"count": 1, "flavor": "nope"}]}, 404, "not_found", "$.workers[0].flavor", "nope"),
    ({**RUN, "image": "nope"}, 404, "not_found", "$.image", "nope"),
    ({}, 400, "invalid_argument", "$.entrypoint", "missing"),
    ({"entrypoint": {}}, 400, "invalid_argument", "$.entrypoint", ""),
    ({"entrypoint": {"command": ""}}, 400, "invalid_argument", "$.entrypoint.command", ""),
    ({"entrypoint": {"argv": []}}, 400, "invalid_argument", "$.entrypoint.argv", ""),
    ({"entrypoint": {"command": "a", "script": "b"}}, 400, "invalid_argument", "$.entrypoint", ""),
    ({**RUN, "runtime_env": {"pip": ["a"], "conda": "b"}}, 400, "invalid_argument", "$.runtime_env", "conda"),
    ({**RUN, "runtime_env": {"env_vars": {"A": 1}}}, 400, "invalid_argument", "$.runtime_env.env_vars.A", "string"),
    ({**RUN, "runtime_env": {"colour": 1}}, 400, "invalid_argument", "$.runtime_env.colour", ""),
    ({**RUN, "runtime_env": {"working_dir": "helio://packages/" + "0" * 64 + ".zip"}}, 404, "not_found", "$.runtime_env.working_dir", ""),
    ({**RUN, "env": [{"name": "A=B", "value": ""}]}, 400, "invalid_argument", "$.env[0].name", "="),
    ({**RUN, "env": [{"name": "", "value": ""}]}, 400, "invalid_argument", "$.env[0].name", ""),
    ({**RUN, "priority": 0}, 400, "invalid_argument", "$.priority", ""),
    ({**RUN, "limits": {"run": "soon"}}, 400, "invalid_argument", "$.limits.run", ""),
    ({**RUN, "retries": {"user": -1}}, 400, "invalid_argument", "$.retries.user", ""),
    ({**RUN, "completion": "maybe"}, 400, "invalid_argument", "$.completion", "driver"),
    ({**RUN, "mounts": [{"source": "/etc"}]}, 400, "invalid_argument", "$.mounts[0].source", ""),
    ({**RUN, "workers": "many"}, 400, "invalid_argument", "$.workers", "array"),
]


@pytest.mark.parametrize("body, status, code, path, word", BAD, ids=[f"{b[3]}-{i}" for i, b in enumerate(BAD)])
def test_a_wrong_spec_names_its_field(daemon, body, status, code, path, word):
    got, problem = daemon.api("POST", "/v1/jobs", body)
    assert (got, problem["code"]) == (status, code), problem
    assert problem["path"].startswith(path) and word in problem["detail"], problem
    assert daemon.get("/v1/jobs")["items"] == []


def test_a_shape_that_never_fits_names_the_largest_that_would(daemon):
    _, problem = daemon.api("POST", "/v1/jobs", {**RUN, "workers": [{"count": 5000}]})
    largest = int(problem["args"]["largest"])
    assert 0 < largest < 5000
    status, preview = daemon.api("POST", "/v1/jobs:preview", {**RUN, "workers": [{"count": largest}]})
    assert status == 200 and preview["starts_now"]


def test_the_cli_says_it_in_one_line(daemon, tmp_path):
    def refused(code, *args):
        done = daemon.helio("submit", *args)
        assert done.returncode == code, done.stderr
        assert done.stdout == "" and len(done.stderr.strip().splitlines()) == 1 and done.stderr.startswith("helio: "), done.stderr
        return done.stderr

    assert "$.workers[0].count" in refused(64, "--workers", "-1", "--", "true")
    assert "--workers" in refused(64, "--workers", "two", "--", "true")
    assert "no image" in refused(67, "--image", "nope", "--", "true")
    assert "/nowhere" in refused(67, "--working-dir", "/nowhere", "--", "true")
    assert "/nowhere" in refused(67, "--script", "/nowhere")
    assert "/nowhere" in refused(67, "/nowhere")
    assert "after --" in refused(64)
    (tmp_path / "link").symlink_to("/etc/hostname")
    assert "link" in refused(64, "--working-dir", tmp_path, "--", "true")
    (tmp_path / "link").unlink()
    (tmp_path / "big.bin").write_bytes(os.urandom(101 << 20))
    assert "big.bin" in refused(71, "--working-dir", tmp_path, "--", "true")
    (tmp_path / "job.yaml").write_text("entrypoint:\n  command: [unclosed\n")
    assert "line" in refused(64, tmp_path / "job.yaml")
    assert daemon.helio("show", "j-0000000000000000").returncode == 67
    assert daemon.helio("show", "no-such-name").returncode == 67
    assert daemon.helio("image", "add", "x", "--python", "/usr/games").returncode == 64
    assert not list((daemon.home / "packages").glob("*.zip")) and not list((daemon.home / "spool").iterdir())


def test_without_a_right_token_nothing_is_told(daemon):
    for token in ("wrong", "", "a" * 5000):
        status, problem = daemon.api("GET", "/v1/jobs", token=token or " ")
        assert status == 401, (token, problem)
    assert daemon.helio("ps", env={"HELIOSTAT_TOKEN": "wrong"}).returncode == 65
    status, _ = daemon.api("POST", "/v1/daemon/stop", token="wrong")
    assert status == 401 and daemon.helio("ps").returncode == 0
    assert (daemon.home / "admin.token").stat().st_mode & 0o777 == 0o600


def test_a_body_of_a_gigabyte_is_refused_before_it_is_sent(daemon):
    connection = daemon.connect()
    connection.putrequest("POST", "/v1/jobs")
    connection.putheader("Authorization", f"Bearer {daemon.token}")
    connection.putheader("Content-Length", str(1 << 30))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    # Chunked, without a length: cut off when the limit is reached.
    connection = daemon.connect()
    connection.putrequest("POST", "/v1/jobs")
    connection.putheader("Authorization", f"Bearer {daemon.token}")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    resident = lambda: int(next(line for line in open(f"/proc/{daemon.pid}/status") if line.startswith("VmRSS")).split()[1])
    before = resident()
    try:
        for _ in range(256):
            connection.send(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
    except (BrokenPipeError, ConnectionResetError):
        pass
    else:
        assert connection.getresponse().status == 413
    assert resident() - before < 20 << 10  # KiB: nothing of it was kept
    connection.close()
    assert daemon.helio("ps").returncode == 0


def test_clients_that_dawdle_are_dropped_and_hold_up_nobody(daemon):
    host, port = daemon.daemon_file()["url"].split("//")[1].split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(200)]
    for client in slow:
        client.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n")
    begin = time.monotonic()
    assert daemon.helio("ps").returncode == 0
    assert time.monotonic() - begin < 2
    slow[0].settimeout(20)
    answer = slow[0].recv(1000)  # closed, or told so, but not held for ever: a time-out would raise
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408"), answer
    for client in slow:
        client.close()


def test_idempotency_keys_make_a_repeated_submit_harmless(daemon):
    headers = {"Idempotency-Key": "k1"}
    status, first = daemon.api("POST", "/v1/jobs", {**RUN, "name": "once"}, headers=headers)
    again, second = daemon.api("POST", "/v1/jobs", {**RUN, "name": "once"}, headers=headers)
    assert (status, again) == (201, 201) and first["id"] == second["id"]
    status, problem = daemon.api("POST", "/v1/jobs", {**RUN, "name": "other"}, headers=headers)
    assert (status, problem["code"]) == (409, "conflict")
    daemon.wait(first["id"])


def test_an_old_ray_without_tokens_must_be_allowed_by_name(daemon, tmp_path):
    from stub import make_prefix
    old = make_prefix(tmp_path / "old", "2.30.0")
    done = daemon.helio("image", "add", "old", "--python", old)
    assert done.returncode == 70 and "--allow-no-token" in done.stderr
    daemon.helio("image", "add", "old", "--python", old, "--allow-no-token", check=0)
    ancient = make_prefix(tmp_path / "ancient", "2.5.1")
    done = daemon.helio("image", "add", "ancient", "--python", ancient, "--allow-no-token")
    assert done.returncode == 70 and "2.6" in done.stderr
    assert daemon.helio("image", "add", "old", "--python", ancient, "--allow-no-token").returncode in (68, 70)
    daemon.helio("image", "rm", "old", check=0)


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a small file system can be mounted by root alone")
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)], check=False).returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_disk_that_fills_up_fails_the_job_by_that_name_and_spares_the_store(small_disk, stub_prefix):
    it = Heliostat(small_disk / "home").up()
    it.add_image("default", stub_prefix)
    job = it.submit("--retries", "node=0", "--retries", "platform=0", "--", "sh", "-c", 'head -c 60000000 /dev/zero > "$HELIOSTAT_OUTPUT_DIR/big"; sleep 60')
    # With not one byte left nothing can be recorded, but everything can be read; nothing that was acknowledged is lost.
    eventually("the disk is full", lambda: "no space left" in it.daemon_log(), 30)
    assert it.job(job)["state"] in ("starting", "running")
    status, problem = it.api("POST", "/v1/jobs", RUN)
    assert (status, problem["code"]) == (507, "storage_full"), problem
    eventually("the node was ended", lambda: not any("sleep" in command for _, command in processes_tagged(job)), 40)
    for path in (small_disk / "home/jobs").rglob("big"):
        path.unlink()
    row = it.wait(job, 60)
    assert row["state"] == "failed" and row["verdict"]["cause"] == "node.disk_full", row["verdict"]
    fine = eventually("jobs run again", lambda: it.helio("run", "-q", "--", "echo", "fine").stdout, 30, 1)
    assert fine == "fine\n"
    assert it.job(job)["state"] == "failed"
    it.close()


def test_a_node_over_its_disk_limit_is_ended_by_that_name(daemon):
    job = daemon.submit("--disk-limit", "64MiB", "--retries", "node=0", "--", "sh", "-c", "head -c 150000000 /dev/zero > big; sleep 120")
    row = daemon.wait(job, 90)
    assert row["verdict"]["cause"] == "node.disk_full", row["verdict"]
    assert daemon.helio("wait", job).returncode == 83


def test_two_daemons_do_not_share_a_home(daemon):
    before = daemon.pid
    env = {**daemon.env}
    second = subprocess.run([str(BIN / "heliostatd")], env=env, capture_output=True, text=True, timeout=30)
    assert second.returncode != 0 and "lock" in (second.stderr + second.stdout).lower() or str(before) in second.stderr
    assert daemon.helio("ps").returncode == 0 and daemon.pid == before
