#!/usr/bin/env python3
"""The dashboard proxy against nginx as a reverse proxy of the same server in the same run: what a CPU-second of the proxy carries.

The proxies run on core 0; the load, and the server that both of them ask, on core 1. A request to heliostat is authenticated, classed and
authorised; nginx passes it on. The cluster is a stand-in for Ray whose dashboard answers from memory, so that the proxies are what is busy.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _heliostat import BIN, ROOT, Daemon, cpu_seconds, resident_mb
from _rows import Rows, add_arguments, median, skip

sys.path.append(f"{ROOT}/tests/integration")
from stub import make_prefix  # noqa: E402

SECONDS = 4
NGINX_PORT = 18974
FOLLOWERS = 500

FRONT = """import os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
port = int(sys.argv[1])
back = subprocess.Popen([sys.executable, "-I", "-S", here + "/real.py", str(port + 90), *sys.argv[2:]])
front = subprocess.Popen(["taskset", "-c", "1", "{peers}", "front", str(port), str(port + 90)])
sys.exit(os.wait()[1] != 0)
"""

NGINX = """worker_processes 1;
worker_cpu_affinity 01;
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  map $http_upgrade $connection_header {{ default upgrade; '' ''; }}
  upstream there {{ server 127.0.0.1:{port}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{listen};
    location / {{
      proxy_pass http://there;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_header;
    }}
  }}
}}
"""


class Proxy:
    def __init__(self, name, port, prefix, header, pid):
        self.name, self.port, self.prefix, self.header, self.pid = name, port, prefix, header, pid

    def rate(self, path, connections=16):
        before = cpu_seconds(self.pid)
        command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "-H", self.header, f"http://127.0.0.1:{self.port}{self.prefix}{path}"]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        used = cpu_seconds(self.pid) - before
        if re.search(r"Non-2xx|Socket errors", out):
            raise RuntimeError(f"{self.name}: {out}")
        return int(re.search(r"(\d+) requests in", out).group(1)) / used

    def messages(self, count):
        before = cpu_seconds(self.pid)
        subprocess.run(["taskset", "-c", "1", f"{BIN}/bench-peers", "chat", str(self.port), f"{self.prefix}/bench/echo", self.header, "16", str(count), "200"],
                       capture_output=True, check=True)
        return 16 * count / (cpu_seconds(self.pid) - before)

    def held(self, target, count):
        """What `count` idle followers cost in MB."""
        before = resident_mb(self.pid)
        holder = subprocess.Popen([f"{BIN}/bench-peers", "hold", str(self.port), target, self.header, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if holder.stdout.readline().strip() != "open":
            raise RuntimeError(f"{self.name}: followers were refused")
        time.sleep(1)
        cost = resident_mb(self.pid) - before
        holder.communicate("\n")
        return cost


def make_stub(work):
    prefix = make_prefix(work / "prefix")
    dashboard = prefix / "stub/dashboard"
    (dashboard / "dashboard.py").rename(dashboard / "real.py")
    (dashboard / "dashboard.py").write_text(FRONT.format(peers=f"{BIN}/bench-peers"))
    return prefix


def start_nginx(work, port):
    folder = work / "nginx"
    folder.mkdir()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, listen=NGINX_PORT))
    master = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        children = subprocess.run(["pgrep", "-P", str(master.pid)], capture_output=True, text=True).stdout.split()
        if children:
            return master, int(children[0])
        time.sleep(0.05)
    raise RuntimeError("nginx did not start")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    add_arguments(parser)
    args = parser.parse_args()
    for program, package in (("wrk", "wrk"), ("nginx", "nginx-light")):
        if not shutil.which(program):
            return skip(args, f"{program} is not installed (apt-get install {package})")
    rows = Rows("proxy")
    work = Path(tempfile.mkdtemp(prefix="bp", dir="/tmp"))
    daemon = Daemon(cpu=0)
    nginx = None
    try:
        daemon.add_image(prefix=str(make_stub(work)))
        job = daemon.submit({"name": "bench", "entrypoint": {"command": "sleep 3600"}})
        while daemon.call("GET", f"/jobs/{job}/dashboard/bench/1")[0] != 200:
            time.sleep(0.1)
        port = daemon.must("GET", f"/v1/jobs/{job}/nodes")["items"][0]["port_base"] + 1
        nginx, worker = start_nginx(work, port)
        ours = Proxy("heliostat", int(daemon.url.rsplit(":", 1)[1]), f"/jobs/{job}/dashboard", f"Authorization: Bearer {daemon.token}", daemon.pid)
        peer = Proxy("nginx", NGINX_PORT, "", "X-Bench: 1", worker)

        def compare(metric, unit, target, measure):
            figures = {ours: [], peer: []}
            for _ in range(args.rounds):
                for proxy, list_of in figures.items():
                    list_of.append(measure(proxy))
            rows.add(metric, unit, median(figures[ours]), median(figures[peer]), target=target, at_most=False, of="ratio")

        compare("small responses (200 bytes) per CPU-second, against nginx", "1/CPU-s", 0.6, lambda proxy: proxy.rate("/bench/200"))
        compare("64 KiB responses per CPU-second, against nginx", "1/CPU-s", 1.0, lambda proxy: proxy.rate("/bench/65536"))
        compare("websocket messages there and back per CPU-second, against nginx", "1/CPU-s", 0.8, lambda proxy: proxy.messages(4000))
        rows.add(f"{FOLLOWERS} idle websockets through the proxy", "MB", ours.held(f"{ours.prefix}/bench/echo", FOLLOWERS), target=20)
        status, submitted = daemon.call("POST", "/ray/default/api/jobs/", {"entrypoint": "sleep 3600"})
        if status != 200:
            raise RuntimeError(f"submit: {status} {submitted}")
        target = f"/ray/default/api/jobs/{submitted['submission_id']}/logs/tail"
        rows.add(f"{FOLLOWERS} idle followers of a log", "MB", ours.held(target, FOLLOWERS), target=20)
    finally:
        if nginx:
            nginx.terminate()
            nginx.wait()
        daemon.close()
        shutil.rmtree(work, ignore_errors=True)
    return rows.finish(args)


if __name__ == "__main__":
    sys.exit(main())
