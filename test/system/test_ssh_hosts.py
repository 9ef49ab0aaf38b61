"""Jobs over several hosts with an sshd each."""

import sys

import pytest
from conftest import WORKERS, hvdrun_path
from host_rig import WHY_NOT, HostRig

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def worker(*steps):
    return [sys.executable, "-S", "-E", str(WORKERS / "foreign_worker.py"), *steps]


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    rig = HostRig(tmp_path_factory.mktemp("rig"), 4)
    yield rig
    rig.down()


@pytest.fixture
def hosts_run(run, rig):
    def go(*args, **kwargs):
        return run(*args, program=rig.on_head(hvdrun_path()), **kwargs)
    return go


def test_a_command_runs_on_every_host(hosts_run, rig):
    job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:1,hvd3:1", "hostname")
    assert job.code == 0, job.err
    assert sorted(job.out.split()) == ["[0]<stdout>:hvd1", "[1]<stdout>:hvd1", "[2]<stdout>:hvd2", "[3]<stdout>:hvd3"]
    rig.nothing_left()


def test_ranks_of_several_hosts_form_one_world(hosts_run, rig):
    job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:1,hvd3:1", *worker("init", "world", "sum", "shutdown"))
    assert job.code == 0, job.err
    assert job.out.count("sum 10") == 4
    rig.nothing_left()
