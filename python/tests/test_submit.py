"""From arguments to what is sent: short forms, packages, and what stays at home."""
import hashlib
import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

import heliostat
from heliostat import _package
from heliostat._package import IgnoreRules, glob, pack_code
from heliostat._spec import build_spec


def spec_of(spec=None, *, entrypoint=None, workers=None, env=None, working_dir=None, py_modules=None, **fields):
    return build_spec(spec, entrypoint, workers, env, working_dir, py_modules, fields)


# --- the document -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("arguments, document", [
    ({"entrypoint": "python a.py | tee b"}, {"entrypoint": {"command": "python a.py | tee b"}}),
    ({"entrypoint": ["python", "a b.py"]}, {"entrypoint": {"argv": ["python", "a b.py"]}}),
    ({"entrypoint": heliostat.Entrypoint(script="print(1)", language="python")}, {"entrypoint": {"script": "print(1)", "language": "python"}}),
    ({"entrypoint": {"argv": ("a", "b")}}, {"entrypoint": {"argv": ["a", "b"]}}),
    ({"workers": 2}, {"workers": [{"count": 2}]}),
    ({"workers": 0}, {"workers": []}),
    ({"workers": [heliostat.WorkerGroup(count=1, flavor="big"), {"name": "b", "count": 2}]},
     {"workers": [{"count": 1, "flavor": "big"}, {"name": "b", "count": 2}]}),
    ({"env": {"A": "1"}}, {"env": [{"name": "A", "value": "1"}]}),
    ({"env": [heliostat.EnvVar("K", "v", secret=True)]}, {"env": [{"name": "K", "value": "v", "secret": True}]}),
    ({"working_dir": Path("x"), "runtime_env": {"pip": ["a"]}}, {"runtime_env": {"pip": ["a"], "working_dir": "x"}}),
    ({"retries": {"user": 1}, "limits": heliostat.Limits(run="2h"), "image": None, "priority": 9},
     {"retries": {"user": 1}, "limits": {"run": "2h"}, "priority": 9}),
])
def test_short_forms(arguments, document):
    assert spec_of(**arguments) == document


def test_arguments_win_over_a_spec_which_is_left_as_it_is():
    given = {"name": "a", "image": "old", "entrypoint": {"argv": ["x"]}, "runtime_env": {"working_dir": "here", "pip": ["p"]}, "of_tomorrow": 1}
    before = str(given)
    assert spec_of(given, name="b", working_dir="there", entrypoint="y") == {
        "name": "b", "image": "old", "entrypoint": {"command": "y"}, "runtime_env": {"working_dir": "there", "pip": ["p"]}, "of_tomorrow": 1}
    assert str(given) == before
    typed = heliostat.JobSpec(entrypoint=heliostat.Entrypoint(argv=["x"]), name="a")
    assert spec_of(typed) == {"entrypoint": {"argv": ["x"]}, "name": "a"}


@pytest.mark.parametrize("arguments, path", [
    ({"env": {"A": 1}}, "$.env.A"), ({"labels": {"a": {1, 2}}}, "$.labels.a"), ({"py_modules": [os]}, "$.runtime_env.py_modules[0]"),
    ({"py_modules": "one"}, "$.runtime_env.py_modules"), ({"runtime_env": "x", "working_dir": "."}, "$.runtime_env")])
def test_what_json_cannot_say_is_named_by_its_path(arguments, path):
    with pytest.raises(heliostat.InvalidArgument) as refused:
        spec_of(**arguments)
    assert refused.value.path == path


def test_a_command_is_no_spec():
    with pytest.raises(heliostat.InvalidArgument, match="entrypoint="):
        spec_of("python train.py")


# --- packages ---------------------------------------------------------------------------------------------------------------------
def write(root, path, content="1"):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


def pack(root, excludes=(), field="working_dir"):
    """(digest, {name: content}, {name: mode}) of a folder's package."""
    spec = {"runtime_env": {field: str(root) if field == "working_dir" else [str(root)]}}
    package, = pack_code(spec, excludes)
    content = package.file.seek(0) or package.file.read()
    package.close()
    assert package.sha256 == hashlib.sha256(content).hexdigest()
    value = spec["runtime_env"][field]
    assert (value if field == "working_dir" else value[0]) == f"helio://packages/{package.sha256}.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return package.sha256, {one.filename: archive.read(one) for one in archive.infolist()}, {one.filename: one.external_attr >> 16 for one in
                                                                                                 archive.infolist()}


def test_the_same_content_is_the_same_package_whatever_its_times(root):
    write(root, "b.py")
    write(root, "a/c.py", "x" * 200000)
    write(root, "empty", "")
    os.chmod(write(root, "run.sh"), 0o755)
    digest, files, modes = pack(root)
    assert list(files) == ["a/c.py", "b.py", "empty", "run.sh"] and files["a/c.py"] == b"x" * 200000 and files["empty"] == b""
    assert modes == {"a/c.py": stat.S_IFREG | 0o644, "b.py": stat.S_IFREG | 0o644, "empty": stat.S_IFREG | 0o644, "run.sh": stat.S_IFREG | 0o755}
    os.utime(root / "b.py", (1, 1))
    assert pack(root)[0] == digest
    write(root, "b.py", "2")
    assert pack(root)[0] != digest


def test_ignored_files_stay_at_home(root):
    for path in ("keep.py", "big.bin", ".git/config", "__pycache__/keep.pyc", "skip.txt", "sub/x.tmp", "sub/y.py", "x.tmp"):
        write(root, path)
    write(root, ".gitignore", "*.bin\r\n")
    write(root, "sub/.rayignore", "*.tmp\n")
    assert list(pack(root, ["skip.*"])[1]) == [".gitignore", "keep.py", "sub/.rayignore", "sub/y.py", "x.tmp"]
    spec = {"runtime_env": {"working_dir": str(root), "excludes": ["*.py", "skip.*"]}}
    package, = pack_code(spec)
    assert zipfile.ZipFile(package.file).namelist() == [".gitignore", "sub/.rayignore", "x.tmp"]


def test_a_module_keeps_its_own_name(root):
    write(root, "__init__.py")
    assert list(pack(root, field="py_modules")[1]) == ["code/__init__.py"]


def test_a_zip_is_sent_as_it_is_and_an_address_is_left_alone(root):
    with zipfile.ZipFile(root / "x.zip", "w") as archive:
        archive.writestr("a.py", "1")
    spec = {"runtime_env": {"working_dir": str(root / "x.zip"), "py_modules": ["https://x/y.zip"]}}
    package, = pack_code(spec)
    assert package.sha256 == hashlib.sha256((root / "x.zip").read_bytes()).hexdigest()
    assert spec["runtime_env"] == {"working_dir": package.address, "py_modules": ["https://x/y.zip"]}
    package.close()
    assert (root / "x.zip").exists()


def refusal(spec_or_root, excludes=()):
    spec = spec_or_root if isinstance(spec_or_root, dict) else {"runtime_env": {"working_dir": str(spec_or_root)}}
    with pytest.raises(heliostat.HeliostatError) as refused:
        pack_code(spec, excludes)
    return refused.value


def test_what_cannot_be_packed_is_named(root, tmp_path):
    assert refusal(root).code == "invalid_argument" and "no file to upload" in str(refusal(root))
    assert refusal(tmp_path / "nothing").code == "not_found"
    error = refusal({"runtime_env": {"py_modules": ["https://x/y.zip", str(write(tmp_path, "a.whl"))]}})
    assert error.path == "$.runtime_env.py_modules[1]" and "URL" in str(error)
    assert refusal(root, "*.py").path == "excludes"
    assert "not a zip" in str(refusal(write(tmp_path, "a.zip", "hello")))
    write(root, "a.py")
    (root / "out").symlink_to("/etc/hostname")
    assert "leads out of" in str(refusal(root)) and refusal(root).path == "$.runtime_env.working_dir"
    assert list(pack(root, ["out"])[1]) == ["a.py"]
    (root / "out").unlink()
    (root / "lost").symlink_to("nowhere")
    assert "link to nothing" in str(refusal(root))
    (root / "lost").unlink()
    (root / "b.py").symlink_to("a.py")
    assert list(pack(root)[1]) == ["a.py", "b.py"]
    (root / "d").mkdir()
    (root / "d" / "up").symlink_to("..")
    assert "folders deep" in str(refusal(root))
    (root / "d" / "up").unlink()
    os.mkfifo(root / ".gitignore")
    assert ".gitignore is not a regular file" in str(refusal(root))
    (root / ".gitignore").unlink()
    (Path(os.fsdecode(os.fsencode(root) + b"/\xff"))).write_text("1")
    assert "UTF-8" in str(refusal(root))


def test_over_the_limit_the_largest_files_are_named(root, monkeypatch):
    monkeypatch.setattr(_package, "LIMIT", 100 << 10)
    write(root, "small.py")
    (root / "huge.dat").write_bytes(os.urandom(300000))
    error = refusal(root)
    assert error.code == "resource_exhausted" and "more than 100KiB; the largest files are huge.dat 293KiB, small.py 1B" in str(error)
    (root / "huge.dat").rename(root.parent / "huge.zip")
    assert refusal(root.parent / "huge.zip").code == "resource_exhausted"


@pytest.mark.parametrize("pattern, path, matches", [
    ("*.pyc", "a.pyc", True), ("*.pyc", "d/a.pyc", False), ("**/a.pyc", "a.pyc", True), ("**/a.pyc", "x/y/a.pyc", True), ("a/**", "a/b/c", True),
    ("a/**/c", "a/c", True), ("a/**/c", "a/x/y/c", True), ("f?o", "foo", True), ("f?o", "f/o", False), ("[a-c]1", "b1", True),
    ("[!a-c]1", "b1", False), ("[!a]b", "/b", False), ("[]a]x", "]x", True), ("[z-a]", "z", False), ("[a", "[a", True), ("[a-]", "-", True),
    ("\\*", "*", True), ("\\*", "x", False), ("a\\", "a\\", True), ("a.c", "abc", False), ("a**b", "a/x/b", True),
    ("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "a" * 4000, True)])
def test_globs(pattern, path, matches):
    assert bool(glob(pattern).fullmatch(path)) is matches


def test_rules_of_gitignore():
    rules = IgnoreRules()
    for line in ("*.log", "build/", "/top.txt", "docs/*.md", "# comment", "", "*.bin", "!keep.bin", "end\\ ", "trailing  "):
        rules.add(line)
    rules.add("data", "sub")
    stays = [("a.log", False), ("x/y/a.log", False), ("x/build", True), ("top.txt", False), ("docs/a.md", False), ("a.bin", False), ("end ", False),
             ("trailing", False), ("sub/data", True), ("sub/x/data", True)]
    goes = [("x/build", False), ("x/top.txt", False), ("x/docs/a.md", False), ("# comment", False), ("keep.bin", False), ("data", True),
            ("subway/data", True)]
    assert [one for one in stays if not rules.ignored(*one)] == []
    assert [one for one in goes if rules.ignored(*one)] == []


# --- what is sent -----------------------------------------------------------------------------------------------------------------
def test_code_is_uploaded_once_and_after_the_job_was_checked(fake, client, root):
    write(root, "main.py")
    digest = pack(root)[0]
    route = f"/v1/packages/{digest}"
    fake.on("POST", "/v1/jobs:preview", {"spec": {"entrypoint": {}}})
    fake.on("POST", "/v1/jobs", {"id": "j-1", "state": "queued"})
    fake.on("GET", route, lambda request: request.problem(404, "not_found"), {"sha256": digest})
    fake.on("PUT", route, lambda request: request.cut(), lambda request: request.reply({"sha256": digest}, 201))
    for _ in range(2):
        assert client.submit(entrypoint="python main.py", working_dir=str(root)).id == "j-1"
    check, submit = ("POST", "/v1/jobs:preview"), ("POST", "/v1/jobs")
    assert [(request.method, request.path) for request in fake.requests] == [
        check, ("GET", route), ("PUT", route), ("PUT", route), submit, check, ("GET", route), submit]
    assert hashlib.sha256(fake.requests[3].body).hexdigest() == digest, "the second try sends all of it again"
    assert fake.requests[-1].json == {"entrypoint": {"command": "python main.py"}, "runtime_env": {"working_dir": f"helio://packages/{digest}.zip"}}


def test_a_wrong_job_uploads_nothing(fake, client, root):
    write(root, "main.py")
    fake.on("POST", "/v1/jobs:preview", lambda request: request.problem(400, "invalid_argument", "unknown field", path="$.colour"))
    with pytest.raises(heliostat.InvalidArgument) as refused:
        client.submit(entrypoint="x", working_dir=root, colour="red")
    assert refused.value.path == "$.colour"
    assert [request.path for request in fake.requests] == ["/v1/jobs:preview"]


def test_a_preview_uploads_nothing(fake, client, root):
    write(root, "main.py")
    fake.on("POST", "/v1/jobs:preview", {"starts_now": True, "would": "start now", "spec": {"entrypoint": {"command": "x"}}})
    assert client.preview(entrypoint="x", working_dir=root).starts_now is True
    assert len(fake.requests) == 1
