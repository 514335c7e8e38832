import json
import pickle
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import heliostat
from heliostat._model import format_time, parse_time

DOCUMENT = Path(__file__).resolve().parents[2] / "api" / "openapi.json"
JOB = {"id": "j-1", "revision": 7, "state": "failed", "exit_code": 3, "created": "2026-11-30T15:18:20.089395Z", "ledger": {"user": 1},
       "spec": {"entrypoint": {"argv": ["sh"]}, "workers": [{"count": 2, "labels": {"a": "b"}}], "log_limit": 4294967296},
       "verdict": {"cause": "entrypoint.exit", "evidence": [{"source": "driver", "at": "2026-11-30T15:18:20.5Z"}]}}


def test_a_document_comes_back_as_it_was():
    job = heliostat.Job.from_dict(JOB)
    assert job.state == "failed" and job.exit_code == 3 and job.ledger == {"user": 1}
    assert job.spec.workers[0].count == 2 and job.spec.entrypoint.argv == ["sh"]
    assert job.verdict.evidence[0].at == datetime(2026, 11, 30, 15, 18, 20, 500000, timezone.utc)
    assert job.finished is None
    back = job.to_dict()
    assert back["verdict"]["evidence"][0].pop("at") == "2026-11-30T15:18:20.500000Z"
    assert back == {**JOB, "verdict": {"cause": "entrypoint.exit", "evidence": [{"source": "driver"}]}}
    assert pickle.loads(pickle.dumps(job)) == job


def test_what_a_newer_daemon_adds_is_kept():
    job = heliostat.Job.from_dict({"id": "j-1", "state": "frozen", "mood": "fine", "spec": {"entrypoint": {"wasm": "x"}}})
    assert job.state == "frozen"
    assert job.to_dict() == {"id": "j-1", "state": "frozen", "mood": "fine", "spec": {"entrypoint": {"wasm": "x"}}}


def test_none_is_left_out_and_falsehood_is_not():
    spec = heliostat.JobSpec(entrypoint=heliostat.Entrypoint(command="x"), head=heliostat.HeadSpec(schedulable=False),
                             retries=heliostat.RetryPolicy(user=0), workers=[])
    assert spec.to_dict() == {"entrypoint": {"command": "x"}, "head": {"schedulable": False}, "retries": {"user": 0}, "workers": []}


def test_required_fields_have_no_default():
    with pytest.raises(TypeError, match="entrypoint"):
        heliostat.JobSpec()
    with pytest.raises(TypeError, match="entrypoint"):
        heliostat.JobSpec.from_dict({})
    with pytest.raises(TypeError, match="object"):
        heliostat.Job.from_dict([])


def test_a_value_of_another_kind_is_kept():
    job = heliostat.Job.from_dict({"created": "yesterday", "verdict": "guilty", "warnings": "none", "ledger": 3})
    assert (job.created, job.verdict, job.warnings, job.ledger) == ("yesterday", "guilty", "none", 3)


@pytest.mark.parametrize("text, micros, hours", [("2026-01-31T12:00:00Z", 0, 0), ("2026-01-31T12:00:00.1Z", 100000, 0),
                                                 ("2026-01-31 12:00:00.123456789Z", 123456, 0), ("2026-01-31T12:00:00+02:00", 0, 2)])
def test_times(text, micros, hours):
    time = parse_time(text)
    assert time == datetime(2026, 1, 31, 12, 0, 0, micros, timezone(timedelta(hours=hours)))
    assert parse_time(format_time(time)) == time


def test_times_without_a_zone_are_local():
    now = datetime.now()
    assert parse_time(format_time(now)).timestamp() == pytest.approx(now.timestamp(), abs=1e-5)


def test_every_schema_has_a_class_with_its_fields():
    for name, schema in json.loads(DOCUMENT.read_text())["components"]["schemas"].items():
        fields = getattr(heliostat, name).__dataclass_fields__
        assert sorted(fields) == sorted(schema.get("properties", {})), name
    assert heliostat.__version__ == json.loads(DOCUMENT.read_text())["info"]["version"]
