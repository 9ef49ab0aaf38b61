"""Weak points of the runtimes before this one, looked at from outside; the list is in test/issues."""

import os
import pathlib
import re
import signal
import time

import pytest
from conftest import WORKERS, has_modules, library, read_proc, wait_until
from test_played_hosts import PYTHON

GLOO = library("libhvd_gloo.so")

pytestmark = pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")
needs_gloo = pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so")
WATCH_S = 2


@pytest.fixture
def worker(start, tmp_path):
    """Starts ranks that have said "ready", and gives the job with the path for which they wait."""
    def go(ranks, what, *args, ready="ready"):
        path = tmp_path / "go"
        job = start("-np", ranks, *args, PYTHON, WORKERS / "quiet_worker.py", what, path)
        job.ready = [job.process.stdout.readline().decode() for _ in range(ranks)] if ready else []
        assert all("ready" in line for line in job.ready), job.ready
        return job, path
    return go


def pids_of(job, ranks):
    found = [pid for pid in job.processes() if b"\0HOROVOD_RANK=" in read_proc(pid, "environ")]
    assert len(found) == ranks
    return found


def switches(pid):
    """How often the threads of a process went to sleep."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        status = read_proc(pid, f"task/{task}/status").decode()
        total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE).group(1))
    return total


def cpu_seconds(pid):
    fields = read_proc(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connections(pid):
    """Established connections of TCP that the process holds."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    rows = [line.split() for table in ("tcp", "tcp6") for line in read_proc(pid, f"net/{table}").decode().splitlines()[1:]]
    return sum(1 for row in rows if row[3] == "01" and row[9] in inodes)


@pytest.mark.parametrize("hosts", [1, pytest.param(2, marks=needs_gloo)])
def test_a_world_with_nothing_to_do_does_nothing(worker, hosts):
    """A cycle of 1 ms would go to sleep 1,000 times a second. The wake-ups that are left are for watching others, and
    for scripts' own waiting (100 times a second here)."""
    job, go = worker(2, "idle", "--hosts-per-machine", hosts)
    begin = time.monotonic()
    before = {pid: switches(pid) for pid in pids_of(job, 2)}
    time.sleep(WATCH_S)
    after = {pid: switches(pid) for pid in before}
    elapsed = time.monotonic() - begin
    for pid, count in before.items():
        assert after[pid] - count < elapsed * (100 + 100) + 100, "times to sleep"
    go.touch()
    assert job.finish() == 0, job.err


def test_who_waits_for_a_late_rank_sleeps(worker):
    job, go = worker(3, "late")
    waiting = [pid for pid in pids_of(job, 3) if environ_rank(pid) != 0]
    wait_until("both wait", lambda: all(b"S" in read_proc(pid, "stat").rpartition(b")")[2].split()[0] for pid in waiting))
    before = {pid: cpu_seconds(pid) for pid in waiting}
    time.sleep(WATCH_S)
    for pid, spent in before.items():
        assert cpu_seconds(pid) - spent < WATCH_S / 4
    go.touch()
    assert job.finish() == 0, job.err


def environ_rank(pid):
    return int(re.search(rb"HOROVOD_RANK=(\d+)", read_proc(pid, "environ")).group(1))


def test_a_set_that_waits_holds_up_no_other_set(worker):
    job, _ = worker(3, "sets", ready=None)
    assert job.finish() == 0, job.err
    assert job.out.count("done") == 3


def test_ranks_of_a_host_agree_without_rank_0(worker):
    """No coordinator: while rank 0 is stopped the others work on, with names that nobody has heard before."""
    job, go = worker(3, "others")
    zero = [pid for pid in pids_of(job, 3) if environ_rank(pid) == 0][0]
    os.kill(zero, signal.SIGSTOP)
    go.touch()
    lines = [job.process.stdout.readline() for _ in range(2)]
    assert all(b"done" in line for line in lines), lines
    os.kill(zero, signal.SIGCONT)
    assert job.finish() == 0, job.err


@needs_gloo
def test_only_leaders_connect_and_only_when_they_talk(worker):
    job, go = worker(6, "lazy", "--hosts-per-machine", 3)
    assert [connections(pid) for pid in pids_of(job, 6)] == [0] * 6
    go.touch()
    assert all(b"talked" in job.process.stdout.readline() for _ in range(6))
    by_rank = {environ_rank(pid): connections(pid) for pid in pids_of(job, 6)}
    assert all(by_rank[rank] == 0 for rank in (1, 3, 5)), "they lead nothing"
    assert all(0 < by_rank[rank] <= 4 for rank in (0, 2, 4)), "one each way to each of two others"
    pathlib.Path(str(go) + ".2").touch()
    assert job.finish() == 0, job.err
