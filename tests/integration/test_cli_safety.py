"""What the CLI may not do to the machine that it runs on: files, tokens, processes and memory."""
import json
import os
import signal
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
