"""An elastic job all of whose workers die at once: new workers start from the beginning, and the loss counts once."""

import os
import signal

import pytest
from conftest import kill, wait_until
from elastic_job import Training

pytest.importorskip("torch", reason="PyTorch is not installed for this Python")


def lose_all(training, size, pids):
    """Kills these workers, none of which hears of the end of another, and waits for the next world: its processes and steps."""
    before = training.worlds(size)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    wait_until("a world of new workers", lambda: len(training.worlds(size)) == len(before) + size, told=training.text)
    return {pid: place for pid, place in training.worlds(size).items() if pid not in before}


@pytest.mark.parametrize("hosts", ["127.0.0.1:2", "127.0.0.1:1,127.0.0.2:1"])
def test_a_job_that_loses_all_workers_starts_again_from_the_beginning(start, tmp_path, hosts):
    training = Training(start, tmp_path, "-np", 2, "-H", hosts)
    training.await_world(2)
    # After the loss of one, the other goes on from its commit, which shows that there is one to lose.
    kill(training.victim(2, 1))
    wait_until("a world that goes on", lambda: sum(step > 0 for _, step in training.worlds(2).values()) == 2, told=training.text)
    lost = {pid for pid, (_, step) in training.worlds(2).items() if step > 0}
    assert {step for _, step in lose_all(training, 2, lost).values()} == {0}, training.text()
    training.finish()
    assert "2 of 10 failures" in training.text() and "3 of 10" not in training.text(), training.text()


def test_a_job_that_loses_all_workers_ends_once_its_failures_are_used_up(start, tmp_path):
    training = Training(start, tmp_path, "-np", 2, "--max-failures", 1)
    for pid in lose_all(training, 2, training.await_world(2)):
        os.kill(pid, signal.SIGKILL)
    assert training.job.finish() != 0, training.text()
    training.job.nothing_left()
