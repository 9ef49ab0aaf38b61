"""A plain torch.distributed script over several hosts: hvdrun says at which address and interface they reach each other."""

import sys

import pytest
from conftest import REPO, skip_without
from host_rig import WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaced hosts: {WHY_NOT}")
rig = rig_of(2)
HOSTS = "hvd1:1,hvd2:1"


def test_the_proven_interface_is_named(hosts_run):
    job = hosts_run("-np", 2, "-H", HOSTS, "sh", "-c", "echo $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME $NODE_RANK")
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:eth0 eth0 0", "[1]<stdout>:eth0 eth0 1"]
    job = hosts_run("-np", 2, "-H", HOSTS, "-x", "GLOO_SOCKET_IFNAME=lo", "sh", "-c", "echo $GLOO_SOCKET_IFNAME")
    assert set(job.out.split()) == {"[0]<stdout>:lo", "[1]<stdout>:lo"}


def test_an_unchanged_script_of_torch_distributed_runs(hosts_run):
    skip_without("torch")
    job = hosts_run("-np", 2, "-H", HOSTS, sys.executable, REPO / "examples" / "torch_distributed.py")
    assert job.code == 0, job.err
