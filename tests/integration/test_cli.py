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
