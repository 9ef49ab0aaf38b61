"""An elastic job all of whose workers die at once: new workers start from the beginning, and the loss counts once."""

import os
import signal

from conftest import skip_without, wait_until
from elastic_job import Training

skip_without("numpy")


def lose_all(training, size, pids):
    """Kills these workers, none of which hears of the end of another, and waits for the next world: its processes and steps."""
    before = training.worlds(size)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    wait_until("a world of new workers", lambda: len(training.worlds(size)) == len(before) + size, told=training.text)
    return {pid: place for pid, place in training.worlds(size).items() if pid not in before}


def test_a_job_that_loses_all_workers_ends_once_its_failures_are_used_up(start, tmp_path):
    training = Training(start, tmp_path, "-np", 2, "--max-failures", 1)
    for pid in lose_all(training, 2, training.await_world(2)):
        os.kill(pid, signal.SIGKILL)
    assert training.job.finish() != 0, training.text()
    training.job.nothing_left()
