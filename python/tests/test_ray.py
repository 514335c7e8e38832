import os
import subprocess
import sys
from pathlib import Path

import pytest

import heliostat

ask = heliostat.get_job_submission_client_cluster_info


@pytest.fixture
def daemon(monkeypatch):
    monkeypatch.setenv("HELIOSTAT_URL", "http://127.0.0.1:7070")
    monkeypatch.setenv("HELIOSTAT_TOKEN", "t")


@pytest.mark.parametrize("address, url", [("", "http://127.0.0.1:7070/ray/default"), ("default", "http://127.0.0.1:7070/ray/default"),
                                          ("team-a", "http://127.0.0.1:7070/ray/team-a"), ("there:1", "http://there:1/ray/default"),
                                          ("there:1/", "http://there:1/ray/default"), ("[::1]:1/team_a", "http://[::1]:1/ray/team_a")])
def test_addresses(daemon, address, url):
    info = ask(address)
    assert info.address == url and info.headers == {"Authorization": "Bearer t"} and info.cookies is info.metadata is None


@pytest.mark.parametrize("address", ["there/default", "there:port", "a:1/b/c", "a b", "me:secret@there:1", "there:1/a%2f"])
def test_addresses_that_are_none(daemon, address):
    with pytest.raises(heliostat.InvalidArgument, match="heliostat://HOST:PORT/WORKSPACE"):
        ask(address)


def test_what_ray_passes_is_passed_on(daemon, monkeypatch):
    info = ask("default", create_cluster_if_needed=True, cookies={"a": "b"}, metadata={"heliostat.workers": "2"}, headers={"X-Heliostat-Image": "i"},
               of_tomorrow=1)
    assert info.cookies == {"a": "b"} and info.metadata == {"heliostat.workers": "2"}
    assert info.headers == {"X-Heliostat-Image": "i", "Authorization": "Bearer t"}
    own = {"authorization": "Bearer mine"}
    monkeypatch.delenv("HELIOSTAT_TOKEN")
    assert ask("default", headers=own).headers == own
    with pytest.raises(heliostat.Unauthenticated):
        ask("default")


def test_no_daemon():
    with pytest.raises(heliostat.Unavailable, match="helio up"):
        ask("default")


def test_the_standard_library_is_all_that_it_needs():
    """Ray imports it in the user's own Python: -S leaves out site-packages."""
    env = {"PYTHONPATH": str(Path(heliostat.__file__).parents[1]), "PATH": os.environ["PATH"]}
    code = "import sys, heliostat; print(sorted(m for m in sys.modules if 'site-packages' in (getattr(sys.modules[m], '__file__', None) or '')))"
    done = subprocess.run([sys.executable, "-S", "-W", "error", "-c", code], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
