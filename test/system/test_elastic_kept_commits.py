"""hvdrun --keep-commits: an elastic job that loses all its workers goes on from its last commit."""

import os
import re
import signal
import sys

import pytest
from conftest import REPO, kill, parent_of, wait_until

SCRIPT = REPO / "test" / "system" / "workers" / "kept_worker.py"


class Training:
    def __init__(self, start, folder, *flags, kib=1):
        self.folder, self.output = folder, folder / "output"
        with open(self.output, "wb") as file:
            self.job = start("--elastic", *flags, sys.executable, SCRIPT, folder, kib, stdout=file, stderr=file)

    def text(self):
        return self.output.read_text(errors="replace")

    def ranks(self):
        """{pid: (host, rank, size, step)} of each process when it began to train in its first world."""
        found = {}
        for host, rank, size, pid, step in re.findall(r"on (\S+) rank (\d+) of (\d+) pid (\d+) begins at step (\d+)", self.text()):
            found.setdefault(int(pid), (host, int(rank), int(size), int(step)))
        return found

    def committed(self, pid):
        """The last step that this process has committed."""
        return max(map(int, re.findall(rf"pid {pid} has committed step (\d+)", self.text())), default=0)

    def await_commits(self, count, more, besides=()):
        """Waits until `count` processes, not counting `besides`, have each committed `more` steps; returns them."""
        def fresh():
            return {pid: place for pid, place in self.ranks().items() if pid not in besides}

        wait_until(f"{more} commits of {count} processes", lambda: len(fresh()) >= count and all(
            self.committed(pid) >= place[3] + more for pid, place in fresh().items()), told=self.text)
        return fresh()

    def lose(self, pids):
        """Kills processes, none of which hears of the end of another; the steps that the workers among them had committed."""
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        steps = {pid: self.committed(pid) for pid in pids}
        for pid in pids:
            kill(pid)
        return steps

    def finish(self):
        job_id = self.job.job_id()
        (self.folder / "finish").write_text("")
        assert self.job.finish() == 0, self.text()
        assert "AssertionError" not in self.text()
        self.job.nothing_left(job_id)


@pytest.mark.parametrize("kib", [1, 2000])
def test_a_job_that_loses_all_workers_goes_on_from_its_last_commit(start, tmp_path, kib):
    """Rank 0 keeps them, and may be one commit behind the other. A large one counts once its checksum is there, so the one before may be
    the last."""
    training = Training(start, tmp_path, "-np", 2, "--keep-commits", 16, kib=kib)
    lost = training.await_commits(2, 3)
    for _ in range(2):
        keeper = next(pid for pid, (_, rank, _, _) in lost.items() if rank == 0)
        steps = training.lose(lost)
        fresh = training.await_commits(2, 3, besides=training.ranks())
        begun = {step for _, _, _, step in fresh.values()}
        assert len(begun) == 1 and min(begun) >= steps[keeper] - (kib > 256), training.text()
        lost = fresh
    assert len(re.findall(r"no rank has the state of the training any more; it goes on from commit \d+ of generation \d+",
                          training.text())) == 2, training.text()
    training.finish()


def test_without_keep_commits_it_begins_anew(start, tmp_path):
    training = Training(start, tmp_path, "-np", 2)
    training.lose(training.await_commits(2, 3))
    fresh = training.await_commits(2, 1, besides=training.ranks())
    assert {step for _, _, _, step in fresh.values()} == {0}, training.text()
    training.finish()


def test_the_commits_of_a_host_that_stays_survive_the_loss_of_the_other_and_of_all_workers(start, tmp_path):
    (tmp_path / "hosts").write_text("127.0.0.1:1\n127.0.0.2:1\n")
    training = Training(start, tmp_path, "--hostfile", tmp_path / "hosts", "-np", 2, "--min-np", 1, "--keep-commits", 16)
    workers = training.await_commits(2, 3)
    first = next(pid for pid, (_, rank, _, _) in workers.items() if rank == 0)
    agent = parent_of(first)
    other = next(pid for pid in workers if pid != first)
    assert parent_of(other) != agent
    steps = training.lose([first, other, agent])
    fresh = training.await_commits(1, 3, besides=workers)
    step = min(step for _, _, _, step in fresh.values())
    assert step >= steps[other], training.text()
    training.finish()


def test_too_little_room_is_said_once_and_the_job_trains(start, tmp_path):
    training = Training(start, tmp_path, "-np", 2, "--keep-commits", 1, kib=2000)
    training.await_commits(2, 3)
    assert training.text().count("commit 1 of generation 1 is not kept, because a commit of ") == 1
    training.finish()
    assert training.text().count("is not kept") == 1, training.text()


def test_kept_commits_are_freed_when_hvdrun_and_the_agent_are_killed(start, tmp_path):
    training = Training(start, tmp_path, "-np", 2, "--keep-commits", 16)
    workers = training.await_commits(2, 3)
    job_id = training.job.job_id()
    agent = parent_of(next(iter(workers)))
    held = [os.readlink(f"/proc/{agent}/fd/{name}") for name in os.listdir(f"/proc/{agent}/fd")]
    assert any("memfd:hvd-commits" in target for target in held), held
    for pid in (training.job.process.pid, agent):
        os.kill(pid, signal.SIGSTOP)
    for pid in (training.job.process.pid, agent):
        kill(pid)
    training.job.nothing_left(job_id)
