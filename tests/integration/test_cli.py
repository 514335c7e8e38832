"""What the CLI says: previews, hints, names, and that nothing is silent."""
import json
import os
import re

import pytest

from heliostat import Heliostat, eventually


@pytest.fixture(scope="module")
def daemon(stub_prefix):
    """Shared by the tests that need no daemon of their own."""
    it = Heliostat().up()
    it.add_image("default", stub_prefix)
    yield it
    it.close()


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
