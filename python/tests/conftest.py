"""A stand-in for the daemon: answers what a test tells it to, and breaks connections when told."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import heliostat


class Request:
    """What came: method, path, query, headers, body; and ways to answer it."""

    def __init__(self, handler):
        self.handler = handler
        self.method = handler.command
        self.path, _, self.query = handler.path.partition("?")
        self.headers = handler.headers
        self.peer = handler.client_address
        self.body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))

    @property
    def json(self):
        return json.loads(self.body)

    def reply(self, document=None, status=200, media="application/json", headers=()):
        data = b"" if document is None else document if isinstance(document, bytes) else json.dumps(document).encode()
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", media)
        self.handler.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def problem(self, status, code, detail="no", **more):
        document = {"type": "about:blank", "title": "No", "status": status, "code": code, "detail": detail, **more}
        self.reply(document, status, "application/problem+json")

    def begin(self, media="text/plain"):
        """The head of an answer in chunks."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", media)
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()

    def chunk(self, data):
        self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.handler.wfile.flush()

    def end(self):
        self.handler.wfile.write(b"0\r\n\r\n")

    def cut(self):
        """Nothing more on this connection."""
        self.handler.close_connection = True


class Fake:
    def __init__(self):
        self.requests = []
        self.answers = {}  # (method, path) -> functions of a Request, used one after the other, the last one for good
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def any(self):
                request = Request(self)
                fake.requests.append(request)
                answers = fake.answers.get((request.method, request.path))
                if not answers:
                    return request.problem(404, "not_found", "no such path")
                (answers.pop(0) if len(answers) > 1 else answers[0])(request)

            do_GET = do_POST = do_PUT = do_DELETE = any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients that go away are what is tested
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def on(self, method, path, *answers):
        """Functions of a Request, or documents to reply with."""
        self.answers[method, path] = [a if callable(a) else lambda request, a=a: request.reply(a) for a in answers]

    def of(self, method, path):
        """The requests that came to one route."""
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(autouse=True)
def no_environment(monkeypatch, tmp_path):
    """No daemon of whoever runs the tests."""
    for name in ("HELIOSTAT_URL", "HELIOSTAT_TOKEN", "HELIOSTAT_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HELIOSTAT_HOME", str(tmp_path / "home"))


@pytest.fixture
def fake():
    it = Fake()
    yield it
    it.close()


@pytest.fixture
def client(fake):
    with heliostat.Client(fake.url, "secret", timeout=10, patience=5) as it:
        yield it
