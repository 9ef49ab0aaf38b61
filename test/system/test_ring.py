"""A rank that dies or stops while large private tensors go through the slots of a staging ring or a stream, whatever it is doing."""

import contextlib
import os
import signal
import time

import pytest
from conftest import is_alive, read_some, wait_until
from test_express import PERF, STALLED, goes_on, needs_perf, rank_of, small

__all__ = ["small"]
SIZE = 16 << 20
STREAMS = [("broadcast", SIZE), ("alltoall", SIZE), ("allgather", 1 << 20), ("reducescatter", 1 << 20)]

pytestmark = [needs_perf, pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="ranks that have no core each use no ring")]


def next_stall(job):
    """The text up to the next warning about a stall."""
    told = ""
    while "has waited" not in told:
        read = read_some(job.process.stderr)
        assert read, f"hvdrun ended:\n{told}"
        told += read.decode(errors="surrogateescape")
    return told


def stop_within(job, rank, what):
    """Stops the rank when the others wait for it in `what`: for half of its time hvd_perf writes and reads memory without it."""
    for _ in range(30):
        os.kill(job.pids[rank], signal.SIGSTOP)
        if what in next_stall(job):
            return
        os.kill(job.pids[rank], signal.SIGCONT)
        goes_on(job.pids[rank])
    pytest.fail(f"rank {rank} never stopped within {what}")


@pytest.mark.parametrize("wait_s", [0, 0.0013, 0.0029, 0.0107])
def test_kill_9_within_a_ring_ends_the_job(small, wait_s):
    job = small(2, size=SIZE)
    time.sleep(wait_s)
    job_id = job.job_id()
    os.kill(job.pids[1], signal.SIGKILL)
    assert job.finish() == 137
    assert "rank 1" in job.err and "signal 9" in job.err, job.err
    job.nothing_left(job_id)


@pytest.mark.parametrize("collective, size", STREAMS)
def test_kill_9_within_a_stream_ends_the_job(small, collective, size):
    rank = 0 if collective == "broadcast" else 1  # of a broadcast, the root
    job = small(2, size=size, collective=collective)
    time.sleep(0.0083)
    job_id = job.job_id()
    os.kill(job.pids[rank], signal.SIGKILL)
    assert job.finish() == 137
    assert f"rank {rank}" in job.err and "signal 9" in job.err, job.err
    job.nothing_left(job_id)


@pytest.mark.parametrize("collective", ["allreduce", "alltoall"])
def test_a_stopped_rank_is_a_stall_that_names_it(small, collective):
    limits = ["--stall-check-warning-time-seconds", 1, "--stall-check-shutdown-time-seconds", 3]
    job = small(2, *limits, size=SIZE, collective=collective)
    stop_within(job, 1, f"perf.{collective}")
    assert job.finish() == STALLED, job.err
    assert f"perf.{collective}" in job.err and "rank 1" in job.err, job.err


@pytest.mark.parametrize("collective", ["allreduce", "alltoall", "broadcast"])
def test_a_rank_that_stops_again_and_again_changes_no_result(start, collective):
    """hvd_perf fails when a result is wrong."""
    job = start("-np", 2, PERF, "--private", "--collective", collective, "--sizes", SIZE // 2, "--loops", 7)
    wait_until("all ranks", lambda: {rank_of(pid) for pid in job.workers} == {0, 1})
    pids = {rank_of(pid): pid for pid in job.workers}
    for turn in range(12):
        time.sleep(0.04)
        if not all(is_alive(pid) for pid in pids.values()):
            break  # it was faster than this test
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[turn % 2], signal.SIGSTOP)
            time.sleep(0.03)  # longer than the other one looks before it sleeps
            os.kill(pids[turn % 2], signal.SIGCONT)
    assert turn > 2
    assert job.finish() == 0, job.err
