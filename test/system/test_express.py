"""A rank that dies or stops while all of them exchange a few bytes as fast as they can, on the short way of the engine."""

import os
import pathlib
import re
import signal
import time

import pytest
from conftest import hvdrun_path, needs_the_build_tree, read_proc, wait_until

needs_perf = needs_the_build_tree("a wheel has no hvd_perf")
pytestmark = needs_perf

PERF = pathlib.Path(hvdrun_path()).with_name("hvd_perf")
STALLED = 79  # the exit code


def cpu_seconds(pid):
    fields = read_proc(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rank_of(pid):
    found = re.search(rb"\0HOROVOD_RANK=(\d+)", read_proc(pid, "environ"))
    return int(found.group(1)) if found else None


def goes_on(pid):
    """The process has worked since it was asked first."""
    begin = cpu_seconds(pid)
    wait_until("work", lambda: cpu_seconds(pid) > begin + 0.05)


@pytest.fixture
def small(start):
    """small(ranks, *flags): a job inside its loop of a collective that goes on for minutes, with the pid of each rank."""

    def begin(ranks, *flags, size=8, collective="allreduce"):
        sizes = ",".join([str(size)] * 20)
        job = start("-np", ranks, *flags, PERF, "--private", "--collective", collective, "--sizes", sizes, "--loops", 1000)
        wait_until("all ranks", lambda: {rank_of(pid) for pid in job.workers} == set(range(ranks)))
        job.pids = {rank_of(pid): pid for pid in job.workers}
        for pid in job.pids.values():
            goes_on(pid)
        return job

    return begin


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("wait_s", [0, 0.003, 0.0301])
def test_kill_9_within_an_exchange_ends_the_job(small, ranks, wait_s):
    job = small(ranks)
    time.sleep(wait_s)
    job_id = job.job_id()
    os.kill(job.pids[1], signal.SIGKILL)
    assert job.finish() == 137
    assert "rank 1" in job.err and "signal 9" in job.err, job.err
    job.nothing_left(job_id)


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_stopped_rank_is_a_stall_that_names_it(small, ranks):
    job = small(ranks, "--stall-check-warning-time-seconds", 1, "--stall-check-shutdown-time-seconds", 3)
    os.kill(job.pids[ranks - 1], signal.SIGSTOP)
    assert job.finish() == STALLED, job.err
    assert re.search(r"in 'perf\.(allreduce|barrier)' for", job.err) and f"rank {ranks - 1}" in job.err, job.err


def test_a_stopped_rank_goes_on_where_it_was(small):
    job = small(2)
    for _ in range(5):
        os.kill(job.pids[1], signal.SIGSTOP)
        time.sleep(0.25)  # longer than the other one looks before it sleeps
        assert all(pid in job.workers for pid in job.pids.values())
        os.kill(job.pids[1], signal.SIGCONT)
        for pid in job.pids.values():
            goes_on(pid)
