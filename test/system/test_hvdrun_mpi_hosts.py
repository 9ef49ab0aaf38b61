"""hvdrun --mpi on two hosts: mpirun reaches them its own way, and their agents take the places."""

import shutil
import sys

import pytest
from conftest import foreign_worker, worker
from host_rig import WHY_NOT, rig_of

pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaced hosts: {WHY_NOT}"),
              pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")]
rig = rig_of(3)


def over_two_hosts(rig, *more):
    return ["--mpi", "-np", 4, "-H", "hvd1:2,hvd2:2", "--network-interfaces", "eth0", "--rsh-agent",
            *more, sys.executable, "-S", "-E", worker("mpi_worker.py")[-1]]


def test_two_hosts_are_in_one_world(hosts_run, rig):
    # The ssh command that reaches the hosts for hvdrun's agents reaches them for mpirun's daemons,
    # too.
    job = hosts_run(*over_two_hosts(rig, f"ssh -F {rig.folder}/ssh_config"))
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == [f"[{i}]<stdout>:rank {i} of 4" for i in range(4)]
    rig.nothing_left()


def test_a_rank_that_dies_on_the_other_host_is_the_cause(hosts_run, rig):
    job = hosts_run(*over_two_hosts(rig, f"ssh -F {rig.folder}/ssh_config"), "die", "stay")
    assert job.code == 137, job.err
    assert "rank 1 on host hvd1" in job.err
    rig.nothing_left()


NUMBERS = "RANK LOCAL_RANK LOCAL_SIZE CROSS_RANK CROSS_SIZE".split()


@pytest.mark.parametrize("hosts, more", [(2, []), (3, ["--tree-radix", 2])], ids=["flat", "tree"])
def test_ranks_are_where_mpirun_puts_them(hosts_run, rig, hosts, more):
    """-map-by node: rank 1 is the first one on the second host."""
    size = 2 * hosts
    over = ["--mpi", "-np", size, "-H", ",".join(f"hvd{n + 1}:2" for n in range(hosts)), "--network-interfaces", "eth0", "--rsh-agent",
            f"ssh -F {rig.folder}/ssh_config", "--binding-args=-bind-to none -map-by node", *more]
    say = "echo " + " ".join(f"$HOROVOD_{name}" for name in NUMBERS) + " $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_RANK $(hostname)"
    job = hosts_run(*over, "sh", "-c", say)
    assert job.code == 0, job.err
    places = [(r, r // hosts, r % hosts) for r in range(size)]
    assert sorted(job.out.splitlines()) == [
        f"[{r}]<stdout>:{r} {local} 2 {cross} {hosts} {r} {local} hvd{cross + 1}" for r, local, cross in places], job.err
    job = hosts_run(*over, sys.executable, "-S", "-E", worker("mpi_worker.py")[-1])
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == [f"[{r}]<stdout>:rank {r} of {size}" for r in range(size)]
    job = hosts_run(*over, *foreign_worker("init", "world", "sum", "shutdown"))
    assert job.code == 0, job.err
    assert [line for line in sorted(job.out.splitlines()) if "world" in line] == [
        f"[{r}]<stdout>:world {r} of {size} local {local} of 2 cross {cross} of {hosts}" for r, local, cross in places], job.out
    rig.nothing_left()


def test_a_rank_that_dies_where_mpirun_put_it_is_the_cause(hosts_run, rig):
    job = hosts_run("--mpi", "-np", 4, "-H", "hvd1:2,hvd2:2", "--network-interfaces", "eth0", "--rsh-agent",
                    f"ssh -F {rig.folder}/ssh_config", "--binding-args=-bind-to none -map-by node",
                    "sh", "-c", "test $HOROVOD_RANK = 1 || exec sleep 1000; exit 7")
    assert job.code == 7, job.err
    assert "rank 1 on host hvd2" in job.err, job.err
    rig.nothing_left()


def test_a_host_that_mpirun_leaves_out_is_one_sentence(hosts_run, rig):
    (rig.folder / "ranks").write_text("".join(f"rank {r}=hvd1 slot=0\n" for r in range(2)))
    job = hosts_run("--mpi", "-np", 2, "-H", "hvd1:1,hvd2:1", "--network-interfaces", "eth0", "--rsh-agent",
                    f"ssh -F {rig.folder}/ssh_config", f"--binding-args=-rf {rig.folder}/ranks --oversubscribe", "true")
    assert job.code == 1, job.err
    assert "hvdrun: mpirun started no rank on host hvd2, on which this job has 1; leave that host out of -H" in job.err, job.err
    rig.nothing_left()
