"""Ray Client through heliostat: `helio connect` with real Ray. One cluster for all that one can show."""
import json
import os
import re
import signal
import subprocess
import textwrap

import pytest

from conftest import ray_prefix
from heliostat import eventually, listening_ports

# Unchanged: it knows nothing of heliostat, and finds the cluster by ray.init() alone.
PROGRAM = textwrap.dedent("""
    import os, sys
    import ray
    ray.init()

    @ray.remote
    def where(i):
        return os.environ["HELIOSTAT_NODE_ID"], i * i

    rows = ray.get([where.remote(i) for i in range(4)])
    print("in", sorted({node for node, _ in rows}), "squares", [n for _, n in rows])
    assert "HELIOSTAT_NODE_ID" not in os.environ and ray.util.client.ray.is_connected()
    assert not any(name.startswith("RAY_AUTH_TOKEN") for name in os.environ)
    sys.exit(int(sys.argv[1]))
""")
# Goes on when a line comes: its actor must still be the same.
PATIENT = textwrap.dedent("""
    import sys
    import ray
    ray.init()

    @ray.remote
    class Counter:
        n = 0
        def add(self):
            self.n += 1
            return self.n

    counter = Counter.remote()
    print("count", ray.get(counter.add.remote()), flush=True)
    sys.stdin.readline()
    print("count", ray.get(counter.add.remote()), flush=True)
""")


@pytest.fixture(scope="module")
def python():
    return ray_prefix("2.60.0") / "bin/python"


@pytest.fixture(scope="module")
def cluster(real):
    """A job that does nothing but keep its cluster up."""
    job = real.submit("--name", "held", "--stop-grace", "1s", "--", "sleep", "600")
    real.until(job, ["running"], 120)
    yield job
    real.helio("stop", job, "--wait", timeout=60, check=0)
    real.assert_nothing_left()


def head_of(real, job):
    return next(node for node in real.nodes(job) if node["role"] == "head")


def test_an_unchanged_program_runs_on_the_cluster_of_a_job(real, cluster, python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    node = head_of(real, cluster)["id"]
    done = real.helio("connect", "held", "--", python, program, "7", timeout=120, check=7)
    assert f"in ['{node}'] squares [0, 1, 4, 9]" in done.stdout, done.stdout + done.stderr
    assert "mismatch" not in done.stderr and "not let through" not in done.stderr, done.stderr
    two = [real.popen("connect", cluster, "--", python, program, str(code)) for code in (0, 3)]
    for code, one in zip((0, 3), two):
        out, err = one.communicate(timeout=120)
        assert one.returncode == code and "squares [0, 1, 4, 9]" in out, out + err
    events = [event["type"] for event in real.get(f"/v1/jobs/{cluster}/events")["items"]]
    assert "ray_client.open" in events
    streams = real.helio("logs", "-l", cluster, check=0).stdout
    assert "ray_client_server.err" in streams, "and what the server says is kept with the job"


def test_an_address_is_open_until_it_is_interrupted(real, cluster, python):
    held = real.popen("connect", "--port", "0", cluster)
    address = held.stdout.readline().strip()
    assert re.fullmatch(r"ray://127\.0\.0\.1:\d+", address)
    port = int(address.rsplit(":", 1)[1])
    code = f"import ray; ray.init('{address}'); print(ray.get(ray.remote(lambda: 41 + 1).remote()))"
    plain = {k: v for k, v in real.env.items() if not k.startswith("HELIOSTAT")}
    done = subprocess.run([python, "-c", code], env={**plain, "RAY_AUTH_MODE": "disabled"}, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "42", done.stdout + done.stderr
    assert port in listening_ports()
    held.send_signal(signal.SIGINT)
    _, err = held.communicate(timeout=20)
    assert held.returncode == 0 and "Ray 2.60.0, Python 3.11" in err, err
    assert port not in listening_ports()


def test_a_session_outlives_the_daemon(real, cluster, python, tmp_path):
    program = tmp_path / "patient.py"
    program.write_text(PATIENT)
    client = real.popen("connect", cluster, "--", python, program, stdin=subprocess.PIPE)
    assert client.stdout.readline() == "count 1\n"
    real.kill9()
    real.up()
    out, err = client.communicate("go on\n", timeout=120)
    assert client.returncode == 0 and out == "count 2\n", out + err


def test_signals_and_exit_codes_are_the_commands(real, cluster, python):
    code = ("import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (print('told', flush=True), sys.exit(5)))\n"
            "print('up', flush=True)\nsignal.pause()")
    client = real.popen("connect", cluster, "--", python, "-c", code)
    assert client.stdout.readline() == "up\n"
    client.send_signal(signal.SIGTERM)
    out, err = client.communicate(timeout=30)
    assert (client.returncode, out) == (5, "told\n"), err
    assert real.helio("connect", cluster, "--", "sh", "-c", "kill -KILL $$").returncode == 128 + 9
    missing = real.helio("connect", cluster, "--", "no-such-program")
    assert missing.returncode == 127 and "no-such-program" in missing.stderr
    unknown = real.helio("connect", cluster, "--", "true", check=0)
    assert "Ray 2.60.0" in unknown.stderr, "which Python it runs is not known: so it is told what it has to be"


def test_only_those_who_may_act_get_through(real, cluster, python):
    url = real.daemon_file()["url"]
    for role, principal in (("viewer", "looker"), ("developer", "somebody")):
        made = real.helio("tokens", "create", f"client-{role}", "--role", role, "--principal", principal, "-o", "json", check=0)
        env = {"HELIOSTAT_URL": url, "HELIOSTAT_TOKEN": json.loads(made.stdout)["secret"]}
        refused = real.helio("connect", cluster, "--", python, "-c", "print('ran')", env=env, check=66)
        assert "needs role" in refused.stderr and "ran" not in refused.stdout
    upgrade = {"Connection": "Upgrade", "Upgrade": "ray-client", "Authorization": "none"}
    status, _ = real.api("GET", f"/v1/jobs/{cluster}/ray-client/tunnel", headers=upgrade)
    assert status == 401
    # Nor does the cluster's own port let anybody in who does not come through the daemon.
    port = head_of(real, cluster)["port_base"] + 2
    ping = textwrap.dedent(f"""
        import grpc
        from ray.core.generated import ray_client_pb2, ray_client_pb2_grpc
        stub = ray_client_pb2_grpc.RayletDriverStub(grpc.insecure_channel("127.0.0.1:{port}"))
        try:
            stub.ClusterInfo(ray_client_pb2.ClusterInfoRequest(type=ray_client_pb2.ClusterInfoType.PING), timeout=30)
            print("let in")
        except grpc.RpcError as error:
            print(error.code().name)
    """)
    done = subprocess.run([python, "-c", ping], env={**os.environ, "RAY_AUTH_MODE": "disabled"}, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "UNAUTHENTICATED", done.stdout + done.stderr


def test_another_ray_is_told_before_it_fails(real, cluster, python):
    other = ray_prefix("2.30.0") / "bin/python"
    refused = real.helio("connect", cluster, "--", other, "-c", "print('ran')", check=70)
    assert "ran" not in refused.stdout
    for words in ("the cluster runs Ray 2.60.0 on Python 3.11", "has Ray 2.30.0", "-m pip install 'ray[client]==2.60.0'", str(python)):
        assert words in refused.stderr, refused.stderr
    assert real.helio("connect", "--any-version", cluster, "--", other, "-c", "print('ran')", check=0).stdout == "ran\n"


@pytest.mark.parametrize("version", ["2.9.3"])
def test_an_old_ray_whose_clusters_have_no_tokens(real, version):
    prefix = ray_prefix(version)
    real.add_image(f"client-{version}", prefix, "--allow-no-token")
    # Its server is `ray start`'s, whose forks gRPC may crash (docs/limits.md).
    job = real.submit("--image", f"client-{version}", "--env", "GRPC_ENABLE_FORK_SUPPORT=false", "--stop-grace", "1s", "--", "sleep", "600")
    real.until(job, ["running"], 120)
    code = "import ray; ray.init(); print(ray.get(ray.remote(lambda: 41 + 1).remote()))"
    done = real.helio("connect", job, "--", prefix / "bin/python", "-c", code, timeout=120, check=0)
    assert done.stdout.strip().endswith("42"), done.stdout + done.stderr
    real.helio("stop", job, "--wait", timeout=60, check=0)
    eventually("nothing of it is left", lambda: not real.left_by(job, real.nodes(job)))


def test_without_a_cluster_or_a_server_the_reason_is_told(daemon):
    job = daemon.submit("--stop-grace", "1s", "--", "sleep", "600")
    daemon.until(job, ["running"], 60)
    # The stub's Ray has no client server: its Python says so when the agent starts it.
    refused = daemon.helio("connect", job, check=70)
    assert "cannot be reached by Ray Client" in refused.stderr and "ray.util" in refused.stderr, refused.stderr
    daemon.helio("stop", job, "--wait", check=0)
    ended = daemon.helio("connect", job, check=70)
    assert "its cluster is gone" in ended.stderr, ended.stderr
