"""What the CLI says: previews, hints, names, and that nothing is silent."""
import json
import os
import re
import shutil
import subprocess

import pytest

from heliostat import ROOT, eventually


@pytest.fixture
def code(tmp_path):
    """A folder that nobody has uploaded yet."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "main.py").write_text(f"print('{os.urandom(8).hex()}')\n")
    (tmp_path / "job.yaml").write_text("name: filed\nentrypoint: {argv: [python, main.py]}\nruntime_env: {working_dir: code}\n")
    return folder


def packages(it):
    return list((it.home / "packages").glob("*")) if (it.home / "packages").exists() else []


def jobs(it):
    return it.get("/v1/jobs")["items"]


# --- previews ---------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words", [["submit", "--working-dir", "code", "--dry-run", "--", "python", "main.py"],
                                   ["run", "--working-dir", "code", "--dry-run", "--", "python", "main.py"],
                                   ["run", "-f", "job.yaml", "--dry-run"],
                                   ["submit", "job.yaml", "--dry-run"]])
def test_a_dry_run_of_code_that_was_never_uploaded_stores_and_sends_nothing(daemon, code, words):
    had = packages(daemon), jobs(daemon)
    done = daemon.helio(*words, cwd=code.parent, check=0)
    assert "helio://packages/" in done.stdout and "would start now" in done.stderr
    assert (packages(daemon), jobs(daemon)) == had


def test_a_wrong_field_is_told_before_the_code_is_sent(daemon, code):
    had = packages(daemon)
    done = daemon.helio("submit", "--image", "nope", "--working-dir", code, "--", "python", "main.py", check=67)
    assert "$.image" in done.stderr and "code " not in done.stderr
    assert packages(daemon) == had


# --- logs -------------------------------------------------------------------------------------------------------------------------

def test_logs_that_select_nothing_say_so(daemon):
    job = daemon.submit("--workers", "2", "--", "sh", "-c", "echo out; sleep 60")
    daemon.until(job, ["running"])
    eventually("its output is here", lambda: daemon.helio("logs", job, check=0).stdout == "out\n")
    listed = daemon.helio("logs", "-l", job, check=0).stdout
    assert re.search(r"^head +driver ", listed, re.M) and re.search(r"^w2 ", listed, re.M) and job not in listed
    assert all(item["node"].startswith(job) for item in json.loads(daemon.helio("logs", "-l", job, "-o", "json", check=0).stdout)["items"])

    for live in (True, False):
        done = daemon.helio("logs", job, "--node", "w9", check=67)
        assert "no node w9; there are head, w1, w2" in done.stderr
        done = daemon.helio("logs", job, "--node", "w1", check=0)
        assert "--stream" in done.stderr and "raylet.out" in done.stdout and "driver" not in done.stdout
        done = daemon.helio("logs", job, "--node", "w1", "--stream", "nope", check=67)
        assert "w1 has no stream 'nope'; it has" in done.stderr and "raylet.out" in done.stderr
        whole = daemon.helio("logs", job, "--node", "w1", "--stream", "raylet.out", check=0).stdout
        assert whole and daemon.helio("logs", job, "--node", "w1", "--stream", "raylet.o", check=0).stdout == whole
        assert "<==" in daemon.helio("logs", job, "--node", "w1", "--stream", "*", check=0).stderr
        assert "nothing of it matches" in daemon.helio("logs", job, "--grep", "absent", check=0).stderr
        assert daemon.helio("logs", job, "--attempt", "7").returncode == 67
        if live:
            daemon.helio("stop", "--wait", job, check=0)


def test_logs_of_a_job_without_output_say_what_it_is_doing(stubbed):
    cpu = stubbed.get("/v1/hosts")["items"][0]["capacity"]["cpu"]
    stubbed.helio("flavors", "set", "all", "--cpu", cpu, "--memory", "512MiB", check=0)
    first = stubbed.submit("--head-flavor", "all", "--", "sleep", "60")
    stubbed.until(first, ["running"])
    second = stubbed.submit("--head-flavor", "all", "--", "true")
    done = stubbed.helio("logs", second, check=0)
    assert done.stdout == "" and re.match(r"no output yet: queued: .+\n$", done.stderr)
    assert "no streams yet: queued" in stubbed.helio("logs", "-l", second, check=0).stderr
    stubbed.helio("stop", second, "--wait", check=0)
    assert re.match(r"no output: stopped.*\n$", stubbed.helio("logs", second, check=0).stderr)
    stubbed.helio("stop", first, "--wait", check=0)


# --- names, stop, down ------------------------------------------------------------------------------------------------------------

def test_a_name_means_the_job_that_lives(daemon):
    first = daemon.submit("--name", "twin", "--", "sleep", "60")
    daemon.helio("stop", "--wait", "twin", check=0)
    second = daemon.submit("--name", "twin", "--", "sleep", "60")
    assert daemon.helio("show", "twin", check=0).stdout.startswith(second)
    third = daemon.submit("--name", "twin", "--", "sleep", "60")
    done = daemon.helio("stop", "twin", check=69)
    assert second in done.stderr and third in done.stderr and first not in done.stderr and "old" in done.stderr
    daemon.helio("stop", "--wait", second, third, check=0)
    assert daemon.helio("show", "twin", check=0).stdout.startswith(third)


def test_an_empty_name_means_no_job(stubbed):
    job = stubbed.submit("--", "true")
    stubbed.wait(job)
    for command in ("rm", "stop", "show", "rerun"):
        assert "the job is empty" in stubbed.helio(command, "", check=64).stderr
    assert stubbed.job(job)["state"] == "succeeded"


# --- tokens -----------------------------------------------------------------------------------------------------------------------

def test_a_token_gives_what_its_role_may_until_it_is_revoked(daemon):
    url = {"HELIOSTAT_URL": daemon.daemon_file()["url"]}
    made = daemon.helio("tokens", "create", "ada-laptop", "--role", "developer", "--principal", "ada", "--expires", "30d", check=0)
    secret = made.stdout.strip()
    identity = re.match(r"(t-\w+): ada as developer, until 20", made.stderr)[1]
    ada = {**url, "HELIOSTAT_TOKEN": secret}
    job = daemon.submit("--", "true", env=ada)
    assert daemon.wait(job)["owner"] == "ada"
    assert "that needs role admin" in daemon.helio("tokens", env=ada, check=66).stderr
    viewer = {**url, "HELIOSTAT_TOKEN": daemon.helio("token", "create", "screen", "--role", "viewer", check=0).stdout.strip()}
    assert job in daemon.helio("ps", env=viewer, check=0).stdout
    assert "role viewer may not create jobs; that needs role developer" in daemon.helio("submit", "--", "true", env=viewer, check=66).stderr
    assert "developer for one's own, op for those of others" in daemon.helio("stop", job, env=viewer, check=66).stderr
    assert "HELIOSTAT_URL" in daemon.helio("ps", env={"HELIOSTAT_TOKEN": secret, "HELIOSTAT_HOME": "/nowhere"}, check=72).stderr
    elsewhere = daemon.helio("ps", env={"HELIOSTAT_URL": "http://127.0.0.1:9"}, check=None)
    assert "not the daemon of this home: set HELIOSTAT_TOKEN" in elsewhere.stderr, "the home's own token is for its own daemon"
    listed = daemon.helio("tokens", check=0).stdout
    assert re.search(rf"^{identity} +ada-laptop +ada +developer .* in 2\d+d", listed, re.M), listed
    assert secret not in listed and secret not in daemon.helio("tokens", "-o", "json", check=0).stdout
    assert "no token has the id or name" in daemon.helio("tokens", "rm", "screen", "nobody", check=67).stderr
    daemon.helio("ps", env=viewer, check=0)
    assert "is refused" in daemon.helio("tokens", "rm", "screen", check=0).stdout
    daemon.helio("ps", env=viewer, check=65)
    assert daemon.helio("tokens", "rm", identity, check=0).stdout == f"{identity} is refused from now on\n"
    assert "wrong, expired or revoked" in daemon.helio("ps", env=ada, check=65).stderr
    assert "--expires" in daemon.helio("tokens", "create", "x", "--role", "viewer", "--expires", "soon", check=64).stderr
    made = daemon.helio("tokens", "create", "elsewhere", "--role", "developer", "--workspace", "team-b", "--workspace", "team-c", check=0)
    assert "elsewhere as developer in team-b,team-c, without an end" in made.stderr
    assert re.search(r"elsewhere +elsewhere +developer +team-b,team-c ", daemon.helio("tokens", check=0).stdout)
    elsewhere = {**url, "HELIOSTAT_TOKEN": made.stdout.strip()}
    assert job not in daemon.helio("ps", "--all", env=elsewhere, check=0).stdout
    assert f"no job '{job}'" in daemon.helio("show", job, env=elsewhere, check=67).stderr
    assert "this token is for team-b, team-c" in daemon.helio("submit", "--", "true", env=elsewhere, check=67).stderr
    assert "viewer or developer" in daemon.helio("tokens", "create", "x", "--role", "op", "--workspace", "default", check=64).stderr
    assert "start the daemon again" in daemon.helio("tokens", "rm", "admin", check=70).stderr


def test_jobs_are_all_found_before_one_is_removed(daemon):
    first, second = (daemon.submit("--", "true") for _ in range(2))
    daemon.wait(first)
    daemon.wait(second)
    daemon.helio("rm", first, "nope", check=67)
    assert daemon.job(first)["state"] == "succeeded"
    assert daemon.helio("rm", "last", "last", second, check=0).stdout == f"{second}  removed\n"
    assert daemon.job(first)["state"] == "succeeded"


def test_stop_says_what_it_does(daemon):
    job = daemon.submit("--name", "kept", "--retain", "all=1h", "--", "sleep", "60")
    daemon.until(job, ["running"])
    assert daemon.helio("stop", job, check=0).stdout == f"{job}  stopping\n"
    daemon.wait(job)
    kept = daemon.submit("--retain", "all=1h", "--", "false")
    daemon.wait(kept)
    assert daemon.helio("stop", kept, check=0).stdout == f"{kept}  failed; its kept nodes are given back\n"
    eventually("its nodes are gone", lambda: daemon.helio("stop", kept, check=0).stdout == f"{kept}  failed\n", 15)
    last = daemon.submit("--", "sleep", "60")
    assert daemon.helio("stop", "--wait", last, check=0).stdout == f"{last}  stopping\n{last}  stopped\n"


def test_down_names_the_jobs_that_go_on_and_ends_them_when_asked(stubbed):
    job = stubbed.submit("--name", "long", "--", "sleep", "60")
    stubbed.until(job, ["running"])
    said = stubbed.helio("down", check=0).stdout
    assert "1 job goes on without it (long)" in said and "helio down --stop-jobs" in said
    # As it was told: also when the daemon is down already.
    assert stubbed.helio("down", "--stop-jobs", check=0).stdout == "heliostat is down\n"
    assert stubbed.helio("down", check=0).stdout == "heliostat was not up\n"
    stubbed.up()
    assert stubbed.job(job)["state"] == "stopped"
    assert stubbed.helio("down", check=0).stdout == "heliostat is down\n"


# --- slips ------------------------------------------------------------------------------------------------------------------------

def test_usual_slips_are_answered_with_what_to_type(daemon, code):
    slips = [(["run", "--workers", "2", "python", "main.py"], 64, "put -- before the command: helio run --workers 2 -- python main.py"),
             (["submit", "sleep", "5"], 64, "helio submit -- sleep 5"),
             (["submit", "sleep"], 67, "helio submit -- sleep"),
             (["submit", "code/main.py"], 64, "helio submit --working-dir . -- python code/main.py"),
             (["run", "job.yaml"], 64, "a job file goes with -f: helio run -f job.yaml (or: helio submit job.yaml)")]
    had = jobs(daemon)
    for words, exit_code, text in slips:
        done = daemon.helio(*words, cwd=code.parent, check=exit_code)
        assert text in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert jobs(daemon) == had
    done = daemon.helio("image", "add", "bad", "--python", "/usr/games/nothing", check=64)
    assert "prefix" in done.stderr and "bin/python" in done.stderr


def test_a_file_that_does_not_travel_is_hinted_at(daemon, code):
    hint = "main.py is in this folder but is not sent along: add --working-dir ."
    words = ["submit", "--dry-run", "--", "python", "main.py"]
    assert hint in daemon.helio(*words, cwd=code, check=0).stderr
    assert hint not in daemon.helio("submit", "--working-dir", ".", *words[1:], cwd=code, check=0).stderr
    assert hint not in daemon.helio(*words, cwd=code.parent, check=0).stderr


# --- what is shown ----------------------------------------------------------------------------------------------------------------

def test_stages_come_in_order_of_their_times(daemon):
    err = daemon.helio("run", "--workers", "1", "--", "echo", "x", check=0).stderr
    assert "queued:" not in err
    times = [float(t) for t in re.findall(r"^ *([0-9.]+)s  \w", err, re.M)]
    assert len(times) > 5 and times == sorted(times), err


def test_the_status_is_a_table_and_events_are_the_last_hundred(daemon):
    table = daemon.helio("status", check=0).stdout
    assert re.search(r"^url +http", table, re.M) and "{" not in table and "E-" not in table
    assert json.loads(daemon.helio("status", "-o", "json", check=0).stdout)["pid"] == daemon.pid
    while daemon.get("/v1/status")["revision"] < 150:
        daemon.helio("flavors", "set", "many", "--cpu", 1, "--about", os.urandom(4).hex(), check=0)
    done = daemon.helio("events", check=0)
    assert 0 < len(done.stdout.splitlines()) <= 100 and "the last 100" in done.stderr
    assert len(daemon.helio("events", "-n", 3, check=0).stdout.splitlines()) <= 3
    assert len(daemon.helio("events", "--since", 0, check=0).stdout.splitlines()) > 100
    job = daemon.submit("--", "echo", "again")
    daemon.wait(job)
    done = daemon.helio("rerun", "-f", "-q", job, check=0)
    assert (done.stdout, done.stderr) == ("again\n", "")


# --- ./dev ------------------------------------------------------------------------------------------------------------------------

def test_a_build_gives_signs_of_life_without_escapes_where_there_is_no_terminal(tmp_path):
    shutil.copy(ROOT / "dev", tmp_path)
    (tmp_path / "build/release").mkdir(parents=True)
    (tmp_path / "build/release/build.ninja").touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    real_sleep = shutil.which("sleep")

    def build(exit_code):
        # A build that takes many pauses of the heartbeat, which are short here.
        for name, body in (("ninja", f"echo '[3/7] compiling'; {real_sleep} 1; echo 'why it failed'; exit {exit_code}"),
                           ("sleep", f"exec {real_sleep} 0.1")):
            (programs / name).write_text(f"#!/bin/sh\n{body}\n")
            (programs / name).chmod(0o755)
        return subprocess.run([tmp_path / "dev", "build"], env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}, capture_output=True,
                              text=True, timeout=30, check=False)

    done = build(0)
    assert done.returncode == 0 and done.stdout == ""
    assert "== building: [3/7] steps\n" in done.stderr and "\033" not in done.stderr and "failed" not in done.stderr
    done = build(5)
    assert done.returncode == 5 and "why it failed" in done.stderr and "compiling" not in done.stderr
