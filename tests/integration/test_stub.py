"""The platform's own behaviour, with real agents and a stub in place of Ray: fast, and many times."""
import json
import os
import signal
import subprocess
import time

import pytest

from heliostat import BIN, eventually, marks, processes_tagged, seconds_between


def test_a_job_runs_on_head_and_workers_and_leaves_nothing(stubbed):
    done = stubbed.helio("run", "--workers", "2", "--", "sh", "-c", "echo hello from $HELIOSTAT_NODE_INDEX; exit 5", check=5)
    assert done.stdout == "hello from 0\n"
    for stage in ("admitted", "all nodes alive", "entrypoint ended", "(exit code 5)", "helio rerun"):
        assert stage in done.stderr
    job = json.loads(stubbed.helio("ps", "-o", "json").stdout)[0]
    assert job["state"] == "failed" and job["verdict"]["cause"] == "entrypoint.exit" and job["exit_code"] == 5
    assert {"accepted", "admitted", "agents_up", "gcs_up", "nodes_alive", "submitted", "first_line", "driver_end", "gone"} <= marks(
        stubbed.attempts(job["id"])[0]).keys()
    stubbed.assert_nothing_left()
    assert stubbed.left_by(job["id"], stubbed.nodes(job["id"])) == []
    assert stubbed.helio("logs", "last", check=0).stdout == "hello from 0\n"


def test_words_scripts_and_files_reach_the_entrypoint_as_they_are(stubbed, tmp_path):
    words = ["a b", "$HOME", "it's", '"q"', "", "*", "a\\b", "ü", "--flag", "back`tick`"]
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    done = stubbed.helio("run", "-q", "--", "python3", "-c", code, *words, check=0)
    assert json.loads(done.stdout.splitlines()[-1]) == words

    script = tmp_path / "body.sh"
    script.write_text("echo one\nfalse\necho never\n")
    done = stubbed.helio("run", "-q", "--script", script, check=1)
    assert done.stdout == "one\n"
    (tmp_path / "body.py").write_text("import os\nprint('two', os.environ['K'], sorted(os.listdir('.'))[:1])\nraise SystemExit(7)\n")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/data.txt").write_text("x")
    done = stubbed.helio("run", "-q", "--script", tmp_path / "body.py", "--env", "K=v w", "--working-dir", tmp_path / "dir", check=7)
    assert done.stdout == "two v w ['data.txt']\n"
    # The second upload of the same content is not sent again.
    done = stubbed.helio("run", "--working-dir", tmp_path / "dir", "--", "cat", "data.txt", check=0)
    assert "already uploaded" in done.stderr and done.stdout == "x"


def test_a_job_file_says_the_same_as_flags(stubbed, tmp_path):
    (tmp_path / "job.yaml").write_text("name: filed\nentrypoint:\n  command: echo from $WHO && cat hello.txt\nworkers:\n- count: 1\n"
                                       "env:\n- {name: WHO, value: file}\nruntime_env:\n  working_dir: code\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code/hello.txt").write_text("hello\n")
    done = stubbed.helio("submit", tmp_path / "job.yaml", "--follow", "--env", "WHO=flag", check=0)
    assert done.stdout == "from flag\nhello\n"
    preview = stubbed.helio("submit", tmp_path / "job.yaml", "--dry-run", "-o", "json", check=0)
    assert json.loads(preview.stdout)["spec"]["name"] == "filed" and json.loads(preview.stdout)["starts_now"]
    assert len(json.loads(stubbed.helio("ps", "--all", "-o", "json").stdout)) == 1


def test_every_form_of_output_tells_the_same(stubbed):
    job = stubbed.submit("--name", "forms", "--", "echo", "x")
    stubbed.wait(job)
    for command in ("ps", "show", "explain", "nodes", "hosts", "flavors", "images", "events"):
        table = stubbed.helio(command, check=0).stdout
        text = stubbed.helio(command, "-o", "json", check=0).stdout
        if command != "events":
            json.loads(text)
        stubbed.helio(command, "-o", "yaml", check=0)
        assert table.strip() and table != text, command
    for name in (job, job[2:9], "forms", "last"):
        assert job in stubbed.helio("show", name, check=0).stdout
    assert "events" in stubbed.helio("__complete", "--", "ev", check=0).stdout
    assert job in stubbed.helio("__complete", "--", "show", job[:5], check=0).stdout
    stubbed.helio("rm", job, check=0)
    assert stubbed.helio("show", job).returncode == 67
    stubbed.helio("doctor", check=0)


def test_variables_tell_a_node_where_it_is(stubbed):
    job = stubbed.submit("--workers", "2", "--", "sh", "-c", "env; sleep 30")
    stubbed.until(job, ["running"])
    head = dict(line.split("=", 1) for line in stubbed.helio("exec", job, "--", "env", check=0).stdout.splitlines() if "=" in line)
    worker = dict(line.split("=", 1) for line in stubbed.helio("exec", job, "--node", "w2", "--", "env", check=0).stdout.splitlines() if "=" in line)
    assert head["HELIOSTAT_JOB_ID"] == worker["HELIOSTAT_JOB_ID"] == job
    assert head["HELIOSTAT_NODE_INDEX"] == "0" and worker["HELIOSTAT_NODE_INDEX"] == "2"
    assert worker["WORLD_SIZE"] == "2" and worker["RANK"] == "1" and worker["MASTER_PORT"] == "29500"
    assert worker["MASTER_ADDR"] == head["MASTER_ADDR"] and "LOCAL_RANK" not in worker
    assert stubbed.helio("exec", job, "--", "sh", "-c", "exit 9").returncode == 9
    stubbed.helio("stop", "--wait", job, check=0)
    assert stubbed.helio("wait", job).returncode == 81
    assert stubbed.helio("exec", job, "--", "true").returncode in (67, 70, 72)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_command_ends_with_its_client(stubbed, how):
    job = stubbed.submit("--", "sleep", "300")
    stubbed.until(job, ["running"])
    client = stubbed.popen("exec", job, "--", "sh", "-c", "echo begun; sleep 1234 & wait")
    assert client.stdout.readline() == "begun\n"
    eventually("its child runs", lambda: [command for _, command in processes_tagged(job) if command.startswith("sleep 1234")])
    client.send_signal(how)
    client.wait(10)
    eventually("the command is gone", lambda: not [command for _, command in processes_tagged(job) if command.startswith("sleep 1234")])
    assert stubbed.job(job)["state"] == "running"


def test_outputs_outlive_the_cluster_and_checkpoints_outlive_attempts(stubbed, tmp_path):
    body = 'n=$(cat "$HELIOSTAT_CHECKPOINT_DIR/n" 2>/dev/null || echo 0); echo $((n+1)) > "$HELIOSTAT_CHECKPOINT_DIR/n"; ' \
           'mkdir -p "$HELIOSTAT_OUTPUT_DIR/d"; echo try $n > "$HELIOSTAT_OUTPUT_DIR/d/out.txt"; echo attempt $n; test $n = 2'
    done = stubbed.helio("run", "--retries", "user=3", "--command", body, check=0)
    assert done.stdout == "attempt 0\nattempt 1\nattempt 2\n"
    assert "attempt 3" in done.stderr and "3 attempts" in done.stderr
    job = json.loads(stubbed.helio("show", "-o", "json").stdout)
    assert [a["state"] for a in job["attempts"]] == ["failed", "failed", "succeeded"]
    assert job["job"]["ledger"] == {"user": 2}
    assert "retry" in job["attempts"][0]["verdict"]["decision"]
    stubbed.helio("cp", "last:outputs", tmp_path / "got", check=0)
    assert (tmp_path / "got/d/out.txt").read_text() == "try 2\n"
    stubbed.helio("cp", "last:outputs/d/out.txt", tmp_path / "one.txt", check=0)
    assert (tmp_path / "one.txt").read_text() == "try 2\n"
    assert "out.txt" in stubbed.helio("cp", "last:outputs/d", check=0).stdout
    assert stubbed.helio("cp", "last:outputs/../../admin.token", tmp_path / "no").returncode == 64


def test_secrets_are_masked_everywhere(stubbed):
    secret = "s3cr3t-" + os.urandom(8).hex()
    job = stubbed.submit("--secret-env", f"TOKEN={secret}", "--", "sh", "-c", 'test -n "$TOKEN" && sleep 2')
    stubbed.until(job, ["running"])
    seen = []
    for pid, _ in processes_tagged(job):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                seen.append(file.read())
        except OSError:
            pass
    assert seen and not any(secret.encode() in line for line in seen)
    stubbed.wait(job)
    assert stubbed.job(job)["state"] == "succeeded"
    texts = [json.dumps(stubbed.job(job)), json.dumps(stubbed.attempts(job)), json.dumps(stubbed.nodes(job)),
             json.dumps(stubbed.get("/v1/events?limit=10000")), stubbed.daemon_log()]
    assert not any(secret in text for text in texts)
    for path in stubbed.home.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    again = stubbed.helio("rerun", "-f", job, check=0)  # a repetition has its secrets too
    assert secret not in again.stderr


@pytest.mark.parametrize("flags, state, code", [
    (["--max-run-time", "1s"], "failed", 82),
    (["--max-total-time", "2s"], "failed", 82),
])
def test_a_passed_deadline_ends_the_job_by_that_name(stubbed, flags, state, code):
    done = stubbed.helio("run", *flags, "--stop-grace", "1s", "--", "sleep", "60", check=code)
    job = json.loads(stubbed.helio("ps", "-o", "json").stdout)[0]
    assert job["state"] == state and job["verdict"]["cause"].startswith("deadline.")
    assert job["verdict"]["cause"] in done.stderr


def test_a_job_that_waits_too_long_gives_up_and_says_what_it_waited_for(stubbed):
    cpu = stubbed.get("/v1/hosts")["items"][0]["capacity"]["cpu"]
    stubbed.helio("flavors", "set", "all", "--cpu", cpu, "--memory", "512MiB", check=0)
    first = stubbed.submit("--head-flavor", "all", "--", "sleep", "30")
    stubbed.until(first, ["running"])
    second = stubbed.submit("--head-flavor", "all", "--pending-deadline", "2s", "--", "true")
    explained = json.loads(stubbed.helio("explain", second, "-o", "json", check=0).stdout)
    assert explained["state"] == "queued" and "CPU" in json.dumps(explained)
    row = stubbed.wait(second)
    assert row["verdict"]["cause"] == "deadline.pending" and stubbed.helio("wait", second).returncode == 82
    # Stop works in the queue, at once.
    third = stubbed.submit("--head-flavor", "all", "--", "true")
    stubbed.helio("stop", third, check=0)
    assert stubbed.wait(third, 5)["state"] == "stopped"
    stubbed.helio("stop", first, "--wait", check=0)


def test_an_interrupted_script_stops_its_job(stubbed):
    runner = stubbed.popen("run", "--stop-grace", "2s", "--", "sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done")
    assert runner.stdout.readline() == "up\n"
    runner.send_signal(signal.SIGINT)
    out, err = runner.communicate(timeout=30)
    assert runner.returncode == 81, err
    assert out.endswith("bye\n") and "stopped.user" in err


def test_a_second_interrupt_detaches_and_the_job_goes_on(stubbed):
    runner = stubbed.popen("run", "--stop-grace", "30s", "--", "sh", "-c", "trap '' TERM; echo up; sleep 4; echo end")
    assert runner.stdout.readline() == "up\n"
    runner.send_signal(signal.SIGTERM)
    eventually("the stop was asked", lambda: json.loads(stubbed.helio("ps", "-o", "json").stdout)[0]["state"] == "stopping")
    runner.send_signal(signal.SIGTERM)
    _, err = runner.communicate(timeout=10)
    assert runner.returncode == 84 and "helio wait" in err


def test_each_way_in_which_a_start_fails_has_its_name(stubbed, stub_prefix):
    no_retries = ["--retries", "platform=0", "--retries", "node=0", "--retries", "unknown=0"]
    job = stubbed.submit(*no_retries, "--env", "STUB_RAY_FAILS=No module named ray", "--", "true")
    assert stubbed.wait(job)["verdict"]["cause"] == "image.broken"
    job = stubbed.submit(*no_retries, "--env", "STUB_RAY_FAILS=something else", "--", "true")
    row = stubbed.wait(job)
    assert row["verdict"]["cause"] == "ray_start.failed" and "something else" in json.dumps(row["verdict"])
    assert stubbed.helio("wait", job).returncode == 80
    ray = stub_prefix / "bin/ray"
    ray.rename(stub_prefix / "bin/ray.away")
    try:
        job = stubbed.submit(*no_retries, "--", "true")
        assert stubbed.wait(job)["verdict"]["cause"] == "image.broken"
    finally:
        (stub_prefix / "bin/ray.away").rename(ray)
    stubbed.assert_nothing_left()


def test_logs_follow_filter_and_list(stubbed):
    lines = 200_000
    job = stubbed.submit("--", "python3", "-c", f"for i in range({lines}): print('line', i)")
    followed = stubbed.popen("logs", "-f", job)
    out, _ = followed.communicate(timeout=60)
    assert out == "".join(f"line {i}\n" for i in range(lines))
    assert stubbed.helio("logs", job, "--grep", "^line 1999..$", check=0).stdout == "".join(f"line {i}\n" for i in range(199900, 200000))
    assert stubbed.helio("logs", job, "--last", "14", check=0).stdout.endswith("line 199999\n")
    assert stubbed.helio("logs", job, "--grep", "(").returncode == 64
    assert stubbed.helio("logs", job, "--stream", "no-such").returncode == 67
    listed = stubbed.helio("logs", "-l", job, check=0).stdout
    assert "driver" in listed and "raylet.out" in listed


def test_the_end_of_the_reader_does_not_end_the_job(stubbed):
    runner = subprocess.Popen(f"{BIN}/helio run -q -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.2; done' | head -1", shell=True,
                              env=stubbed.env, stdout=subprocess.PIPE, text=True)
    assert runner.communicate(timeout=30)[0] == "1\n"
    assert stubbed.wait("last")["state"] == "succeeded"


def test_a_daemon_that_stops_leaves_its_jobs_running(stubbed, tmp_path):
    ran = tmp_path / "ran"
    job = stubbed.submit("--", "sh", "-c", f"for i in $(seq 30); do echo $i; echo $i >> {ran}; sleep 0.1; done")
    stubbed.until(job, ["running"])
    stubbed.down()
    assert stubbed.helio("ps").returncode == 72
    at_stop = len(ran.read_text().splitlines()) if ran.exists() else 0
    eventually("the job goes on without a daemon", lambda: ran.exists() and len(ran.read_text().splitlines()) > at_stop, 15)
    stubbed.up()
    assert stubbed.wait(job)["state"] == "succeeded"
    assert stubbed.helio("logs", job, check=0).stdout == "".join(f"{i}\n" for i in range(1, 31))


def test_retained_nodes_stay_until_their_time_is_over(stubbed):
    job = stubbed.submit("--retain", "head=4s", "--workers", "1", "--", "false")
    stubbed.wait(job)
    assert stubbed.helio("exec", job, "--", "echo", "still here", check=0).stdout == "still here\n"
    eventually("the head is gone", lambda: not processes_tagged(job), 15)


def test_retained_nodes_are_given_back_by_a_stop(stubbed):
    job = stubbed.submit("--retain", "all=1h", "--workers", "1", "--", "false")
    row = stubbed.wait(job)
    assert row["state"] == "failed"
    at = marks(stubbed.attempts(job)[0])
    assert seconds_between(at["driver_end"], at["logs_complete"]) < 5, "its end is told once its log is here"
    stubbed.helio("stop", job, check=0)
    eventually("the nodes are gone", lambda: not processes_tagged(job), 15)
    assert stubbed.job(job)["verdict"] == row["verdict"], "how it ended stays"
    stubbed.assert_nothing_left()


def test_two_hundred_jobs_on_a_pool_that_holds_two(stubbed):
    cpu = stubbed.get("/v1/hosts")["items"][0]["capacity"]["cpu"]
    stubbed.helio("flavors", "set", "half", "--cpu", cpu / 2, "--memory", "512MiB", check=0)
    jobs = []
    for i in range(200):
        status, row = stubbed.api("POST", "/v1/jobs", {"name": f"n{i}", "head": {"flavor": "half"}, "entrypoint": {"command": f"echo {i}"}})
        assert status == 201
        jobs.append(row["id"])

    def footprint():
        pid = stubbed.pid
        status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status", encoding="ascii"))
        return {"rss_kib": int(status["VmRSS"].split()[0]), "anon_kib": int(status["RssAnon"].split()[0]), "fds": len(os.listdir(f"/proc/{pid}/fd")), "threads": int(status["Threads"]),
                "nodes": len(os.listdir(stubbed.home / "nodes")), "agents": len(os.listdir(stubbed.home / "agents"))}

    stubbed.wait(jobs[19], 120)
    early = footprint()
    for i in (60, 100, 150, 199):
        stubbed.wait(jobs[i], 500)
        print(i, footprint())
    stubbed.assert_nothing_left()
    late = footprint()
    rows = [stubbed.job(job) for job in jobs]
    assert [row["state"] for row in rows] == ["succeeded"] * 200
    for i in (0, 57, 199):
        assert stubbed.helio("logs", jobs[i], check=0).stdout == f"{i}\n"
    # Never more than the pool: at no instant do three attempts hold nodes.
    edges = []
    for job in jobs:
        attempts = stubbed.attempts(job)
        assert len(attempts) == 1
        at = marks(attempts[0])
        edges += [(at["admitted"], 1), (at["gone"], -1)]
    held = most = 0
    for _, change in sorted(edges):
        held += change
        most = max(most, held)
    assert most == 2
    print(early, late)
    assert late["fds"] <= early["fds"] and late["threads"] <= early["threads"] and late["nodes"] == 0 and late["agents"] <= early["agents"]
    assert late["rss_kib"] - early["rss_kib"] <= 2048, (early, late)
