"""Long-lived clusters: what is sent, and waiting until one is ready."""
import json

import pytest

import heliostat


def job(state, reason="", **more):
    return {"id": "j-1", "state": state, "reason": reason, "spec": {"name": "team", "type": "cluster", "entrypoint": {}}, **more}


def sse(*kinds):
    return [f"id: {i}\nevent: change\ndata: {json.dumps({'revision': i, 'kind': kind, 'type': kind + '.x'})}\n\n".encode() for i, kind in enumerate(kinds, 1)]


def watch(*kinds):
    """An event stream that goes on."""
    def answer(request):
        request.begin("text/event-stream")
        for piece in sse(*kinds):
            request.chunk(piece)
        request.cut()
    return answer


def events(request):
    request.reply({"items": []})


def test_create_sends_what_was_said_and_waits_until_it_is_ready(fake, client):
    fake.on("POST", "/v1/clusters", lambda r: r.reply(job("queued"), 201))
    fake.on("GET", "/v1/jobs/j-1/events", events, watch("job", "node", "job"))
    fake.on("GET", "/v1/jobs/j-1", lambda r: r.reply(job("starting")), lambda r: r.reply(job("running", "ready")))
    made = client.create_cluster("team", workers=2, env={"A": "1"}, idle="2h", limits={"run": "1d"}, image="torch")
    assert made.state == "running" and made.spec.name == "team"
    sent = fake.requests[0]
    assert sent.json == {"name": "team", "workers": [{"count": 2}], "env": [{"name": "A", "value": "1"}], "image": "torch",
                         "limits": {"run": "1d", "idle": "2h"}}
    assert sent.headers["Idempotency-Key"]
    assert sum(r.path == "/v1/jobs/j-1" for r in fake.requests) == 2, "only changes of the job itself are looked at"


def test_one_that_ends_instead_is_an_error_with_its_reason(fake, client):
    fake.on("POST", "/v1/clusters", lambda r: r.reply(job("queued"), 201))
    fake.on("GET", "/v1/jobs/j-1/events", events, watch("job"))
    fake.on("GET", "/v1/jobs/j-1", lambda r: r.reply(job("failed", "no such image")))
    with pytest.raises(heliostat.PreconditionFailed, match="no such image"):
        client.create_cluster("team")


def test_names_are_found_listed_and_deleted(fake, client):
    fake.on("GET", "/v1/clusters/team", lambda r: r.reply(job("running")))
    fake.on("GET", "/v1/clusters", lambda r: r.reply({"items": [job("running")]}))
    fake.on("DELETE", "/v1/clusters/team", lambda r: r.reply(job("running"), 202))
    fake.on("POST", "/v1/clusters", lambda r: r.problem(409, "conflict", "taken", path="$.name"))
    assert client.cluster("team").id == "j-1"
    assert [one.spec.name for one in client.clusters()] == ["team"] and fake.requests[-1].query == ""
    client.clusters(ended=True)
    assert fake.requests[-1].query == "ended=true"
    fake.on("POST", "/v1/clusters/team/scale", lambda r: r.reply(job("running"), 202))
    assert client.scale_cluster("team", 4).id == "j-1" and fake.requests[-1].json == {"count": 4}
    client.scale_cluster("team", 4, group="gpu")
    assert fake.requests[-1].json == {"count": 4, "group": "gpu"}
    assert client.delete_cluster("team").id == "j-1"
    with pytest.raises(heliostat.Conflict) as taken:
        client.create_cluster("team", wait=False)
    assert taken.value.path == "$.name"
    with pytest.raises(heliostat.InvalidArgument):
        client.cluster("")
