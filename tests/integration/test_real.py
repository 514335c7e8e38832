"""Real Ray. Clusters are dear (eight seconds and twelve CPU-seconds each), so each one proves several things; 25 in all."""
import json
import os
import random
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import browser
from conftest import ray_prefix
from heliostat import eventually, processes_tagged

ONE_SHOT = ["--retries", "platform=0", "--retries", "node=0", "--retries", "unknown=0"]


def test_run_shows_stages_and_output_and_leaves_nothing(real, examples):
    done = real.helio("run", "--workers", "2", "--working-dir", examples, "--", "python", "squares.py", "--min-nodes", "2", timeout=180, check=0)
    assert "[0, 1, 4, 9, 16, 25, 36, 49]" in done.stdout
    for stage in ("admitted", "agents up", "all nodes alive", "entrypoint submitted", "first line of output", "entrypoint ended", "succeeded"):
        assert stage in done.stderr, done.stderr
    job = real.get("/v1/jobs?limit=1")["items"][0]["id"]
    assert f"{real.daemon_file()['url']}/jobs/{job}/dashboard/" in done.stdout + done.stderr, "Ray says where its dashboard is"
    streams = real.helio("logs", "-l", job, check=0).stdout
    assert all(name in streams for name in ("driver", "raylet.out", "gcs_server.out", "worker-")), streams
    assert real.helio("logs", job, check=0).stdout == done.stdout
    raylet = real.helio("logs", job, "--node", "w1", "--stream", "raylet.out", check=0).stdout
    assert "raylet" in raylet.lower()
    real.assert_nothing_left()
    assert real.left_by(job, real.nodes(job)) == []


def test_a_queue_of_ten_on_a_pool_that_holds_fewer(real, examples, tmp_path):
    """Everything a job can be, queued at once: examples, a failure, a retry, a driver on a worker, scripts."""
    code = ["--working-dir", examples]
    workers = ["--workers", "2"]
    script = tmp_path / "body.py"
    script.write_text("import os, ray\nray.init()\nprint('cpus', int(ray.cluster_resources()['CPU']))\n"
                      "open(os.environ['HELIOSTAT_OUTPUT_DIR'] + '/o.txt', 'w').write('kept')\n")
    tasks = tmp_path / "tasks.py"
    tasks.write_text("import os, time, ray\nray.init()\n\n@ray.remote(num_cpus=1, scheduling_strategy='SPREAD')\ndef note(i):\n"
                     "    open(f\"{os.environ['HELIOSTAT_CHECKPOINT_DIR']}/{i}\", 'w').write(os.environ['HELIOSTAT_NODE_INDEX'])\n"
                     "    while len(os.listdir(os.environ['HELIOSTAT_CHECKPOINT_DIR'])) < 2:  # two at once, and a node has room for one\n"
                     "        time.sleep(0.05)\n\n"
                     "ray.get([note.remote(i) for i in range(8)])\nshared = os.environ['HELIOSTAT_CHECKPOINT_DIR']\n"
                     "print('notes', len(os.listdir(shared)), 'from', sorted({open(f'{shared}/{i}').read() for i in range(8)}))\n")
    jobs = {
        "counter": real.submit(*workers, *code, "--runtime-env", '{"env_vars": {"COUNTER_NAME": "ray"}}', "--", "python", "counter.py", "--expect", "ray",
                               "--count", "2000"),
        "tune": real.submit(*workers, *code, "--", "python", "tune_digits.py", "--trials", "4", "--epochs", "6"),
        "fails": real.submit(*code, "--", "python", "fails.py"),
        "retry": real.submit("--retries", "user=1", "--command", 'test -e "$HELIOSTAT_CHECKPOINT_DIR/x" || { touch "$HELIOSTAT_CHECKPOINT_DIR/x"; exit 4; }'),
        "on-worker": real.submit("--workers", "1", "--num-cpus", "1", "--command",
                                 "echo index $HELIOSTAT_NODE_INDEX; python -c 'import ray; ray.init(); print(\"at\", ray.util.get_node_ip_address())'"),
        "script": real.submit("--script", script, "--head-schedulable"),
        "hello": real.submit(*workers, *code, "--", "python", "hello.py"),
        "plain": real.submit("--", "echo", "no ray at all"),
        "signal": real.submit("--command", "kill -9 $$"),
        "tasks": real.submit(*workers, "--script", tasks),
    }
    rows = {name: real.wait(job, 400) for name, job in jobs.items()}
    logs = {name: real.helio("logs", job, check=0).stdout for name, job in jobs.items()}
    states = {name: row["state"] for name, row in rows.items()}
    assert states == {name: "failed" if name in ("fails", "signal") else "succeeded" for name in jobs}, (states, [r.get("verdict") for r in rows.values()])
    assert "counter=ray" in logs["counter"] and "done value=2000" in logs["counter"]
    assert re.search(r"best accuracy=0\.9\d", logs["tune"])
    assert rows["fails"]["verdict"]["cause"] == "entrypoint.exit" and rows["fails"]["exit_code"] == 3 and "task failed" in logs["fails"]
    assert rows["retry"]["attempts"] == 2 and rows["retry"]["ledger"] == {"user": 1}
    for name, job in jobs.items():
        for attempt in real.attempts(job)[:-1]:
            print(f"{name}: an attempt before the last: {attempt['verdict']}")
    last = real.attempts(jobs["on-worker"])[-1]["id"]
    address = next(node["address"] for node in real.nodes(jobs["on-worker"]) if node["role"] == "worker" and node["attempt"] == last)
    assert "index 1" in logs["on-worker"] and f"at {address}" in logs["on-worker"]
    assert "cpus" in logs["script"]
    assert "notes 8 from ['1', '2']" in logs["tasks"]
    real.helio("cp", f"{jobs['script']}:outputs/o.txt", tmp_path / "o.txt", check=0)
    assert (tmp_path / "o.txt").read_text() == "kept"
    assert rows["signal"]["verdict"]["cause"] in ("entrypoint.signal", "entrypoint.exit") and rows["signal"]["exit_code"] == 137
    # Never more than the pool, at any instant: a node holds what it has until its own death is proven.
    capacity = real.get("/v1/hosts")["items"][0]["capacity"]
    nodes = [node for job in jobs.values() for node in real.nodes(job)]
    assert len(nodes) == sum(len(attempt["placement"]) for job in jobs.values() for attempt in real.attempts(job))
    assert {node["state"] for node in nodes} == {"gone"}
    for what in ("cpu", "memory"):
        edges = [(node["created"], node["placement"]["resources"][what]) for node in nodes]
        edges += [(node["state_since"], -node["placement"]["resources"][what]) for node in nodes]
        held = most = 0
        for _, change in sorted(edges):
            held += change
            most = max(most, held)
        print(f"most {what} held: {most} of {capacity[what]}")
        assert 0 < most <= capacity[what]
    real.assert_nothing_left()


@pytest.mark.parametrize("version", ["2.9.3", "2.30.0"])
def test_old_rays_run_the_same_program(real, examples, version):
    real.add_image(f"ray-{version}", ray_prefix(version), "--allow-no-token")
    done = real.helio("run", "--image", f"ray-{version}", "--workers", "2", "--working-dir", examples, *ONE_SHOT, "--", "python", "squares.py",
                      "--min-nodes", "2", timeout=240, check=0)
    assert "[0, 1, 4, 9, 16, 25, 36, 49]" in done.stdout
    real.assert_nothing_left()


def check_dashboard(real, job):
    """Ray's own pages in a real browser, for somebody who may only look; and every route of them."""
    made = real.helio("tokens", "create", "onlooker", "--role", "viewer", "-o", "json", check=0)
    token = json.loads(made.stdout)["secret"]
    browser.dashboard_journey(real, job, token)
    browser.walk_routes(real, ray_prefix("2.60.0"), job, token)


def test_two_clusters_at_once_exec_dashboard_and_stop(real):
    wait = "python -u -c 'import ray, time; ray.init(); print(\"up\", len(ray.nodes()), flush=True); time.sleep(300)'"
    first, second = (real.submit("--workers", "1", "--stop-grace", "3s", "--command", wait) for _ in range(2))
    for job in (first, second):
        eventually("the driver is up", lambda job=job: "up 2" in real.helio("logs", job).stdout, 90, 0.5)
    ports = {}
    for job in (first, second):
        nodes = real.helio("exec", job, "--", "python", "-c", "import ray; ray.init(log_to_driver=False); print(sorted(n['NodeName'] for n in ray.nodes()))", check=0)
        addresses = sorted(node["address"] for node in real.nodes(job))
        assert str(addresses) in nodes.stdout, (addresses, nodes.stdout)
        ports[job] = next(node["port_base"] for node in real.nodes(job) if node["role"] == "head")
        assert real.helio("exec", job, "--node", "w1", "--", "sh", "-c", "echo $HELIOSTAT_NODE_INDEX", check=0).stdout == "1\n"
    # Without the token the cluster tells nothing.
    for path in ("/api/version", "/api/jobs/", "/api/v0/nodes", "/nodes?view=summary", "/api/cluster_status"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{ports[first] + 1}{path}", timeout=10)
        assert refused.value.code == 401, path
    check_dashboard(real, first)
    assert "limits by" in real.helio("nodes", first, check=0).stdout
    runner = real.popen("wait", first)
    real.helio("stop", first, second, check=0)
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 81, out
    assert real.wait(second, 60)["verdict"]["cause"] == "stopped.user"
    browser.record_journey(real, first)
    real.assert_nothing_left()


def test_the_daemon_dies_and_the_run_goes_on(real, tmp_path):
    """Ten times over one job's life: while its cluster starts, while it runs, while it ends."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    ran = tmp_path / "ran"
    end = tmp_path / "end"
    body = f"echo x >> {ran}; python -c 'import ray; ray.init()' >/dev/null 2>&1; for i in $(seq 200); do echo line $i; sleep 0.02; done;" \
           f" until test -e {end}; do sleep 0.02; done; exit 3"
    runner = real.popen("run", "--workers", "1", "--command", body)
    job = eventually("the job is there", lambda: real.get("/v1/jobs?state=starting")["items"])[0]["id"]

    def kill(longest):
        time.sleep(chance.random() * longest)
        real.kill9()
        time.sleep(chance.random() * 0.2)
        real.up()

    for _ in range(4):
        kill(1.5)
    real.until(job, ["running"], 90)
    for _ in range(4):
        kill(1.0)
    end.touch()
    kill(0.3)
    kill(0.6)
    out, err = runner.communicate(timeout=120)
    assert runner.returncode == 3, (seed, err)
    lines = [line for line in out.splitlines() if line.startswith("line ")]
    assert lines == [f"line {i}" for i in range(1, 201)], seed
    assert ran.read_text() == "x\n", seed
    assert len(real.attempts(job)) == 1
    real.assert_nothing_left()


# what is killed, on which node, the verdicts that are right
KILLS = [
    ("agent", "w1", {"agent.died"}),
    ("ray start", "w1", {"ray_start.died"}),
    ("raylet", "w1", {"raylet.died"}),
    ("gcs_server", "head", {"gcs.died"}),
    ("dashboard", "head", {"dashboard.died"}),
    ("supervisor", "head", {"supervisor.died"}),
    ("driver", "head", {"entrypoint.signal", "entrypoint.exit"}),
]


def find_process(job, node, what):
    """Pid of a part of a node, by what /proc shows."""
    index = "h" if node == "head" else node
    tag = f"{job}-1-{index}"
    agents = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_agent(pid, tag)]
    if what == "agent":
        return agents[0] if agents else None
    for pid, command in processes_tagged(tag):
        try:
            comm = open(f"/proc/{pid}/comm", encoding="ascii").read().strip()
        except OSError:
            continue
        matches = {
            "ray start": " start " in command and "/bin/ray" in command,
            "raylet": comm == "raylet",
            "gcs_server": comm == "gcs_server",
            "dashboard": "dashboard/dashboard.py" in command or command.startswith("ray-dashboard ") or comm == "ray-dashboard",
            "supervisor": comm.startswith("ray::JobSuper"),
            "driver": command.startswith("sleep 300"),
        }
        if matches[what]:
            return pid
    return None


def is_agent(pid, tag):
    try:
        command = open(f"/proc/{pid}/cmdline", "rb").read()
        if b"helio-agent" not in command.split(b"\0")[0]:
            return False
        # Only the first process of the node, not the helper that made its namespace.
        return tag.encode() in command or tag.encode() in open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        return False


@pytest.mark.parametrize("what, node, causes", KILLS, ids=[k[0].replace(" ", "-") for k in KILLS])
def test_a_killed_part_is_named_within_ten_seconds_and_leaves_nothing(real, what, node, causes):
    workers = "1" if node == "w1" else "0"
    job = real.submit(*ONE_SHOT, "--workers", workers, "--command", "echo up; sleep 300")
    eventually("the driver is up", lambda: "up" in real.helio("logs", job).stdout, 90, 0.3)
    pid = eventually(f"{what} is found on {node}", lambda: find_process(job, node, what), 10)
    os.kill(pid, signal.SIGKILL)
    begin = time.monotonic()
    seen = eventually(lambda: f"a verdict: {real.attempts(job)}", lambda: real.attempts(job)[0].get("verdict"), 10)
    took = time.monotonic() - begin
    assert seen["cause"] in causes, seen
    assert took <= 10
    row = real.wait(job, 20)
    assert row["state"] == "failed" and row["verdict"]["cause"] in causes
    eventually(lambda: f"nothing is left: {real.left()}", lambda: not real.left() and not real.left_by(job, real.nodes(job)), 10)
    print(f"{what}: {seen['cause']} after {took:.1f}s")
