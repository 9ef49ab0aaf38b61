"""Workers of stock Horovod on several hosts: the rendezvous of hvdrun --stock-horovod is where they reach it, and nowhere else."""

import re

import pytest
from conftest import worker
from host_rig import WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaced hosts: {WHY_NOT}")
rig = rig_of(2)


def stock(*steps):
    return worker("stock_worker.py", *steps)


def told(job):
    return sorted(line.split(":", 1)[1] for line in job.out.splitlines())


def meets_at(job):
    return re.findall(r"workers of stock Horovod meet at ([\d.]+):\d+:", job.err)


@pytest.mark.parametrize("hosts, size", [("hvd1:2,hvd2:2", 4), ("hvd1:2,localhost:1", 3), ("hvd2:2", 2)])
def test_stock_workers_of_several_hosts_meet(hosts_run, rig, hosts, size):
    job = hosts_run("--stock-horovod", "-np", size, "-H", hosts, *stock("init", "sum", "world", "shutdown"))
    assert job.code == 0, job.out + job.err
    assert told(job)[:size] == [f"sum {size * (size + 1) // 2}"] * size, job.out
    assert meets_at(job) == [rig.address(0)], job.err
    job.nothing_left()


def test_the_first_cause_of_stock_workers_on_two_hosts(hosts_run, rig):
    job = hosts_run("--stock-horovod", "-np", 4, "-H", "hvd1:2,hvd2:2", *stock("init", "sum", "2:exit=5", "lost", "sleep"))
    assert job.code == 5, job.out + job.err
    assert re.search(r"rank 2 on host hvd2 \(pid \d+\) failed: exit code 5", job.err), job.err
    rig.nothing_left()


def test_elastic_stock_workers_of_two_hosts_begin_again(hosts_run, rig):
    job = hosts_run("--stock-horovod", "--elastic", "-np", 2, "-H", "hvd1:1,hvd2:1",
                    *stock("init", "sum", "1:first=kill", "0:first=lost;place", "world"))
    assert job.code == 0, job.out + job.err
    assert told(job).count("sum 3") == 4 and "restart 1" in job.err
    assert meets_at(job) == [rig.address(0)], job.err
    rig.nothing_left()
