"""The platform's own behaviour, with real agents and a stub in place of Ray: fast, and many times."""
import json

from heliostat import eventually


def test_a_job_runs_on_head_and_workers_and_leaves_nothing(stubbed):
    done = stubbed.helio("run", "--workers", "2", "--", "sh", "-c", "echo hello from $HELIOSTAT_NODE_INDEX; exit 5", check=5)
    assert done.stdout == "hello from 0\n"
    job = json.loads(stubbed.helio("ps", "-o", "json").stdout)[0]
    assert job["state"] == "failed" and job["verdict"]["cause"] == "entrypoint.exit" and job["exit_code"] == 5
    stubbed.assert_nothing_left()
    assert stubbed.helio("logs", "last", check=0).stdout == "hello from 0\n"
