"""The head's HTTP endpoints that an agent uses: version, node table, jobs, packages; and the health of Ray's own agent on a second port."""
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, AGENT_PORT, GCS, SESSION, NODE_ID = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
JOBS = {}
LOCK = threading.Lock()


def token():
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    if os.environ.get("RAY_AUTH_MODE") != "token" or not path:
        return None
    with open(path, encoding="ascii") as file:
        return file.read().strip()


TOKEN = token()


def rows():
    host, port = GCS.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(b"rows\n")
        return json.loads(connection.makefile().readline())


def supervise(job, command, env, cwd, log, result):
    """In a forked child: the parent of the entrypoint's shell, by the name that Ray's has."""
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("ray::JobSupervi")
    with open(log, "wb") as out:
        shell = subprocess.Popen(command, shell=True, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env, cwd=cwd, start_new_session=True)

    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(time.monotonic()))
    killed = False
    while (done := os.waitpid(shell.pid, os.WNOHANG))[0] == 0:
        if asked and not killed:
            late = time.monotonic() - asked[0] > float(env.get("RAY_JOB_STOP_WAIT_TIME_S", "3"))
            os.killpg(shell.pid, signal.SIGKILL if late else signal.SIGTERM)
            killed = late
        time.sleep(0.02)
    code = os.waitstatus_to_exitcode(done[1])
    with open(result, "w", encoding="ascii") as file:
        file.write("stopped" if asked else str(code if code >= 0 else 128 - code))
    os._exit(0)


class Job:
    def __init__(self, request):
        self.id = request["submission_id"]
        self.request = request
        self.result = f"{SESSION}/result-{self.id}"
        environment = request.get("runtime_env") or {}
        env = {**os.environ, **environment.get("env_vars", {}), "RAY_ADDRESS": GCS, "PYTHONUNBUFFERED": "1"}
        cwd = self.unpack(environment.get("working_dir"))
        self.pid = os.fork()
        if self.pid == 0:
            supervise(self, request["entrypoint"], env, cwd, f"{SESSION}/logs/job-driver-{self.id}.log", self.result)
        self.status, self.code, self.message = "RUNNING", None, "Job is currently running."
        threading.Thread(target=self.watch, daemon=True).start()

    def unpack(self, uri):
        if not uri or not uri.startswith("gcs://"):
            return SESSION
        folder = f"{SESSION}/work-{self.id}"
        with zipfile.ZipFile(f"{SESSION}/package-{uri[6:]}") as package:
            package.extractall(folder)
        return folder

    def watch(self):
        os.waitpid(self.pid, 0)
        try:
            with open(self.result, encoding="ascii") as file:
                text = file.read()
        except FileNotFoundError:
            self.status, self.message = "FAILED", "Unexpected error occurred: The job supervisor actor died"
            return
        if text == "stopped":
            self.status, self.message = "STOPPED", "Job was intentionally stopped."
            return
        self.code = int(text)
        self.status = "SUCCEEDED" if self.code == 0 else "FAILED"
        self.message = "Job finished successfully." if self.code == 0 else f"Job entrypoint command failed with exit code {self.code}"

    def details(self):
        return {"type": "SUBMISSION", "job_id": None, "submission_id": self.id, "driver_info": None, "status": self.status,
                "entrypoint": self.request["entrypoint"], "message": self.message, "error_type": None, "start_time": 0, "end_time": None,
                "metadata": {}, "runtime_env": {}, "driver_agent_http_address": None, "driver_node_id": NODE_ID, "driver_exit_code": self.code}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        if "chunked" in (self.headers.get("Transfer-Encoding") or ""):
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def handle_any(self):
        body = self.body()
        path = self.path.split("?")[0]
        if path.endswith("_healthz"):
            return self.answer(200, "success")
        if TOKEN and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, "Unauthorized: Missing authentication token")
        if path == "/api/version":
            return self.answer(200, {"version": "4", "ray_version": "2.60.0", "ray_commit": "stub", "session_name": os.path.basename(SESSION)})
        if path == "/api/v0/nodes":
            return self.answer(200, {"result": True, "msg": "", "data": {"result": {"total": len(rows()), "result": rows()}}})
        if path.startswith("/api/packages/gcs/"):
            return self.package(path.rsplit("/", 1)[1], body)
        if path == "/api/jobs/" and self.command == "POST":
            return self.submit(json.loads(body))
        if path.startswith("/api/jobs/"):
            return self.job(path[len("/api/jobs/"):])
        return self.answer(404, "no such route")

    def package(self, name, body):
        file = f"{SESSION}/package-{name}"
        if self.command == "GET":
            return self.answer(200 if os.path.exists(file) else 404, {})
        with open(file, "wb") as out:
            out.write(io.BytesIO(body).getvalue())
        return self.answer(200, {})

    def submit(self, request):
        with LOCK:
            if request["submission_id"] in JOBS:
                return self.answer(500, f"Job with submission_id {request['submission_id']} already exists. Please use a different submission_id.")
            JOBS[request["submission_id"]] = Job(request)
        return self.answer(200, {"job_id": request["submission_id"], "submission_id": request["submission_id"]})

    def job(self, rest):
        name, _, verb = rest.partition("/")
        job = JOBS.get(name)
        if job is None:
            return self.answer(404, f"Job {name} does not exist")
        if verb == "stop":
            running = job.status == "RUNNING"
            if running:
                os.kill(job.pid, signal.SIGTERM)
            return self.answer(200, {"stopped": running})
        return self.answer(200, job.details())

    do_GET = do_PUT = do_POST = handle_any


def main():
    ThreadingHTTPServer.daemon_threads = True
    agent = ThreadingHTTPServer(("0.0.0.0", AGENT_PORT), Handler)
    threading.Thread(target=agent.serve_forever, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()


main()
