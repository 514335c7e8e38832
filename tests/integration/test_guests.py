"""Jobs inside a long-lived cluster (`helio run --cluster`): what their users see, with real agents and a stub in place of Ray."""
import json
import os
import signal

import pytest

from heliostat import eventually, marks, processes_tagged


@pytest.fixture
def team(daemon):
    daemon.helio("cluster", "create", "team", "--workers", "1", "--idle", "0s", check=0)
    yield daemon
    daemon.helio("cluster", "delete", "team")


def pids_with(word):
    """Of processes that have this word in their command, the shell of the leash among them."""
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    out.append(int(pid))
        except OSError:
            pass
    return out


def test_a_job_runs_in_the_cluster_and_is_a_job_of_its_own(team, tmp_path):
    (tmp_path / "main.py").write_text("import os\nprint('here', os.environ['K'], os.environ['HELIOSTAT_JOB_ID'], os.listdir('.'))\n"
                                      "open(os.environ['HELIOSTAT_OUTPUT_DIR'] + '/made', 'w').write('x')\nraise SystemExit(3)\n")
    done = team.helio("run", "--cluster", "team", "--working-dir", tmp_path, "--env", "K=v w", "--", "python3", "main.py", check=3)
    job = json.loads(team.helio("ps", "-o", "json", check=0).stdout)[0]
    assert job["spec"]["cluster"] == "team" and job["guest_of"] == team.get("/v1/clusters/team")["id"]
    assert done.stdout == f"here v w {job['id']} ['main.py']\n" and "in cluster team" in done.stderr
    assert job["state"] == "failed" and job["verdict"]["cause"] == "entrypoint.exit" and job["exit_code"] == 3
    assert {"accepted", "admitted", "submitted", "first_line", "driver_end", "logs_complete", "gone"} <= marks(team.attempts(job["id"])[0]).keys()
    assert team.helio("logs", job["id"], check=0).stdout == done.stdout
    assert "in team" in team.helio("show", job["id"], check=0).stdout
    assert (team.home / "jobs" / job["id"] / "outputs/made").read_text() == "x"
    again = team.wait(team.helio("rerun", job["id"], check=0).stdout.split()[0])
    assert again["exit_code"] == 3 and again["guest_of"] == job["guest_of"]
    assert team.get("/v1/clusters/team")["state"] == "running", "the cluster goes on"


def test_words_and_scripts_arrive_as_they_are(team, tmp_path):
    words = ["a b", "$HOME", "it's", '"q"', "", "*", "a\\b", "ü", "--flag", "back`tick`"]
    done = team.helio("run", "-q", "--cluster", "team", "--", "python3", "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *words, check=0)
    assert json.loads(done.stdout.splitlines()[-1]) == words
    (tmp_path / "body.sh").write_text("echo one\nfalse\necho never\n")
    assert team.helio("run", "-q", "--cluster", "team", "--script", tmp_path / "body.sh", check=1).stdout == "one\n"
    killed = team.submit("--cluster", "team", "--", "sh", "-c", "kill -9 $$")
    assert team.wait(killed)["verdict"]["cause"] == "entrypoint.signal"


def test_a_stop_reaches_the_program(team, tmp_path):
    job = team.submit("--cluster", "team", "--", "sh", "-c", f"trap 'echo bye > {tmp_path}/said; exit 0' TERM; echo up; while :; do sleep 0.1; done")
    team.until(job, ["running"])
    eventually("it is up", lambda: "up" in team.helio("logs", job, check=0).stdout)
    team.helio("stop", "--wait", job, check=0)
    assert team.job(job)["state"] == "stopped" and (tmp_path / "said").read_text() == "bye\n"
    assert not pids_with(str(tmp_path))


def test_nothing_of_an_attempt_outlives_its_node(team, tmp_path):
    """The submitter is killed: its program dies with it, and a second attempt runs it again, alone."""
    job = team.submit("--cluster", "team", "--", "sh", "-c",
                      f"echo x >> {tmp_path}/starts; test $(wc -l < {tmp_path}/starts) = 2 && exit 0; sleep 300; echo {tmp_path}")
    eventually("it runs", lambda: (tmp_path / "starts").exists(), 60)
    agent = next(pid for pid, command in processes_tagged(f"{job}-1-h") if "helio-agent" in command)
    os.kill(agent, signal.SIGKILL)
    row = team.wait(job, 60)
    assert row["state"] == "succeeded" and row["attempts"] == 2 and (tmp_path / "starts").read_text() == "x\nx\n"
    assert team.attempts(job)[0]["verdict"]["cause"] == "agent.died"
    assert not pids_with(str(tmp_path))


def test_a_daemon_that_is_killed_loses_no_job_and_runs_none_twice(stubbed, tmp_path):
    stubbed.helio("cluster", "create", "team", "--idle", "0s", check=0)
    job = stubbed.submit("--cluster", "team", "--", "sh", "-c", f"echo x >> {tmp_path}/starts; while test ! -e {tmp_path}/go; do sleep 0.1; done; echo end")
    eventually("it runs", lambda: (tmp_path / "starts").exists(), 60)
    stubbed.kill9()
    (tmp_path / "go").touch()
    stubbed.up()
    row = stubbed.wait(job, 60)
    assert row["state"] == "succeeded" and row["attempts"] == 1 and (tmp_path / "starts").read_text() == "x\n"
    assert stubbed.helio("logs", job, check=0).stdout == "end\n"


def test_who_deletes_the_cluster_ends_its_jobs_and_their_logs_are_whole(stubbed):
    stubbed.helio("cluster", "create", "team", "--idle", "0s", check=0)
    runs = stubbed.submit("--cluster", "team", "--", "sh", "-c", "seq 20000; sleep 300")
    stubbed.until(runs, ["running"])
    eventually("it has written", lambda: "20000" in stubbed.helio("logs", runs, check=0).stdout)
    stubbed.helio("cluster", "delete", "team", check=0)
    row = stubbed.wait(runs, 60)
    assert row["state"] == "failed" and row["verdict"]["cause"] == "cluster.ended" and row["attempts"] == 1
    assert stubbed.helio("logs", runs, check=0).stdout == "".join(f"{n}\n" for n in range(1, 20001))
    refused = stubbed.helio("run", "--cluster", "team", "--", "true")
    assert refused.returncode != 0 and "$.cluster" in refused.stderr and ("has ended" in refused.stderr or "shut down" in refused.stderr)
    eventually("all is gone", lambda: stubbed.get("/v1/clusters?ended=true")["items"][0]["state"] == "stopped", 30)
    stubbed.assert_nothing_left()


def test_a_cluster_that_is_lost_comes_back_with_its_jobs(stubbed, tmp_path):
    stubbed.helio("cluster", "create", "team", "--idle", "0s", check=0)
    job = stubbed.submit("--cluster", "team", "--", "sh", "-c", f"echo x >> {tmp_path}/starts; test $(wc -l < {tmp_path}/starts) = 2 && exit 0; sleep 300")
    eventually("it runs", lambda: (tmp_path / "starts").exists(), 60)
    cluster = stubbed.get("/v1/clusters/team")["id"]
    raylet = next(pid for pid, command in processes_tagged(f"{cluster}-1-h") if command.split()[0].endswith("/raylet"))
    os.kill(raylet, signal.SIGKILL)
    row = stubbed.wait(job, 90)
    assert row["state"] == "succeeded" and (tmp_path / "starts").read_text() == "x\nx\n"
    assert [one["verdict"]["cause"] for one in stubbed.attempts(job)] == ["cluster.lost", "succeeded"]
    assert stubbed.get("/v1/clusters/team")["attempts"] == 2


def test_a_job_waits_until_its_cluster_is_ready(daemon):
    cpu = daemon.get("/v1/hosts")["items"][0]["capacity"]["cpu"]
    daemon.helio("flavors", "set", "all", "--cpu", cpu, "--memory", "512MiB", check=0)
    blocker = daemon.submit("--head-flavor", "all", "--", "sleep", "300")
    daemon.until(blocker, ["running"])
    cluster = daemon.helio("cluster", "create", "late", "--idle", "0s", "--no-wait", check=0)
    job = daemon.submit("--cluster", "late", "--", "echo", "at last")
    assert "would wait" in daemon.helio("submit", "--dry-run", "--cluster", "late", "--", "true", check=0).stderr, cluster.stdout
    eventually("it says for what", lambda: "waiting for the cluster 'late', which is queued" in daemon.job(job)["reason"], 30)
    assert "'late' is ready" in daemon.helio("explain", job, check=0).stdout
    other = daemon.submit("--pending-deadline", "1s", "--cluster", "late", "--", "true")
    assert daemon.wait(other)["verdict"]["cause"] == "deadline.pending"
    daemon.helio("stop", "--wait", blocker, check=0)
    assert daemon.wait(job)["state"] == "succeeded"
    daemon.helio("cluster", "delete", "late", check=0)


@pytest.mark.parametrize("flags, path", [(["--workers", "2"], "$.workers"), (["--head-flavor", "small"], "$.head"), (["--num-cpus", "1"], "$.entrypoint.resources"),
                                         (["--secret-env", "K=v"], "$.env[0].secret"), (["--completion", "all"], "$.completion"),
                                         (["--retain", "head=10m"], "$.retention.nodes"), (["--disk-limit", "1GiB"], "$.disk_limit")])
def test_what_belongs_to_nodes_is_the_clusters(team, flags, path):
    done = team.helio("submit", "--cluster", "team", *flags, "--", "true")
    assert done.returncode != 0 and path in done.stderr, done.stderr
    done = team.helio("submit", "--cluster", "nowhere", "--", "true")
    assert done.returncode == 67 and "$.cluster" in done.stderr and "helio cluster list" in done.stderr


def shape(daemon):
    """Workers of the cluster that live and stay, by index."""
    job = daemon.get("/v1/clusters/team")
    return [node["index"] for node in daemon.nodes(job["id"]) if node["role"] == "worker" and node["state"] != "gone" and not node["leaving"]]


def test_a_cluster_grows_and_shrinks_without_losing_work(stubbed, tmp_path):
    busy = tmp_path / "busy"
    busy.touch()
    stubbed.helio("cluster", "create", "team", "--workers", "1", "--idle", "0s", "--env", f"STUB_RAY_BUSY={busy}", check=0)
    cluster = stubbed.get("/v1/clusters/team")["id"]
    runs = stubbed.submit("--cluster", "team", "--", "sh", "-c", f"while test ! -e {tmp_path}/go; do sleep 0.1; done")
    stubbed.until(runs, ["running"])
    assert "1+3" in stubbed.helio("cluster", "scale", "team", "3", check=0).stdout
    eventually("three serve", lambda: [node["state"] for node in stubbed.nodes(cluster) if node["role"] == "worker"] == ["serving"] * 3, 30)
    assert shape(stubbed) == [1, 2, 3]

    # The last leave when their work has ended, and not before.
    stubbed.helio("cluster", "scale", "team", "1", check=0)
    eventually("it says so", lambda: "w2, w3 leave when the work there has ended" in stubbed.get("/v1/clusters/team")["reason"], 10)
    assert all(node["state"] == "serving" for node in stubbed.nodes(cluster) if node["role"] == "worker")
    busy.unlink()
    eventually("they have left", lambda: [node["state"] for node in stubbed.nodes(cluster) if node["leaving"]] == ["gone", "gone"], 30)
    assert shape(stubbed) == [1]
    row = stubbed.get("/v1/clusters/team")
    assert row["state"] == "running" and row["attempts"] == 1 and row["spec"]["workers"][0]["count"] == 1
    stubbed.helio("cluster", "scale", "team", "2", check=0)
    eventually("a new one serves", lambda: [node["state"] for node in stubbed.nodes(cluster) if node["index"] == 4] == ["serving"], 30)
    (tmp_path / "go").touch()
    assert stubbed.wait(runs)["state"] == "succeeded", "what ran in it was not touched"

    for arguments, path in ((["team", "0"], "$.count"), (["team", "100000"], "$.count"), (["team", "2", "--group", "others"], "$.group")):
        refused = stubbed.helio("cluster", "scale", *arguments)
        assert refused.returncode != 0 and path in refused.stderr, refused.stderr
    stubbed.helio("cluster", "delete", "--wait", "team", check=0)
    stubbed.assert_nothing_left()


def test_a_cluster_that_grows_waits_for_room_and_is_made_again_in_its_new_size(stubbed):
    cpu = float(stubbed.get("/v1/hosts")["items"][0]["capacity"]["cpu"])
    for name, share in (("tiny", 0.5), ("big", cpu / 2 - 1)):
        stubbed.helio("flavors", "set", name, "--cpu", share, "--memory", "512MiB", check=0)
    stubbed.helio("cluster", "create", "team", "--head-flavor", "tiny", "--workers", "1:big", "--idle", "0s", check=0)
    cluster = stubbed.get("/v1/clusters/team")["id"]
    blocker = stubbed.submit("--head-flavor", "big", "--", "sleep", "300")
    stubbed.until(blocker, ["running"])
    stubbed.helio("cluster", "scale", "team", "2", check=0)
    eventually("it waits", lambda: "waits for room for more workers" in stubbed.get("/v1/clusters/team")["reason"], 10)
    assert shape(stubbed) == [1]
    stubbed.helio("stop", "--wait", blocker, check=0)
    eventually("there is room", lambda: shape(stubbed) == [1, 2], 30)
    eventually("both serve", lambda: [node["state"] for node in stubbed.nodes(cluster) if node["role"] == "worker"] == ["serving"] * 2, 30)
    raylet = next(pid for pid, command in processes_tagged(f"{cluster}-1-w1") if command.split()[0].endswith("/raylet"))
    os.kill(raylet, signal.SIGKILL)
    eventually("it was made again", lambda: stubbed.get("/v1/clusters/team")["attempts"] == 2 and shape(stubbed) == [1, 2], 60)
    stubbed.helio("cluster", "delete", "--wait", "team", check=0)
