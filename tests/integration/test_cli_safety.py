"""What the CLI may not do to the machine that it runs on: files, tokens, processes and memory."""
import json
import os
import signal
import socket
import stat
import subprocess
import threading

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
        self.socket = socket.create_server(("127.0.0.1", port))
        self.start()

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
