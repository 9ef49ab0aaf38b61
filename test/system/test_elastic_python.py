"""hvdrun --elastic and hvd.elastic together: ranks die, hosts come and go, the job is asked to stop.

The script knows the right result at every step (test/python/workers/elastic_training.py). test/python/test_elastic.py has the
worker's side alone, step by step.
"""

import os
import re
import signal

import pytest
from conftest import wait_until
from elastic_job import Training

pytest.importorskip("torch", reason="PyTorch is not installed for this Python")


def test_P23_survivors_of_a_killed_rank_train_on(start, tmp_path):
    training = Training(start, tmp_path, "-np", 3, "--min-np", 2)
    first = training.await_world(3)
    victim = next(pid for pid, (rank, _) in first.items() if rank == 1)
    await_survivors = training.await_next_world([pid for pid in first if pid != victim])
    os.kill(victim, signal.SIGKILL)
    await_survivors()
    training.finish()


@pytest.mark.parametrize("ranks", [(0,), (0, 1), (1, 3)])
def test_P23_rank_0_and_several_at_once_may_die(start, tmp_path, ranks):
    training = Training(start, tmp_path, "-np", 4, "--min-np", 2, options=["sets"])
    first = training.await_world(4)
    victims = [pid for pid, (rank, _) in first.items() if rank in ranks]
    await_survivors = training.await_next_world([pid for pid in first if pid not in victims])
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    await_survivors()
    training.finish()


def test_E4_a_discovery_script_lets_the_job_grow_and_shrink(start, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:2\n")
    training = Training(start, tmp_path, "-np", 2, "--min-np", 1, "--max-np", 3, "--host-discovery-script", f"cat {hosts}")
    old = training.await_world(2)
    hosts.write_text("localhost:3\n")
    grown = training.await_world(3)
    assert set(old) < set(grown), "the old ranks are the same processes"
    assert grown[max(grown, key=lambda pid: pid not in old)][1] > 0, "the new rank got the state"
    hosts.write_text("localhost:1\n")
    wait_until("a world of 1", lambda: training.worlds(1), told=training.text)
    assert set(training.worlds(1)) <= set(old), "an old rank is rank 0"
    training.finish()
    assert "Traceback" not in training.text(), "ranks that left have ended well"


def test_a_stop_after_this_step_ends_all_ranks_at_one_commit_with_75(start, tmp_path):
    training = Training(start, tmp_path, "-np", 2, options=["stop"])
    training.await_world(2)
    training.job.process.send_signal(signal.SIGTERM)
    assert training.job.finish() == 75, training.text()
    stops = re.findall(r"stops at step (\d+) of \[(\d+), (\d+)\]", training.text())
    assert len(stops) == 2 and len(set(sum(stops, ()))) == 1, training.text()
    training.job.nothing_left()
