"""The same Ray cluster, started by hand: the baseline of the start benchmark.

A recipe is what `ray start` was given on each node (argv and environment). It is either taken from a running heliostat cluster, so that
both sides start exactly the same thing, or made with Ray's default flags.
"""
import glob
import http.client
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time


class Node:
    def __init__(self, argv, env, hook=None):
        self.argv = argv
        self.env = env
        self.hook = hook                     # text of the start hook's module, if there is one


def read_recipe(job_id):
    """argv and environment of every `ray start` of a job that runs now, head first."""
    nodes = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            env = dict(item.split("=", 1) for item in open(path, "rb").read().decode().split("\0") if "=" in item)
            argv = open(path.replace("environ", "cmdline"), "rb").read().decode().rstrip("\0").split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if not env.get("RAY_CLOUD_INSTANCE_ID", "").startswith(job_id) or "start" not in argv or "--block" not in argv:
            continue
        hook = None
        if "RAY_START_HOOK" in env:
            folder = env["PYTHONPATH"].split(":")[0]
            with open(f"{folder}/{env['RAY_START_HOOK'].split('.')[0]}.py", encoding="utf-8") as file:
                hook = file.read()
        nodes.append(Node(argv[argv.index("start") - 1:], env, hook))
    nodes.sort(key=lambda node: "--head" not in node.argv)
    return nodes


def option(argv, name):
    for i, word in enumerate(argv):
        if word.startswith(name + "="):
            return word[len(name) + 1:]
        if word == name:
            return argv[i + 1]
    return None


def default_recipe(prefix, workers, cpus, memory=1_000_000_000, store=100_000_000):
    """Ray's default flags: only what makes several nodes of one cluster possible on one machine."""
    nodes = []
    for i in range(workers + 1):
        argv = [f"{prefix}/bin/ray", "start", "--block"]
        if i == 0:
            argv += ["--head", "--node-ip-address=127.9.9.2", "--port=10000", "--dashboard-host=127.0.0.1", "--dashboard-port=10001",
                     "--ray-client-server-port=10002", "--num-cpus=0"]
        else:
            argv += ["--address=127.9.9.2:10000", f"--node-ip-address=127.9.9.{2 + i}", f"--num-cpus={cpus}"]
        base = 10000 + 100 * i
        argv += [f"--temp-dir=/T/{i}", f"--dashboard-agent-listen-port={base + 3}", f"--dashboard-agent-grpc-port={base + 4}",
                 f"--runtime-env-agent-port={base + 5}", f"--metrics-export-port={base + 6}", f"--object-manager-port={base + 7}",
                 f"--node-manager-port={base + 8}", f"--min-worker-port={base + 20}", f"--max-worker-port={base + 99}", "--num-gpus=0",
                 f"--memory={memory}", f"--object-store-memory={store}", "--disable-usage-stats"]
        env = {"PATH": f"{prefix}/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/root"), "RAY_AUTH_MODE": "token",
               "RAY_AUTH_TOKEN_PATH": "/T/token", "RAY_USAGE_STATS_ENABLED": "0", "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
               "RAY_CLOUD_INSTANCE_ID": f"hand-{i}"}
        if i == 0:
            env |= {"DASHBOARD_METRIC_PORT": "10009", "AUTOSCALER_METRIC_PORT": "10010"}
        nodes.append(Node(argv, env))
    return nodes


def free_block(count):
    """First of count*100 ports below the ephemeral range that nobody listens on."""
    for _ in range(200):
        base = 10000 + 100 * random.randrange((23000 - 10000) // 100 - count)
        try:
            for offset in range(0, count * 100):
                if 10 < offset % 100 < 20:
                    continue  # given to nobody
                with socket.socket() as probe:
                    probe.bind(("0.0.0.0", base + offset))
            return base
        except OSError:
            continue
    raise RuntimeError("no free block of ports")


def rehome(recipe, root, base, net):
    """The recipe with other ports, addresses and folders."""
    bases = {}
    temps = {}
    for i, node in enumerate(recipe):
        old = int(option(node.argv, "--dashboard-agent-listen-port")) - 3
        bases[old] = base + 100 * i
        temps[option(node.argv, "--temp-dir")] = f"{root}/{i}"
    # One pass over the text: what was put in is never taken for something to replace.
    names = temps | {option(node.argv, "--node-ip-address"): f"{net}.{2 + i}" for i, node in enumerate(recipe)}
    old_names = re.compile("|".join(re.escape(name) + r"(?!\d)" for name in sorted(filter(None, names), key=len, reverse=True)))

    def port(match):
        number = int(match.group(0))
        for old, new in bases.items():
            if old <= number < old + 100:
                return str(new + number - old)
        return match.group(0)

    def word(text):
        return old_names.sub(lambda match: names[match.group(0)], text)

    out = []
    for i, node in enumerate(recipe):
        argv = []
        for text in node.argv:
            text = word(text)
            if re.match(r"--(address|[a-z-]*port)\b", text):
                text = re.sub(r"(?<![\d.])\d{5}$", port, text)
            argv.append(text)
        env = dict(node.env)
        env.pop("HELIOSTAT_HOME_ID", None)  # the daemon's sweep ends what carries its mark and belongs to no node
        env["RAY_AUTH_TOKEN_PATH"] = f"{root}/token"
        env["RAY_CLOUD_INSTANCE_ID"] = f"hand-{os.getpid()}-{i}"
        for name in ("DASHBOARD_METRIC_PORT", "AUTOSCALER_METRIC_PORT"):
            if name in env:
                env[name] = re.sub(r"\d+", port, env[name])
        if node.hook:
            os.makedirs(f"{root}/hook", exist_ok=True)
            with open(f"{root}/hook/{env['RAY_START_HOOK'].split('.')[0]}.py", "w", encoding="utf-8") as file:
                file.write(node.hook)
            env["PYTHONPATH"] = ":".join([f"{root}/hook"] + env["PYTHONPATH"].split(":")[1:])
        out.append(Node(argv, env))
    return out


def evidence(root, nodes):
    """The start lines and the ends of the logs of a cluster that did not come up."""
    out = [" ".join(node.argv) for node in nodes]
    for path in sorted(glob.glob(f"{root}/*.out") + [path for name in ("gcs_server", "raylet", "dashboard", "dashboard_agent")
                                                      for path in glob.glob(f"{root}/*/session_latest/logs/{name}.*")]):
        with open(path, encoding="utf-8", errors="replace") as file:
            out.append(f"--- {path}\n{file.read()[-1500:]}")
    return "\n".join(out)


def run(recipe, entrypoint, limit=120):
    """Starts the cluster, runs the entrypoint, takes all down. Returns milliseconds from the start of the head to each stage."""
    root = tempfile.mkdtemp(prefix="bh", dir="/tmp")
    processes = []
    try:
        token = secrets.token_hex(32)
        with open(f"{root}/token", "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write(token)
        net = f"127.{random.randrange(60, 200)}.{random.randrange(1, 250)}"
        base = free_block(len(recipe))
        nodes = rehome(recipe, root, base, net)
        times = {}
        started = time.monotonic()

        def mark(name):
            times[name] = (time.monotonic() - started) * 1000

        def start(i):
            node = nodes[i]
            with open(f"{root}/{i}.out", "wb") as out:
                processes.append(subprocess.Popen(
                    ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] + node.argv, env=node.env, cwd="/", stdin=subprocess.DEVNULL,
                    stdout=out, stderr=out, start_new_session=True))

        def wait(name, check, pause):
            while not check():
                ended = [f"node {i} ended with {process.returncode}" for i, process in enumerate(processes) if process.poll() is not None]
                if ended or time.monotonic() - started > limit:
                    why = ", ".join(ended) or f"it took over {limit} s"
                    raise RuntimeError(f"by hand: stage {name} failed: {why}\n{evidence(root, nodes)}")
                time.sleep(pause)
            mark(name)

        def connects():
            with socket.socket() as probe:
                return probe.connect_ex((f"{net}.2", base)) == 0

        def get(host, port, path, method="GET", body=None):
            connection = http.client.HTTPConnection(host, port, timeout=30)
            try:
                connection.request(method, path, body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
                reply = connection.getresponse()
                return reply.status, reply.read()
            except OSError:
                return 0, b""
            finally:
                connection.close()

        start(0)
        wait("gcs_up", connects, 0.01)
        for i in range(1, len(nodes)):
            start(i)
        wait("api_up", lambda: get("127.0.0.1", base + 1, "/api/version")[0] == 200, 0.03)
        wait("head_agent", lambda: get(f"{net}.2", base + 3, "/api/local_raylet_healthz")[0] == 200, 0.03)
        wait("nodes_alive", lambda: get("127.0.0.1", base + 1, "/api/v0/nodes")[1].replace(b" ", b"").count(b'"state":"ALIVE"') == len(nodes), 0.03)
        submission = f"hand-{os.getpid()}-{base}"
        status, reply = get("127.0.0.1", base + 1, "/api/jobs/", "POST", json.dumps({"submission_id": submission, "entrypoint": entrypoint}))
        if status != 200:
            raise RuntimeError(f"by hand: submit answered {status}: {reply[:200]!r}")
        mark("submitted")
        log = f"{root}/0/session_latest/logs/job-driver-{submission}.log"

        def first_line():
            try:
                lines = open(log, encoding="utf-8", errors="replace").read().split("\n")[:-1]
            except OSError:
                return False
            return any("Runtime env is setting up" not in line and not line.startswith("Running entrypoint for job ") for line in lines)

        wait("first_line", first_line, 0.01)
        return times
    finally:
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in processes:
            process.wait()
        shutil.rmtree(root, ignore_errors=True)
