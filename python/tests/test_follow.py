"""Logs, waits and watches over connections that break."""
import threading
import time
from urllib.parse import parse_qs

import pytest

import heliostat
from heliostat import _client

LOGS, WAIT, EVENTS = "/v1/jobs/j-1/logs", "/v1/jobs/j-1/wait", "/v1/jobs/j-1/events"


def job(state="running", **more):
    return {"id": "j-1", "state": state, "reason": f"it is {state}", **more}


def sends(*pieces, end=True, until=None):
    """An answer in these chunks; then it ends, or the connection is cut (after `until` is set)."""
    def answer(request):
        request.begin()
        for piece in pieces:
            request.chunk(piece)
        if until:
            until.wait(10)
        if end:
            request.end()
        else:
            request.cut()
    return answer


def asked(fake, path, name):
    return [parse_qs(request.query).get(name, [None])[0] for request in fake.of("GET", path)]


# --- logs -------------------------------------------------------------------------------------------------------------------------
def test_a_follower_goes_on_at_the_byte_where_its_connection_broke(fake, client):
    fake.on("GET", "/v1/jobs/j-1", job(), job("succeeded"))
    fake.on("GET", LOGS, sends(b"one\nt", "wö".encode()[:2], end=False), sends(end=False), sends("wö".encode()[2:], b"\nthree\n", b"end"))
    assert list(client.follow("j-1")) == ["one", "twö", "three", "end"]
    assert asked(fake, LOGS, "offset") == ["0", "7", "7"]
    assert asked(fake, LOGS, "follow") == ["true"] * 3 and asked(fake, LOGS, "stream") == ["driver"] * 3


def test_lines_come_when_they_are_printed(fake, client):
    more = threading.Event()
    fake.on("GET", "/v1/jobs/j-1", job("succeeded"))
    fake.on("GET", LOGS, sends(b"first\n", until=more))
    lines = client.follow("j-1")
    assert next(lines) == "first"
    more.set()
    assert list(lines) == []


def test_a_follower_from_an_offset_of_a_node(fake, client):
    fake.on("GET", "/v1/jobs/j-1", job("succeeded"))
    fake.on("GET", LOGS, sends(b"rest\n"))
    assert list(client.follow(heliostat.Job(id="j-1"), node="w1", stream="raylet.out", attempt=2, offset=100)) == ["rest"]
    assert fake.of("GET", LOGS)[0].query == "node=w1&stream=raylet.out&attempt=2&offset=100&follow=true"
    with pytest.raises(heliostat.InvalidArgument):
        client.follow("j-1", offset=-1)


def test_a_clean_end_before_the_jobs_is_no_end(fake, client):
    fake.on("GET", "/v1/jobs/j-1", job(), job(), job("failed"))
    fake.on("GET", LOGS, sends(b"a\n"), sends(b"b\n"))
    assert list(client.follow("j-1")) == ["a", "b"]


def test_a_quiet_program_is_no_broken_connection(fake, monkeypatch):
    monkeypatch.setattr(_client, "LOG_SILENCE_S", 0.1)
    over = threading.Event()
    client = heliostat.Client(fake.url, "t", patience=0)
    fake.on("GET", "/v1/jobs/j-1", job("succeeded"))
    fake.on("GET", LOGS, sends(b"a\n", until=over), sends(until=over), sends(until=over), sends(b"b\n"))
    assert list(client.follow("j-1")) == ["a", "b"]
    over.set()


def test_a_daemon_that_stays_away_is_given_up(fake):
    client = heliostat.Client(fake.url, "t", patience=0.3)
    fake.on("GET", "/v1/jobs/j-1", job())
    fake.on("GET", LOGS, sends(b"a\n", end=False))
    lines = client.follow("j-1")
    assert next(lines) == "a"
    fake.on("GET", LOGS, lambda request: request.cut())
    with pytest.raises(heliostat.Unavailable):
        list(lines)


def test_what_is_wrong_from_the_start_is_told_at_once(fake, client):
    began = time.monotonic()
    for call in (lambda: next(client.follow("j-0")), lambda: client.wait("j-0"), lambda: next(client.events("j-0", watch=True))):
        with pytest.raises(heliostat.NotFound):
            call()
    fake.close()
    away = heliostat.Client(fake.url, "t")
    for call in (lambda: next(away.follow("j-1")), lambda: away.wait("j-1"), lambda: next(away.events("j-1", watch=True))):
        with pytest.raises(heliostat.Unavailable):
            call()
    assert time.monotonic() - began < 4


def test_a_log_as_text_and_as_bytes(fake, client):
    fake.on("GET", LOGS, lambda request: request.reply(b"a\xffb\r\n", media="text/plain"))
    assert client.logs("j-1") == "a\ufffdb\r\n"
    assert client.logs_bytes("j-1", since="10m", grep="a b", offset=-64, limit=10) == b"a\xffb\r\n"
    assert fake.requests[-1].query == "stream=driver&attempt=0&offset=-64&limit=10&grep=a%20b&since=10m"


# --- wait -------------------------------------------------------------------------------------------------------------------------
def test_wait_outlives_broken_connections(fake, client):
    fake.on("GET", "/v1/jobs/j-1", job())
    fake.on("GET", WAIT, lambda request: request.cut(), job(), sends(b"\n", b"\n", end=False), job("failed", exit_code=3))
    ended = client.wait("j-1")
    assert ended.state == "failed" and ended.exit_code == 3
    assert len(fake.of("GET", WAIT)) == 4


def test_wait_for_so_long(fake, client):
    fake.on("GET", "/v1/jobs/j-1", job())
    fake.on("GET", WAIT, lambda request: (time.sleep(float(request.query[len("timeout="):-1])), request.reply(job())))
    with pytest.raises(TimeoutError, match="job 'j-1' is still running after 0.2s: it is running") as late:
        client.wait("j-1", timeout=0.2)
    assert late.value.arguments == {"job": "j-1", "state": "running"}


def test_time_that_is_over_while_the_daemon_is_away(fake, client):
    fake.on("GET", "/v1/jobs/j-1", job())
    fake.on("GET", WAIT, lambda request: request.cut())
    with pytest.raises(heliostat.DeadlineExceeded, match="was running when it was last seen, 0.3s are over, and the connection to .* broke"):
        client.wait("j-1", timeout=0.3)


def test_a_job_that_has_ended_is_not_waited_for(fake, client):
    fake.on("GET", "/v1/jobs/j-1", job("stopped"))
    assert client.wait("j-1", timeout=0).state == "stopped"
    assert len(fake.requests) == 1


def test_a_problem_that_comes_after_the_status_line_is_one(fake, client):
    fake.on("GET", "/v1/jobs/j-1", job())
    fake.on("GET", WAIT, {"status": 404, "code": "not_found", "detail": "no job 'j-1'"})
    with pytest.raises(heliostat.NotFound, match="no job 'j-1'"):
        client.wait("j-1")


# --- events -----------------------------------------------------------------------------------------------------------------------
def event(revision, **more):
    return {"revision": revision, "type": "job.reason", "message": f"m{revision}", **more}


def told(revision, kind="job.reason"):
    return b'id: %d\nevent: %s\ndata: {"revision": %d, "type": "job.reason"}\n\n' % (revision, kind.encode(), revision)


def test_all_pages_of_events(fake, client):
    fake.on("GET", EVENTS, {"items": [event(3), event(5)], "next": "5"}, {"items": [event(9)]})
    assert [one.revision for one in client.events("j-1", since=1, kind="job")] == [3, 5, 9]
    assert [request.query for request in fake.requests] == ["kind=job&since=1", "kind=job&since=5"]


def test_a_watch_goes_on_after_the_last_revision(fake, client):
    first = told(4) + told(5)
    cut = sends(b"retry: 1000\n\n", first[:-9], first[-9:], b": still here\n\n", told(6)[:-1], end=False)
    fake.on("GET", EVENTS, {"items": [event(3)]}, cut, sends(told(6) + told(8)))
    watch = client.events("j-1", watch=True)
    assert [next(watch).revision for _ in range(5)] == [3, 4, 5, 6, 8]
    watch.close()
    assert asked(fake, EVENTS, "since") == ["0", "3", "5"] and asked(fake, EVENTS, "watch") == [None, "true", "true"]


def test_a_watch_that_was_away_for_too_long_says_so(fake, client):
    mark = b'id: 70\nevent: resync\ndata: {"revision": 70, "reason": "too old"}\n\n'
    fake.on("GET", "/v1/events", {"items": []}, sends(mark, end=False), sends(told(71)))
    watch = client.events(watch=True)
    resync = next(watch)
    assert (resync.type, resync.message, resync.revision) == ("resync", "too old", 70)
    assert next(watch).revision == 71
    assert asked(fake, "/v1/events", "since") == ["0", "0", "70"]


def test_who_leaves_the_loop_leaves_the_connection(fake, client):
    gone = threading.Event()

    def endless(request):
        request.begin()
        try:
            while True:
                request.chunk(told(4))
                time.sleep(0.01)
        except OSError:
            gone.set()

    fake.on("GET", EVENTS, {"items": []}, endless)
    for _ in client.events("j-1", watch=True):
        break
    assert gone.wait(10)


# --- lists ------------------------------------------------------------------------------------------------------------------------
def test_a_list_over_pages(fake, client):
    fake.on("GET", "/v1/jobs", {"items": [job()] * 2, "next": "c"}, {"items": [job()]}, {"items": [job()] * 2, "next": "d"})
    assert len(client.list(state=("running", "queued"), workspace="default")) == 3
    assert len(client.list(limit=2, order="oldest")) == 2
    assert [request.query for request in fake.requests] == ["state=running%2Cqueued&workspace=default&order=newest&limit=200",
                                                            "state=running%2Cqueued&workspace=default&order=newest&limit=200&cursor=c",
                                                            "order=oldest&limit=2"]


@pytest.mark.parametrize("wrong", ["", None, 3, heliostat.Job()])
def test_an_id_that_is_none(client, wrong):
    with pytest.raises(heliostat.InvalidArgument, match="expected the id of a job"):
        client.get(wrong)


def test_an_id_is_one_part_of_a_path(fake, client):
    fake.on("GET", "/v1/jobs/a%2F..%20b", job())
    assert client.get("a/.. b").id == "j-1"
