"""The first cause on several hosts that did not boot together: each has its own clock (host_rig.py)."""

import os
import random
import re
import sys
import time

import pytest
from conftest import foreign_worker as worker
from conftest import kill, read_proc
from host_rig import OWN_CLOCKS, WHY_NOT, rig_of
from test_first_cause import TRACEBACK, report_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

rig = rig_of(2)


def clock_of(host):
    return float(host.run("cat", "/proc/uptime").split()[0])


def ranks_on(host):
    """(rank, pid here, pid there) of each."""
    found = []
    for pid in host.processes():
        rank = re.search(rb"\0HOROVOD_RANK=(\d+)\0", read_proc(pid, "environ"))
        there = re.search(rb"^NSpid:.*\t(\d+)$", read_proc(pid, "status"), re.MULTILINE)
        if rank and there:
            found.append((int(rank.group(1)), pid, int(there.group(1))))
    return sorted(found)


@pytest.mark.skipif(not OWN_CLOCKS, reason="this kernel has no time namespaces")
def test_hosts_of_the_rig_have_clocks_of_their_own(rig):
    here = time.monotonic()
    assert clock_of(rig.hosts[0]) > here + 500_000 and clock_of(rig.hosts[1]) < here * 0.9


def test_the_killed_rank_is_named_whatever_the_clocks_of_the_hosts_show(hosts_start, rig):
    """Each host has its turns; HVD_SOAK=1: 200 kills, or HVD_SOAK_ROUNDS."""
    soak = os.environ.get("HVD_SOAK") == "1"
    seed = int(time.time())
    print("seed", seed)
    source = random.Random(seed)
    for number in range(int(os.environ.get("HVD_SOAK_ROUNDS", 200)) if soak else 8):
        host = rig.hosts[number % 2]
        job = hosts_start("-np", 4, "-H", "hvd1:2,hvd2:2", *worker("init", "sum", "sums"))
        for _ in range(4):
            assert job.process.stdout.readline().endswith(b":sum 10\n")
        time.sleep(source.uniform(0, 0.05))
        rank, pid, pid_there = source.choice(ranks_on(host))
        kill(pid)
        what = f"round {number}: rank {rank} of {host.name}"
        assert job.finish() == 137, (what, job.err)
        assert f"hvdrun: rank {rank} on host {host.name} (pid {pid_there}) failed: signal 9 (SIGKILL)" in job.err, (what, job.err)
        rig.nothing_left()


def test_an_exit_is_told_from_its_consequence_on_either_host(hosts_run, rig):
    for rank, host in ((1, "hvd1"), (3, "hvd2")):
        job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:2", *worker("init", "sum", f"{rank}:exit=5", "sums"))
        assert job.code == 5 and f"hvdrun: rank {rank} on host {host} (pid " in job.err, job.err
        rig.nothing_left()


def test_the_report_of_several_hosts_has_host_pid_end_traceback_and_others(hosts_run, rig):
    code = "import os; print('pid', os.getpid(), flush=True)\n" + TRACEBACK
    for hosts, name in (("hvd1:2,hvd2:2", "hvd1"), ("hvd1:1,hvd2:3", "hvd2")):  # rank 1 is on the one, then on the other
        job = hosts_run("-np", 4, "-H", hosts, sys.executable, "-c", code)
        assert job.code == 1, job.err
        pid = re.search(r"^\[1\]<stdout>:pid (\d+)$", job.out, re.MULTILINE).group(1)
        report = report_of(job)
        assert report.startswith(f"hvdrun: rank 1 on host {name} (pid {pid}) failed: exit code 1.\n"), job.err
        assert report.count("Traceback (most recent call last):") == 2, "with the exception it came from"
        assert "IndexError" in report and report.count("in deep") == 4 and "noise" not in report
        assert report.rstrip().endswith("3 other ranks were ended because of it.")
        rig.nothing_left()
