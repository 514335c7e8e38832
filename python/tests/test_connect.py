import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import heliostat
from heliostat._connect import Daemon, find

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def ticks(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "admin.token").write_text("of-the-home\n")
    write(folder)
    return folder


def write(home, **changes):
    pid = os.getpid()
    document = {"pid": pid, "start_ticks": ticks(pid), "boot_id": BOOT, "url": "http://127.0.0.1:7070", "version": "0.1.0", **changes}
    (home / "daemon.json").write_text(json.dumps(document))


def test_the_daemon_of_the_home_is_found_with_its_token(home):
    assert find()() == Daemon("http://127.0.0.1:7070", "of-the-home")


def test_a_daemon_that_was_started_again_is_found_where_it_is_now(home):
    where = find()
    assert where().url == "http://127.0.0.1:7070"
    write(home, url="http://127.0.0.1:7071/")
    assert where().url == "http://127.0.0.1:7071"


@pytest.mark.parametrize("changes", [{"start_ticks": 1}, {"boot_id": "other"}, {"pid": 0}, {"url": ""}, {"pid": "x"}, {"start_ticks": None}])
def test_a_process_that_did_not_write_the_file_gets_no_token(home, changes):
    write(home, **changes)
    with pytest.raises(heliostat.Unavailable, match="helio up"):
        find()()


def test_an_ended_process_is_no_daemon(home):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write(home, pid=child.pid, start_ticks=ticks(child.pid))
    assert find()().token == "of-the-home"
    child.communicate(b"\n")
    with pytest.raises(heliostat.Unavailable):
        find()()


def test_no_daemon_and_damage(home, monkeypatch):
    (home / "daemon.json").write_text("{")
    with pytest.raises(heliostat.Unavailable, match="no daemon runs with"):
        find()()
    (home / "daemon.json").unlink()
    monkeypatch.setenv("HELIOSTAT_TOKEN", "t")
    with pytest.raises(heliostat.Unavailable, match="HELIOSTAT_URL too"):
        find()()


def test_arguments_win_over_the_environment_and_that_over_the_home(home, monkeypatch):
    monkeypatch.setenv("HELIOSTAT_TOKEN", "of-the-environment")
    assert find()() == Daemon("http://127.0.0.1:7070", "of-the-environment")
    monkeypatch.setenv("HELIOSTAT_URL", "http://there:1/below/")
    assert find()() == Daemon("http://there:1/below", "of-the-environment")
    assert find("https://here", "mine")() == Daemon("https://here", "mine")


def test_the_homes_token_goes_to_the_homes_daemon_only(home):
    assert find("http://127.0.0.1:7070/")().token == "of-the-home"
    with pytest.raises(heliostat.Unauthenticated, match="no token for http://127.0.0.1:7071"):
        find("http://127.0.0.1:7071")()
    write(home, start_ticks=1)
    with pytest.raises(heliostat.Unauthenticated):
        find("http://127.0.0.1:7070")()


def test_a_missing_or_empty_token(home):
    (home / "admin.token").write_text("\n")
    with pytest.raises(heliostat.Unauthenticated, match="admin.token is empty"):
        find()()
    (home / "admin.token").unlink()
    with pytest.raises(heliostat.Unauthenticated, match="HELIOSTAT_TOKEN"):
        find()()


@pytest.mark.parametrize("url", ["127.0.0.1:7070", "ftp://x", "http://", "http://x:port", "http://x:0", "http://x?a=b", "http://me:secret@x"])
def test_an_address_that_is_none(url):
    with pytest.raises(heliostat.InvalidArgument) as refused:
        heliostat.Client(url, "t")
    assert refused.value.path == "url"
