"""`ray start` without Ray: the processes, ports and files that an agent looks at, in a tenth of a second. For tests of everything but Ray.

Behaves like Ray 2.60 where the agent can tell: names of processes, who dies with whom, the report on a dead child, session folders.
"""
import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def die_with_parent():
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def name_me(name):
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("start")
    for flag in ("head", "block", "no-monitor", "disable-usage-stats"):
        parser.add_argument(f"--{flag}", action="store_true")
    for option in ("node-ip-address", "address", "temp-dir", "labels", "dashboard-host", "include-dashboard", "log-color",
                   "include-log-monitor", "resources", "node-name"):
        parser.add_argument(f"--{option}", default="")
    for option in ("port", "dashboard-port", "ray-client-server-port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port",
                   "runtime-env-agent-port", "metrics-export-port", "object-manager-port", "node-manager-port", "min-worker-port",
                   "max-worker-port", "memory", "object-store-memory"):
        parser.add_argument(f"--{option}", type=int, default=0)
    for option in ("num-cpus", "num-gpus"):
        parser.add_argument(f"--{option}", type=float, default=0)
    return parser.parse_args()


def make_session(args):
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    session = f"{args.temp_dir}/session_{stamp}_{time.time_ns() // 1000 % 1000000:06d}_{os.getpid()}"
    os.makedirs(f"{session}/logs")
    for name in ("raylet.out", "raylet.err") + (("gcs_server.out", "gcs_server.err") if args.head else ()):
        with open(f"{session}/logs/{name}", "w", encoding="ascii") as file:
            file.write(f"{name} of a stub\n")
    return session


class Gcs:
    """The node table: who is connected is alive. One line in registers a node, "rows" asks for the table."""

    def __init__(self, listener):
        self.listener = listener
        self.rows = {}
        self.nodes = {}
        self.lock = threading.Lock()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        stream = connection.makefile("rw")
        line = stream.readline().strip()
        if line == "rows":
            with self.lock:
                stream.write(json.dumps(list(self.rows.values())) + "\n")
            stream.flush()
            connection.close()
            return
        if not line:
            return
        if line.startswith("drain "):
            with self.lock:
                self.nodes[line.split()[1]].sendall(b"drain\n")
            connection.close()
            return
        row = json.loads(line)
        with self.lock:
            self.rows[row["node_id"]] = row
        with self.lock:
            self.nodes[row["node_id"]] = connection
        stream.readline()  # ends when the node does
        with self.lock:
            row.update(state="DEAD", state_message="health check failed due to missing too many heartbeats")


def start_gcs(args):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", args.port))
    listener.listen(64)
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        name_me("gcs_server")
        Gcs(listener).serve()
    listener.close()
    return pid


def register(args, node_id):
    host, port = (args.node_ip_address, args.port) if args.head else args.address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.settimeout(None)
    labels = dict(pair.split("=", 1) for pair in args.labels.split(",") if "=" in pair)
    row = {"node_id": node_id, "node_ip": args.node_ip_address, "is_head_node": args.head, "state": "ALIVE", "state_message": None,
           "node_name": args.node_ip_address, "resources_total": {"CPU": args.num_cpus}, "labels": labels}
    connection.sendall((json.dumps(row) + "\n").encode())
    return connection


def drain_node():
    """`ray drain-node`: the node's raylet is told that it may go."""
    options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    host, port = options["--address"].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(f"drain {options['--node-id']}\n".encode())
        connection.recv(1)


def listen_for_drain(connection, raylet):
    """A raylet that was drained waits for its work, which is a file here, and then ends alone: `ray start` does not notice."""
    if connection.recv(16).startswith(b"drain"):
        busy = os.environ.get("STUB_RAY_BUSY")
        while busy and os.path.exists(busy):
            time.sleep(0.05)
        connection.shutdown(socket.SHUT_WR)
        DRAINED.add(raylet)
        os.kill(raylet, signal.SIGKILL)


DRAINED = set()


def main():
    if sys.argv[1] == "drain-node":
        return drain_node()
    if os.environ.get("STUB_RAY_FAILS"):
        sys.exit(os.environ["STUB_RAY_FAILS"])
    args = parse()
    children = {}
    signal.signal(signal.SIGTERM, lambda *_: leave(children, 1))
    session = make_session(args)
    node_id = os.urandom(28).hex()
    if args.head:
        children["gcs_server"] = start_gcs(args)
        children["dashboard"] = subprocess.Popen(
            [sys.executable, "-I", "-S", f"{HERE}/dashboard/dashboard.py", str(args.dashboard_port), str(args.dashboard_agent_listen_port),
             f"{args.node_ip_address}:{args.port}", session, node_id], preexec_fn=die_with_parent).pid
    children["raylet"] = subprocess.Popen([f"{HERE}/raylet", "infinity"], preexec_fn=die_with_parent).pid
    connection = register(args, node_id)
    threading.Thread(target=listen_for_drain, args=(connection, children["raylet"]), daemon=True).start()
    while True:
        pid, status = os.wait()
        if pid in DRAINED:
            continue
        for name, child in children.items():
            if child == pid:
                code = os.waitstatus_to_exitcode(status)
                print(f"Some Ray subprocesses exited unexpectedly:\n  {name} [exit code={code}]\nRemaining processes will be killed.", flush=True)
                connection.close()
                leave(children, 1)


def leave(children, code):
    for pid in children.values():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(code)


main()
