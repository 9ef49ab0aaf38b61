"""Collectives that take too long among ranks that mpirun started: their agent explains them, without any driver."""

import re

import pytest
from conftest import has_modules
from test_foreign import clean_environment, mpirun, needs_mpirun  # noqa: F401
from test_hangs import SCRIPT, WARNING, hang_worker, line_of

pytestmark = [needs_mpirun, pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")]
LIMITS = {"HOROVOD_STALL_CHECK_TIME_SECONDS": str(WARNING)}


@pytest.fixture
def hang(run):
    """hang(how, limit): the job of three ranks under mpirun, once it is over."""

    def begin(how, limit=0):
        program = mpirun(3, *hang_worker(how))
        job = run(*program[1:], program=program[:1], env={**LIMITS, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": str(limit)})
        job.nothing_left()
        return job

    return begin


def test_a_rank_of_mpirun_that_hangs_is_explained(hang):
    job = hang("sleep", limit=6)
    assert job.code != 0
    assert job.err.count("[hvdrun agent] rank") <= 2, job.err  # once a change, not each warning time; it may have been about to sleep
    assert re.search(r"rank [01] has waited \d+ s in 'allreduce.gradient' for rank 2 to submit it", job.err), job.err
    assert re.search(r"  rank 2 on host \S+ \(pid \d+\) is blocked in the system call \w*nanosleep at %s in sleep"
                     % line_of("sleep"), job.err), job.err


def test_a_wait_of_mpirun_s_ranks_that_can_never_end_ends_their_world(hang):
    job = hang("name")
    assert job.code != 0
    assert "it can never end" in job.err, job.err
    assert re.search(r"rank \d on host \S+ \(pid \d+\) is in another collective: it has waited \d+ s in 'allreduce", job.err), job.err
    assert str(SCRIPT) in job.err
