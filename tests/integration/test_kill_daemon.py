"""kill -9 of the daemon at random instants: no job lost, none run twice, outcome and full logs right."""
import random
import time

import pytest

from heliostat import marks

PER_STAGE = 10
# What a job is waiting for when the daemon dies, and how long that takes with the stub, in seconds.
STAGES = {"submitting": 0.0, "queued": 0.4, "starting": 0.35, "running": 0.8, "ending": 0.3}


def lines(number):
    return f"for i in $(seq {number}); do echo line $i; sleep 0.02; done"


@pytest.mark.parametrize("stage", STAGES)
def test_killed_while(stubbed, stage, tmp_path):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    cpu = stubbed.get("/v1/hosts")["items"][0]["capacity"]["cpu"]
    stubbed.helio("flavors", "set", "all", "--cpu", cpu, "--memory", "512MiB", check=0)
    for round_number in range(PER_STAGE):
        ran = tmp_path / f"ran-{round_number}"
        before = stubbed.submit("--head-flavor", "all", "--", "sleep", "0.4") if stage == "queued" else None
        job = stubbed.submit("--workers", "1", "--", "sh", "-c", f"echo x >> {ran}; {lines(40)}; exit 3")
        if before:
            stubbed.until(before, ["running"])
            assert stubbed.job(job)["state"] == "queued"
        if stage == "running":
            stubbed.until(job, ["running"])
        elif stage == "ending":
            while not any(a for a in stubbed.attempts(job) if "driver_end" in marks(a) or a["state"] == "ending" or a.get("verdict")):
                time.sleep(0.005)
        time.sleep(chance.random() * STAGES[stage])
        stubbed.kill9()
        time.sleep(chance.random() * 0.3)
        stubbed.up()
        row = stubbed.wait(job, 60)
        assert row["state"] == "failed" and row["exit_code"] == 3, (seed, round_number, row)
        assert ran.read_text() == "x\n", (seed, round_number)
        assert stubbed.helio("logs", job, check=0).stdout == "".join(f"line {i}\n" for i in range(1, 41)), (seed, round_number)
        assert row["attempts"] == 1 and len(stubbed.attempts(job)) == 1
        assert not before or stubbed.wait(before)["state"] == "succeeded"
    stubbed.assert_nothing_left()


def test_a_follower_sees_each_line_once_over_ten_restarts(stubbed):
    runner = stubbed.popen("run", "--", "sh", "-c", "for i in $(seq 400); do echo line $i; sleep 0.02; done; exit 6")
    assert runner.stdout.readline() == "line 1\n"
    chance = random.Random(7)
    for _ in range(10):
        time.sleep(chance.random() * 0.6)
        stubbed.kill9()
        time.sleep(chance.random() * 0.2)
        stubbed.up()
    # Not communicate(): it would miss what readline() has buffered.
    out = runner.stdout.read()
    err = runner.stderr.read()
    assert runner.wait(60) == 6, err
    assert out == "".join(f"line {i}\n" for i in range(2, 401))


def test_a_submit_that_was_acknowledged_is_kept(stubbed):
    jobs = []
    for _ in range(10):
        jobs.append(stubbed.submit("--", "true"))
        stubbed.kill9()
        stubbed.up()
    assert [stubbed.wait(job)["state"] for job in jobs] == ["succeeded"] * 10
