"""What the CLI may not do to the machine that it runs on: files, tokens, processes and memory."""
import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from heliostat import BIN, Heliostat, eventually


@pytest.fixture
def outputs(stubbed):
    """A job that left outputs/out.txt with the text "new"."""
    job = stubbed.submit("--", "sh", "-c", 'mkdir -p "$HELIOSTAT_OUTPUT_DIR/sub"; printf new > "$HELIOSTAT_OUTPUT_DIR/out.txt"')
    assert stubbed.wait(job)["state"] == "succeeded"
    return job


# --- cp -------------------------------------------------------------------------------------------------------------------------------


def test_cp_writes_into_a_fifo_and_does_not_replace_it(stubbed, outputs, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()), daemon=True)
    reader.start()
    stubbed.helio("cp", f"{outputs}:outputs/out.txt", fifo, check=0)
    reader.join(10)
    assert got == ["new"] and stat.S_ISFIFO(fifo.lstat().st_mode)
    # Through a link too: the link stays, and so does what it leads to.
    (tmp_path / "link").symlink_to("fifo")
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()), daemon=True)
    reader.start()
    stubbed.helio("cp", f"{outputs}:outputs/out.txt", tmp_path / "link", check=0)
    reader.join(10)
    assert got == ["new", "new"] and (tmp_path / "link").is_symlink() and stat.S_ISFIFO(fifo.lstat().st_mode)


def test_cp_follows_links(stubbed, outputs, tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "real.txt").chmod(0o600)
    (tmp_path / "link").symlink_to("real.txt")
    stubbed.helio("cp", f"{outputs}:outputs/out.txt", tmp_path / "link", check=0)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real.txt").read_text() == "new"
    assert (tmp_path / "real.txt").stat().st_mode & 0o777 == 0o600
    (tmp_path / "folder").mkdir()
    (tmp_path / "ahead").symlink_to("folder/later.txt")
    stubbed.helio("cp", f"{outputs}:outputs/out.txt", tmp_path / "ahead", check=0)
    assert (tmp_path / "ahead").is_symlink() and (tmp_path / "folder/later.txt").read_text() == "new"
    (tmp_path / "loop").symlink_to("loop")
    assert "loop" in stubbed.helio("cp", f"{outputs}:outputs/out.txt", tmp_path / "loop").stderr
    assert (tmp_path / "loop").is_symlink()


def test_cp_leaves_what_is_protected_and_what_is_not_its_own(stubbed, outputs, tmp_path):
    (tmp_path / "kept.txt").write_text("old")
    (tmp_path / "kept.txt").chmod(0o400)
    (tmp_path / "other.txt.part").write_text("mine")
    assert "write-protected" in stubbed.helio("cp", f"{outputs}:outputs/out.txt", tmp_path / "kept.txt", check=66).stderr
    assert (tmp_path / "kept.txt").read_text() == "old"
    stubbed.helio("cp", f"{outputs}:outputs/out.txt", tmp_path / "other.txt", check=0)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"kept.txt": "old", "other.txt": "new", "other.txt.part": "mine"}
    (tmp_path / "out.txt").mkdir()
    stubbed.helio("cp", f"{outputs}:outputs/out.txt", tmp_path, check=64)
    assert (tmp_path / "out.txt").is_dir()


def test_cp_to_a_dash_is_standard_output(stubbed, outputs, tmp_path):
    done = stubbed.helio("cp", f"{outputs}:outputs/out.txt", "-", check=0, cwd=tmp_path)
    assert done.stdout == "new" and list(tmp_path.iterdir()) == []
    assert "folder" in stubbed.helio("cp", outputs, "-", check=64, cwd=tmp_path).stderr


# --- whose daemon ---------------------------------------------------------------------------------------------------------------------


class Thief(threading.Thread):
    """Answers 200 to everything on a port and keeps what it was sent."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.got = b""
        self.port = port
        self.socket = eventually("the port is free", self.listen)
        self.start()

    def listen(self):
        try:
            return socket.create_server(("127.0.0.1", self.port))
        except OSError:  # the threads of the one that was killed still end
            return None

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.got += connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"items\":[]}")


def test_the_token_goes_to_nobody_who_took_the_port(heliostat):
    heliostat.kill9()
    former = heliostat.daemon_file()
    thief = Thief(int(former["url"].rsplit(":", 1)[1]))
    for command in (["ps"], ["status"], ["version"], ["down", "--stop-jobs"]):
        heliostat.helio(*command)
    assert "helio up" in heliostat.helio("ps", check=72).stderr
    # A process that has the pid by now is not the daemon either.
    (heliostat.home / "daemon.json").write_text(json.dumps({**former, "pid": os.getpid()}))
    heliostat.helio("ps", check=72)
    (heliostat.home / "daemon.json").write_text(json.dumps({**former, "boot_id": "another"}))
    heliostat.helio("ps", check=72)
    assert thief.got == b""
    done = json.loads(heliostat.helio("up", "-o", "json", check=0).stdout)
    assert done["started"] and done["url"] != former["url"] and thief.got == b""
    thief.socket.close()


def alive(pid):
    try:
        return " Z " not in open(f"/proc/{pid}/stat").read()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("content", [None, "", "junk", "{}", '{"pid": 1, "url": "http://127.0.0.1:9"}'])
def test_a_lost_daemon_file_comes_back(heliostat, content):
    pid, file = heliostat.pid, heliostat.home / "daemon.json"
    before = file.read_text()
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    done = json.loads(heliostat.helio("up", "-o", "json", check=0, timeout=20).stdout)
    assert not done["started"] and heliostat.pid == pid and file.read_text() == before


def test_down_ends_the_holder_of_the_lock_without_a_daemon_file(heliostat):
    pid = heliostat.pid
    (heliostat.home / "daemon.json").unlink()
    assert "is down" in heliostat.helio("down", check=0).stdout
    assert not alive(pid)
    assert "was not up" in heliostat.helio("down", check=0).stdout


def test_a_stopped_daemon_is_named(heliostat):
    pid = heliostat.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        for command in ("up", "down"):
            done = heliostat.helio(command, check=72, timeout=20)
            assert f"pid {pid}" in done.stderr and "-CONT" in done.stderr
        (heliostat.home / "daemon.json").unlink()
        for command in ("up", "down"):
            assert f"pid {pid}" in heliostat.helio(command, check=72, timeout=20).stderr
    finally:
        os.kill(pid, signal.SIGCONT)
    assert alive(pid)
    heliostat.helio("up", check=0)
    assert heliostat.pid == pid


def test_a_lock_that_somebody_else_holds_is_nobody_to_end(heliostat):
    heliostat.down()
    with open(heliostat.home / "lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"heliostatd 0.1.0 pid {os.getpid()}\n")
        lock.flush()
        assert "fuser" in heliostat.helio("down", check=72).stderr


def test_up_waits_for_a_daemon_that_is_on_its_way_out(heliostat):
    heliostat.down()
    with open(heliostat.home / "lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        up = heliostat.popen("up")
        with pytest.raises(subprocess.TimeoutExpired):
            up.wait(1.5)
    assert up.wait(20) == 0, up.stderr.read()
    heliostat.helio("ps", check=0)


def test_up_and_down_at_once_leave_what_the_last_one_said(heliostat):
    for _ in range(5):
        down = heliostat.popen("down")
        ups = [heliostat.popen("up") for _ in range(2)]
        assert all(up.wait(60) == 0 for up in ups), [up.stderr.read() for up in ups]
        assert down.wait(60) == 0
        heliostat.helio("up", check=0)
        heliostat.helio("ps", check=0)


def test_a_config_that_is_no_file_is_named_at_once(heliostat):
    heliostat.down()
    os.mkfifo(heliostat.home / "config.yaml")
    assert "config.yaml" in heliostat.helio("up", check=72, timeout=20).stderr
    (heliostat.home / "config.yaml").unlink()
    heliostat.helio("up", check=0)


def test_a_daemon_that_up_gives_up_is_ended(heliostat):
    """Nothing in heliostatd hangs by itself: a program of that name that does stands for it."""
    heliostat.down()
    (heliostat.home / "bin").mkdir()
    shutil.copy(BIN / "helio", heliostat.home / "bin/helio")
    fake = heliostat.home / "bin/heliostatd"
    fake.write_text('#!/bin/sh\ntrap "" TERM\necho $$ > "$HELIOSTAT_HOME/fake.pid"\nwhile :; do sleep 1; done\n')
    fake.chmod(0o755)
    done = subprocess.run([heliostat.home / "bin/helio", "up"], env=heliostat.env, capture_output=True, text=True, timeout=50)
    assert done.returncode == 72 and "was ended" in done.stderr
    assert not alive(int((heliostat.home / "fake.pid").read_text()))


def test_a_daemon_whose_folder_is_gone_ends(heliostat):
    pid = heliostat.pid
    shutil.rmtree(heliostat.home)
    eventually("the daemon has ended", lambda: not alive(pid))
    heliostat.helio("up", check=0)
    pid = heliostat.pid
    heliostat.home.rename(f"{heliostat.home}-moved")
    try:
        eventually("the daemon has ended", lambda: not alive(pid))
        heliostat.helio("up", check=0)
        pid = heliostat.pid
        (heliostat.home / "lock").unlink()
        eventually("the daemon has ended", lambda: not alive(pid))
        assert "lock is gone" in heliostat.daemon_log()
    finally:
        shutil.rmtree(f"{heliostat.home}-moved")


# --- what users name ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["", ":", "::", ":/x", ":x:ro"])
def test_an_empty_mount_is_refused(heliostat, source):
    assert "--mount" in heliostat.helio("run", "--mount", source, "--", "true", check=64).stderr


def test_an_empty_path_of_an_image_is_refused(heliostat, tmp_path):
    assert "--python" in heliostat.helio("image", "add", "x", "--python", "", check=64).stderr
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(["sh", "-c", 'rmdir "$PWD"; exec "$0" "$@"', BIN / "helio", "image", "add", "x", "--python", "here"], cwd=gone,
                          env=heliostat.env, capture_output=True, text=True, timeout=20)
    assert done.returncode == 67 and "folder" in done.stderr


def test_a_path_below_a_folder_that_is_gone_is_refused(heliostat, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(["sh", "-c", 'rmdir "$PWD"; exec "$0" "$@"', BIN / "helio", "submit", "--working-dir", "code", "--", "true"], cwd=gone,
                          env=heliostat.env, capture_output=True, text=True, timeout=20)
    assert done.returncode == 67 and "find code below the current folder" in done.stderr


@pytest.mark.parametrize("flag", ["--env-file", "--requirements", "--runtime-env", "--script"])
def test_a_flag_that_names_no_file_is_refused_at_once(heliostat, tmp_path, flag):
    os.mkfifo(tmp_path / "fifo")
    command = [] if flag == "--script" else ["--", "true"]
    for path in (tmp_path / "fifo", "/dev/zero", tmp_path):
        assert flag in heliostat.helio("submit", flag, path, *command, check=64, timeout=10).stderr


def test_text_may_come_from_the_shell(stubbed):
    done = subprocess.run(["bash", "-c", '"$0" run -q --env-file <(echo WHO=pipe) --script /dev/stdin', BIN / "helio"], env=stubbed.env,
                          input="echo from $WHO\n", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "from pipe\n"), done.stderr
    with open("/dev/zero") as endless:
        done = subprocess.run([BIN / "helio", "submit", "--script", "/dev/stdin"], env=stubbed.env, stdin=endless, capture_output=True,
                              text=True, timeout=20)
    assert done.returncode == 71 and "1MiB" in done.stderr


def test_a_gitignore_that_is_a_fifo_does_not_hang(heliostat, tmp_path):
    (tmp_path / "a.py").write_text("1")
    os.mkfifo(tmp_path / ".gitignore")
    assert ".gitignore" in heliostat.helio("submit", "--working-dir", tmp_path, "--", "true", check=64, timeout=10).stderr


def test_a_folder_that_was_there_keeps_its_mode(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "theirs").touch()
    it = Heliostat(folder=shared)
    refused = it.helio("up", check=70)
    assert "chmod 700" in refused.stderr and (shared.stat().st_mode & 0o777) == 0o755
    made = Heliostat(folder=tmp_path / "new")
    shutil.rmtree(made.home)
    made.helio("up", check=0)
    assert (made.home.stat().st_mode & 0o777) == 0o700
    made.helio("down", check=0)


def test_a_session_root_that_was_there_keeps_its_mode(tmp_path):
    root = Path("/tmp") / f"hr{os.getpid() % 10000}"
    root.mkdir(mode=0o755)
    it = Heliostat(settings={"pool": {"session_root": str(root)}})
    try:
        it.helio("up", check=0)
        assert (root.stat().st_mode & 0o777) == 0o755
    finally:
        it.helio("down")
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(it.home, ignore_errors=True)
