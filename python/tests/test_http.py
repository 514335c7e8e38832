"""What a broken, slow or refusing daemon means for one call."""
import io
import os
import select
import socket
import ssl
import subprocess
import threading

import pytest

import heliostat
from heliostat._connect import Daemon
from heliostat._http import Http


def cut(request):
    request.cut()


def version(request):
    request.reply({"version": "0.1.0"})


def test_one_connection_serves_calls_after_each_other(fake, client):
    fake.on("GET", "/v1/version", version)
    for _ in range(3):
        assert client.version().version == "0.1.0"
    assert len({request.peer for request in fake.requests}) == 1
    assert fake.requests[0].headers["Authorization"] == "Bearer secret"


def test_a_connection_that_the_daemon_closed_is_opened_again_for_any_method(fake, client):
    fake.on("GET", "/v1/version", lambda request: (version(request), request.cut()))
    fake.on("POST", "/v1/jobs/j-1/stop", {"id": "j-1", "state": "stopping"})
    client.version()
    (idle, _), = client._http._idle
    assert select.select([idle.sock], [], [], 10)[0], "the daemon's end has come"
    assert client.stop("j-1").state == "stopping"
    assert len(fake.of("POST", "/v1/jobs/j-1/stop")) == 1


def test_a_daemon_that_says_that_it_closes_is_believed(fake, client):
    fake.on("GET", "/v1/version", lambda request: request.reply({"version": "0.1.0"}, headers=[("Connection", "close")]))
    for _ in range(2):
        assert client.version().version == "0.1.0"
    assert len({request.peer for request in fake.requests}) == 2


def test_threads_do_not_share_a_connection(fake, client):
    together = threading.Barrier(4)

    def meet(request):
        together.wait(10)
        version(request)

    fake.on("GET", "/v1/version", meet)
    threads = [threading.Thread(target=client.version) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({request.peer for request in fake.requests}) == 4


def test_a_forked_child_opens_connections_of_its_own(fake, client):
    fake.on("GET", "/v1/version", version)
    client.version()
    child = os.fork()
    if child == 0:
        try:
            client.version()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    client.version()
    first, second, third = (request.peer for request in fake.requests)
    assert first == third != second


def test_a_question_is_asked_again_when_the_connection_breaks(fake, client):
    fake.on("GET", "/v1/version", cut, cut, version)
    assert client.version().version == "0.1.0"
    assert len(fake.requests) == 3


def test_half_an_answer_is_no_answer(fake, client):
    def half(request):
        request.begin()
        request.chunk(b"first half")
        request.cut()

    fake.on("GET", "/v1/jobs/j-1/logs", half, lambda request: request.reply(b"first half, second half", media="text/plain"))
    assert client.logs("j-1") == "first half, second half"


@pytest.mark.parametrize("call, route", [(lambda client: client.stop("j-1"), ("POST", "/v1/jobs/j-1/stop")),
                                         (lambda client: client.remove("j-1"), ("DELETE", "/v1/jobs/j-1"))])
def test_what_may_have_happened_is_not_asked_for_twice(fake, client, call, route):
    fake.on(*route, cut)
    with pytest.raises(heliostat.Unavailable, match="may have been carried out"):
        call(client)
    assert len(fake.requests) == 1


@pytest.mark.parametrize("call, path", [(lambda client: client.submit(entrypoint="x"), "/v1/jobs"),
                                        (lambda client: client.rerun("j-1"), "/v1/jobs/j-1/rerun")])
def test_a_submit_whose_connection_breaks_is_sent_again_under_its_key(fake, client, call, path):
    fake.on("POST", path, cut, lambda request: request.reply({"id": "j-2"}, 201))
    assert call(client).id == "j-2"
    first, second = fake.of("POST", path)
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] and first.body == second.body
    call(client)
    assert fake.requests[-1].headers["Idempotency-Key"] != first.headers["Idempotency-Key"]


def test_a_key_of_the_callers_own(fake, client):
    fake.on("POST", "/v1/jobs", {"id": "j-2"})
    client.submit(entrypoint="x", idempotency_key="nightly-2026-11-30")
    assert fake.requests[0].headers["Idempotency-Key"] == "nightly-2026-11-30"


def test_a_refusal_is_not_asked_for_again(fake, client):
    fake.on("POST", "/v1/jobs", lambda request: request.problem(503, "unavailable", "the disk is full", args={"retry_after": "5"}))
    with pytest.raises(heliostat.Unavailable, match="the disk is full") as refused:
        client.submit(entrypoint="x")
    assert refused.value.status == 503 and refused.value.arguments == {"retry_after": "5"}
    assert len(fake.requests) == 1
    fake.on("POST", "/v1/jobs", cut, lambda request: request.problem(503, "unavailable", "the disk is full"))
    with pytest.raises(heliostat.Unavailable, match="the disk is full"):
        client.submit(entrypoint="x")
    assert len(fake.requests) == 3


def test_a_refusal_that_comes_before_the_body_is_taken_is_told():
    listener = socket.create_server(("127.0.0.1", 0))

    def refuse():
        connection, _ = listener.accept()
        connection.recv(1000)
        body = b'{"code": "permission_denied", "detail": "role viewer may not"}'
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        connection.close()  # with most of the body unread: what the client sends from now on is reset

    thread = threading.Thread(target=refuse)
    thread.start()
    http = Http(lambda: Daemon(f"http://127.0.0.1:{listener.getsockname()[1]}", "t"), 10)
    with pytest.raises(heliostat.PermissionDenied, match="role viewer may not"):
        http.request("PUT", "/v1/packages/x", body=io.BytesIO(b"x" * (1 << 22)), headers={"Content-Length": str(1 << 22)})
    thread.join()
    listener.close()


def test_nobody_listens():
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
    with pytest.raises(heliostat.Unavailable, match=f"no daemon answers at {url}.*helio up"):
        heliostat.Client(url, "t").version()


def test_no_answer_in_time(fake):
    over = threading.Event()
    fake.on("GET", "/v1/version", lambda request: over.wait(10))
    with pytest.raises(heliostat.DeadlineExceeded, match="within 0.2s"):
        heliostat.Client(fake.url, "t", timeout=0.2).version()
    over.set()


def test_below_a_path_of_the_address(fake):
    fake.on("GET", "/helio/v1/version", version)
    assert heliostat.Client(fake.url + "/helio/", "t").version().version == "0.1.0"


@pytest.fixture
def tls(fake, tmp_path):
    """(address of a daemon that speaks TLS, its certificate)."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj",
                    "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)], check=True,
                   capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    fake.server.socket = context.wrap_socket(fake.server.socket, server_side=True)
    return fake.url.replace("http:", "https:"), str(certificate)


def test_a_certificate_that_is_trusted(fake, tls, monkeypatch):
    url, certificate = tls
    fake.on("GET", "/v1/version", version)
    client = heliostat.Client(url, "t", ca=certificate)
    assert [client.version().version for _ in range(3)] == 3 * ["0.1.0"]
    monkeypatch.setenv("HELIOSTAT_CA", certificate)
    assert heliostat.Client(url, "t").version().version == "0.1.0"


def test_a_certificate_that_is_not_trusted(fake, tls, tmp_path):
    url, _ = tls
    with pytest.raises(heliostat.Unavailable, match="certificate verify failed.*HELIOSTAT_CA"):
        heliostat.Client(url, "t").version()
    with pytest.raises(heliostat.InvalidArgument, match="no certificates in .*nothing.pem") as refused:
        heliostat.Client(url, "t", ca=str(tmp_path / "nothing.pem")).version()
    assert refused.value.path == "ca" and fake.requests == []


def test_an_answer_that_makes_no_sense(fake, client):
    fake.on("GET", "/v1/jobs/j-1", [], b"<html>")
    fake.on("GET", "/v1/jobs", {"jobs": []})
    for call, why in ((client.get, "not what this SDK expects"), (client.get, "no JSON: <html>"), (lambda _: client.list(), "has no items")):
        with pytest.raises(heliostat.HeliostatError, match=why) as refused:
            call("j-1")
        assert refused.value.code == "internal"


def test_any_other_route(fake, client):
    fake.on("PUT", "/v1/flavors/big", lambda request: request.reply(request.json))
    flavor = heliostat.Flavor("big", heliostat.Resources(cpu=4))
    assert client.request("PUT", "/v1/flavors/big", body=flavor) == {"name": "big", "resources": {"cpu": 4}}
    with pytest.raises(heliostat.NotFound, match="no such path"):
        client.request("GET", "/v1/nothing", query={"all": True, "left": None})
    assert fake.requests[-1].query == "all=true"
