"""A long-lived cluster of real Ray: what its users see from its making to its shutdown for want of use."""
import concurrent.futures
import os
import re
import signal
import subprocess
import textwrap
import time

from conftest import ray_prefix
from heliostat import eventually, processes_tagged


def clients_of(real, version, cluster):
    """Environment of Ray's own clients of a version, as `helio login` prints it."""
    lines = real.helio("login", "--env", "--ray", version, "--cluster", cluster, check=0).stdout
    env = {"PATH": f"{ray_prefix(version)}/bin:/usr/bin:/bin", "HOME": str(real.home), "LANG": "C.UTF-8", "RAY_USAGE_STATS_ENABLED": "0"}
    return env | dict(re.findall(r"^export (\w+)='(.*)'$", lines, re.M))


def ray_job(real, version, *args, check=0):
    done = subprocess.run([f"{ray_prefix(version)}/bin/ray", "job", *args], env=clients_of(real, version, "team"), capture_output=True, text=True, timeout=120)
    assert check is None or done.returncode == check, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def cluster(real):
    return real.get("/v1/clusters/team")


KEEPER = textwrap.dedent("""
    import ray
    ray.init()
    @ray.remote
    class Keeper:
        def ping(self): return 1
    keeper = Keeper.options(name="keeper", lifetime="detached", namespace="n").remote()
    ray.get(keeper.ping.remote())
""")


def test_a_cluster_is_shared_used_and_shut_down_when_idle(real, tmp_path):
    made = real.helio("cluster", "create", "team", "--workers", "1", "--idle", "20s", timeout=120, check=0)
    assert "team  ready" in made.stdout and "/clusters/team" in made.stdout
    job = cluster(real)
    nodes = real.nodes(job["id"])
    assert job["state"] == "running" and job["spec"]["type"] == "cluster" and len(nodes) == 2
    assert job["id"] in real.helio("cluster", "list", check=0).stdout
    taken = real.helio("cluster", "create", "team")
    assert taken.returncode == 69 and "$.name" in taken.stderr and job["id"] in taken.stderr

    # Ray's own clients, old and new: a folder, the exit code, the state, the log.
    (tmp_path / "main.py").write_text("import ray\nray.init()\nprint('nodes', len(ray.nodes()))\n")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        said = {version: pool.submit(ray_job, real, version, "submit", "--working-dir", str(tmp_path), "--submission-id", "v" + version, "--",
                                     "python", "main.py") for version in ("2.60.0", "2.30.0", "2.9.3")}
        failed = pool.submit(ray_job, real, "2.60.0", "submit", "--", "exit 3", check=1)
    for version, one in said.items():
        assert "nodes 2" in one.result() and "succeeded" in one.result(), version
    assert "failed" in failed.result()
    assert "nodes 2" in ray_job(real, "2.60.0", "logs", "v2.9.3")
    viewer = real.helio("tokens", "create", "looker", "--role", "viewer", check=0).stdout.split()[-1]
    assert real.api("GET", "/ray/default/clusters/team/api/jobs/", token=viewer)[0] == 200
    assert real.api("POST", "/ray/default/clusters/team/api/jobs/", {"entrypoint": "true"}, token=viewer)[0] == 403

    # Jobs of heliostat's own in it: an exit code, a stop that the program hears, a submitter that is killed.
    (tmp_path / "main.py").write_text("import os, ray\nray.init()\nprint('nodes', len(ray.nodes()), os.environ['K'])\nraise SystemExit(4)\n")
    done = real.helio("run", "--cluster", "team", "--working-dir", tmp_path, "--env", "K=v", "--", "python", "main.py", timeout=120, check=4)
    assert done.stdout.splitlines()[-1] == "nodes 2 v" and "in cluster team" in done.stderr
    waits = real.submit("--cluster", "team", "--", "sh", "-c", "trap 'echo heard; exit 0' TERM; echo up; while :; do sleep 0.1; done")
    eventually("it is up", lambda: "up\n" in real.helio("logs", waits, check=0).stdout, 60)
    real.helio("stop", "--wait", waits, check=0)
    assert real.job(waits)["state"] == "stopped" and "heard" in real.helio("logs", waits, check=0).stdout
    killed = real.submit("--cluster", "team", "--", "sh", "-c",
                         f"echo x >> {tmp_path}/starts; test $(wc -l < {tmp_path}/starts) = 2 && exit 0; python -c 'import time; time.sleep(300)' {tmp_path}")
    eventually("it runs", lambda: (tmp_path / "starts").exists(), 60)
    submitter = next(pid for pid, command in processes_tagged(f"{killed}-1-h") if "helio-agent" in command)
    os.kill(submitter, signal.SIGKILL)
    assert real.wait(killed, 90)["attempts"] == 2 and (tmp_path / "starts").read_text() == "x\nx\n"

    # Another size, and back: the node that leaves is drained by Ray.
    real.helio("cluster", "scale", "team", "2", check=0)
    eventually("two serve", lambda: [node["state"] for node in real.nodes(job["id"]) if node["role"] == "worker"] == ["serving"] * 2, 60)
    real.helio("cluster", "scale", "team", "1", check=0)
    eventually("one has left", lambda: [node["state"] for node in real.nodes(job["id"]) if node["leaving"]] == ["gone"], 60)
    assert cluster(real)["state"] == "running" and cluster(real)["attempts"] == 1
    nodes = real.nodes(job["id"])

    # An actor that outlives its job is use, too.
    (tmp_path / "main.py").write_text(KEEPER)
    ray_job(real, "2.60.0", "submit", "--working-dir", str(tmp_path), "--", "python", "main.py")
    ended = time.monotonic()
    eventually("the head has looked twice", lambda: time.monotonic() > ended + 8, 20, 0.5)
    assert cluster(real)["state"] == "running" and not cluster(real).get("idle_since")
    (tmp_path / "main.py").write_text("import ray\nray.init()\nray.kill(ray.get_actor('keeper', namespace='n'))\n")
    ray_job(real, "2.60.0", "submit", "--working-dir", str(tmp_path), "--", "python", "main.py")

    idle = eventually("it is idle", lambda: cluster(real) if cluster(real).get("idle_since") else None, 30)
    assert "shut down at" in idle["reason"] or "about to be shut down" in idle["reason"], idle["reason"]
    assert "idle" in real.helio("cluster", "show", "team", check=0).stdout
    end = real.wait(job["id"], 90)
    assert end["state"] == "stopped" and end["verdict"]["cause"] == "stopped.idle"
    assert not real.left_by(job["id"], nodes)
    assert real.helio("cluster", "list", check=0).stdout.count("\n") == 1, "only the heading is left"
    status, body = real.api("GET", "/ray/default/clusters/team/api/jobs/")
    assert status == 410 and "has ended" in body
    assert "job-driver-v2.60.0" in real.helio("logs", "team", "-l", check=0).stdout, "what its jobs wrote is kept"
