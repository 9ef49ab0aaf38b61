"""hvdrun --elastic and hvd.elastic together: ranks die, hosts come and go, the job is asked to stop.

The script knows the right result at every step (test/python/workers/elastic_training.py). test/python/test_elastic.py has the
worker's side alone, step by step.
"""

import os
import re
import signal
import sys

import pytest
from conftest import REPO, skip_without, wait_until
from elastic_job import WITH_TORCH, Training

skip_without("torch")


def test_survivors_of_a_killed_rank_train_on(start, tmp_path):
    training = Training(start, tmp_path, "-np", 3, "--min-np", 2, script=WITH_TORCH)
    first = training.await_world(3)
    victim = next(pid for pid, (rank, _) in first.items() if rank == 1)
    await_survivors = training.await_next_world([pid for pid in first if pid != victim])
    os.kill(victim, signal.SIGKILL)
    await_survivors()
    training.finish()


@pytest.mark.parametrize("ranks", [(0,), (0, 1), (1, 3)])
def test_rank_0_and_several_at_once_may_die(start, tmp_path, ranks):
    training = Training(start, tmp_path, "-np", 4, "--min-np", 2, script=WITH_TORCH, options=["sets"])
    first = training.await_world(4)
    victims = [pid for pid, (rank, _) in first.items() if rank in ranks]
    await_survivors = training.await_next_world([pid for pid in first if pid not in victims])
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    await_survivors()
    training.finish()


# Rank 2 dies while the others wait for its gradient, at the end of a backward() of an optimizer that is no part of the state.
TWO_OPTIMIZERS = """
import os, signal
import torch
import horovod.torch as hvd
hvd.init()
model, other = torch.nn.Linear(1, 1), torch.nn.Parameter(torch.ones(1))
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), named_parameters=model.named_parameters())
second = hvd.DistributedOptimizer(torch.optim.SGD([other], lr=1.0), named_parameters=[("other", other)])

@hvd.elastic.run
def train(state):
    if hvd.size() == 3 and hvd.rank() == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    other.grad = None
    (other * (hvd.rank() + 1)).sum().backward()
    second.step()
    assert float(other.grad) == 1.5, other.grad
    print("trained as", hvd.rank(), "of", hvd.size(), flush=True)

train(hvd.elastic.TorchState(model=model, optimizer=optimizer))
"""


def test_an_optimizer_beside_the_state_begins_anew_in_the_next_world(start):
    job = start("-np", 3, "--min-np", 2, "--elastic", sys.executable, "-c", TWO_OPTIMIZERS)
    assert job.finish() == 0, job.out + job.err
    assert "trained as 0 of 2" in job.out and "trained as 1 of 2" in job.out, job.out


def test_a_discovery_script_lets_the_job_grow_and_shrink(start, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:2\n")
    training = Training(start, tmp_path, "-np", 2, "--min-np", 1, "--max-np", 3, "--host-discovery-script", f"cat {hosts}", script=WITH_TORCH)
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


@pytest.mark.soak
def test_loader_workers_know_the_places_of_their_rank_in_each_generation(start, tmp_path):
    hosts, output = tmp_path / "hosts", tmp_path / "output"
    hosts.write_text("localhost:2\n")
    with open(output, "wb") as file:
        script = [sys.executable, REPO / "test" / "python" / "workers" / "elastic_children.py", tmp_path]
        job = start("-np", 2, "--min-np", 1, "--max-np", 3, "--host-discovery-script", f"cat {hosts}", *script, stdout=file, stderr=file)

    def pids_of(size):
        return {int(pid) for pid in re.findall(rf"children of rank \d of {size} agree pid (\d+)", output.read_text())}

    def await_world(size):
        wait_until(f"a world of {size}", lambda: len(pids_of(size)) == size or job.process.poll() is not None, told=output.read_text)
        assert len(pids_of(size)) == size, output.read_text()
        return pids_of(size)

    old = await_world(2)
    hosts.write_text("localhost:3\n")
    assert old < await_world(3), "the old ranks are the same processes"
    hosts.write_text("localhost:1\n")
    assert await_world(1) <= old
    (tmp_path / "finish").write_text("")
    assert job.finish() == 0, output.read_text()
    job.nothing_left()


def test_a_stop_after_this_step_ends_all_ranks_at_one_commit_with_75(start, tmp_path):
    training = Training(start, tmp_path, "-np", 2, script=WITH_TORCH, options=["stop"])
    training.await_world(2)
    training.job.process.send_signal(signal.SIGTERM)
    assert training.job.finish() == 75, training.text()
    stops = re.findall(r"stops at step (\d+) of \[(\d+), (\d+)\]", training.text())
    assert len(stops) == 2 and len(set(sum(stops, ()))) == 1, training.text()
    training.job.nothing_left()


def test_the_example_trains_while_its_discovery_script_changes(start, tmp_path):
    """As docs/elastic.md says: a host is added, one is drained, and the job is asked to stop and goes on from its checkpoint."""
    skip_without("sklearn")
    output, checkpoint = tmp_path / "output", tmp_path / "digits.pt"
    hosts, drained = tmp_path / "hosts.txt", tmp_path / "drained.txt"
    hosts.write_text("127.0.0.1:1\n")

    def train(epochs):
        with open(output, "ab") as file:
            script = [sys.executable, REPO / "examples" / "pytorch_elastic_digits.py", "--epochs", epochs, "--checkpoint", checkpoint]
            env = {"ELASTIC_HOSTS": str(hosts), "ELASTIC_DRAINED": str(drained)}
            return start("--host-discovery-script", REPO / "examples" / "elastic_hosts.sh", "-np", 1, "--max-np", 3, *script,
                         stdout=file, stderr=file, env=env)

    def sizes():
        return [int(size) for size in re.findall(r"epoch \d+/\d+  size (\d+) ", output.read_text())]

    def await_size(size):
        wait_until(f"an epoch of {size}", lambda: sizes()[-1:] == [size], told=output.read_text)

    job = train(100000)
    await_size(1)
    hosts.write_text("127.0.0.1:1\n127.0.0.2:2\n")
    await_size(3)
    drained.write_text("127.0.0.2\n")
    await_size(1)
    job.process.send_signal(signal.SIGTERM)
    assert job.finish() == 75, output.read_text()
    last = len(sizes()) + 1
    job = train(last + 1)
    assert job.finish() == 0, output.read_text()
    assert "resuming after step" in output.read_text()
    epochs = [int(number) for number in re.findall(r"epoch (\d+)/", output.read_text())]
    assert epochs == list(range(1, last + 2)), "none is left out and none is repeated"
    assert float(re.findall(r"accuracy (\d+\.\d) %", output.read_text())[-1]) > 90.0
    assert "0 of 10 failures" not in output.read_text() and "failed" not in output.read_text()
    job.nothing_left()
