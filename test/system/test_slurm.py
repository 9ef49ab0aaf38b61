"""Jobs inside the allocations of a real Slurm, whose nodes are hosts with networks of their own. The rig has no cgroups."""

import json
import os
import re
import shutil
import sys
import tempfile
import time

import pytest
import slurm_rig
from conftest import REPO, environ_has, hvdrun_path, kill, parent_of, pids, read_proc, read_until, skip_without, wait_until, foreign_worker as worker
from conftest import worker as script
from host_rig import WHY_NOT, HostRig

WHY = WHY_NOT or slurm_rig.why_not()
pytestmark = pytest.mark.skipif(bool(WHY), reason=f"no Slurm: {WHY}")

NODES = 4


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    hosts = HostRig(tmp_path_factory.mktemp("hosts"), NODES)
    rig = slurm_rig.Slurm(tempfile.mkdtemp(prefix="hvd-slurm-"), NODES, hosts)  # unix sockets have short names
    yield rig
    rig.stop()
    hosts.down()
    shutil.rmtree(rig.folder, ignore_errors=True)


class Allocated:
    """Starts hvdrun in an allocation of its own."""

    def __init__(self, begin, slurm):
        self.begin, self.slurm = begin, slurm

    def __call__(self, flags, *args, env=None, **kwargs):
        program = self.slurm.on_head("salloc", "-Q", *flags.split(), hvdrun_path())
        return self.begin(*args, program=program, env=dict(self.slurm.environment, **(env or {})), **kwargs)


@pytest.fixture
def salloc_run(run, slurm):
    return Allocated(run, slurm)


@pytest.fixture
def salloc_start(start, slurm):
    yield Allocated(start, slurm)
    slurm.ask("scancel", "--user", "root")  # a salloc that is killed leaves its allocation


def agents(job):
    return [pid for pid in job.processes() if read_proc(pid, "cmdline").split(b"\0")[1:2] == [b"agent"]]


def workers(job):
    return [pid for pid in job.processes() if read_proc(pid, "comm") == b"sleep\n"]


def test_hosts_and_slots_are_those_of_the_allocation(salloc_run):
    job = salloc_run("-w hvd[1-2] -n3", "hostname")
    assert job.code == 0, job.err
    lines = sorted(job.out.splitlines())
    assert [line[:13] for line in lines] == ["[0]<stdout>:h", "[1]<stdout>:h", "[2]<stdout>:h"], job.out
    assert [line[12:] for line in lines] == ["hvd1", "hvd1", "hvd2"]
    assert "gives 3 slots (one per task) on 2 hosts: hvd1, hvd2\n" in job.err
    assert len(job.err.splitlines()) == 1, job.err
    job.nothing_left()


def test_np_is_a_cap_and_cpus_are_slots_where_no_tasks_were_asked_for(salloc_run):
    job = salloc_run("-N1 -c 2", "-np", 1, *worker("init", "world", "shutdown"))
    assert (job.code, job.out) == (0, "[0]<stdout>:world 0 of 1 local 0 of 1 cross 0 of 1\n"), job.err
    job = salloc_run("-w hvd[1-2] -n2", "-np", 3, "true")
    assert job.code == 2 and "3 processes" in job.err, job.err


def test_ranks_form_one_world_and_live_in_steps(salloc_start, slurm):
    job = salloc_start("-w hvd[1-2] -n4", *worker("init", "world", "sum", "sleep"))
    wait_until("agents on both hosts", lambda: len(agents(job)) == 4)  # with their wardens
    assert all(environ_has(pid, "SLURM_STEP_NUM_TASKS", "2") for pid in agents(job)), "one step has all of them"
    for pid in agents(job):
        kill(pid)
    assert job.finish() != 0
    job.nothing_left()


def test_the_key_of_a_step_is_in_sight_of_nobody_and_a_killed_hvdrun_leaves_nothing(salloc_start):
    job = salloc_start("-w hvd[1-2] -n2", "sleep", "1000")
    wait_until("workers", lambda: len(workers(job)) == 2)
    steps = [pid for pid in job.processes() if b"--nodelist=hvd1,hvd2" in read_proc(pid, "cmdline")]
    assert steps and len(agents(job)) == 4
    for pid in [*steps, *agents(job)]:
        for file in ("cmdline", "environ"):
            assert not re.search(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", read_proc(pid, file)), f"{file} of {pid}"
    (driver,) = [pid for pid in job.processes() if read_proc(pid, "cmdline").split(b"\0")[:2] == [hvdrun_path().encode(), b"sleep"]]
    kill(driver)
    job.finish()
    job.nothing_left()  # though hvdrun could tell nobody


@pytest.mark.parametrize("nodes", [2, NODES])
def test_agents_that_do_not_reach_hvdrun_get_steps_of_their_own(salloc_run, nodes):
    job = salloc_run(f"-w hvd[1-{nodes}] -n{nodes}", "hostname", env={"HVD_TEST_FAULT": "agent-does-not-connect"})
    assert job.code == 0, job.err
    assert sorted(line[12:] for line in job.out.splitlines()) == [f"hvd{n}" for n in range(1, nodes + 1)]
    assert job.err.count("gets a step of its own") == 1 and "a test wants it so" in job.err, job.err
    job.nothing_left()


@pytest.mark.parametrize("nodes", [2, NODES])
def test_digits_in_an_allocation_gives_the_numbers_of_one_machine(salloc_run, run, tmp_path, nodes):
    skip_without("torch")
    skip_without("sklearn")
    digits = [sys.executable, REPO / "examples" / "pytorch_digits.py", "--epochs", 2, "--check-hashes", "--log-losses"]
    job = salloc_run(f"-N{nodes} --ntasks-per-node=1", *digits, tmp_path / "several.json")
    assert job.code == 0, job.err
    alone = run("-np", nodes, *digits, tmp_path / "one.json")
    assert alone.code == 0, alone.err
    assert job.out == alone.out
    assert json.loads((tmp_path / "several.json").read_text()) == json.loads((tmp_path / "one.json").read_text())


# Rank 0 listens where all ranks were told that it does.
MEETING = """
import os, socket, time
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
place = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))
if rank == 0:
    # As PyTorch's store does: MASTER_ADDR may be an address of either family.
    with socket.create_server(('', place[1]), family=socket.AF_INET6, dualstack_ipv6=True,
                              backlog=size) as server:
        met = sorted(server.accept()[0].recv(9) for _ in range(size - 1))
        assert met == [b'%d' % other for other in range(1, size)], met
else:
    for _ in range(500):
        try:
            socket.create_connection(place, 60).sendall(b'%d' % rank)
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
print(*(os.environ[name] for name in 'RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_PORT'.split()))
"""


def test_the_names_of_torch_are_there_on_all_nodes(salloc_run):
    job = salloc_run("-w hvd[1-2] --ntasks-per-node=2", sys.executable, "-c", MEETING)
    assert job.code == 0, job.err
    told = sorted(line.split(":", 1)[1].split() for line in job.out.splitlines())
    assert [numbers[:4] for numbers in told] == [[str(r), str(r % 2), "4", "2"] for r in range(4)], job.out
    assert len({numbers[4] for numbers in told}) == 1, job.out


def test_a_batch_script_needs_no_flags(run, slurm, tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nexec {hvdrun_path()} hostname\n")
    job = run("-W", "-w", "hvd[1-2]", "-n2", "-o", tmp_path / "out", "--chdir", tmp_path, script, program=slurm.on_head("sbatch"),
              env=slurm.environment)
    out = (tmp_path / "out").read_text()
    assert job.code == 0, out + job.err
    assert sorted(line for line in out.splitlines() if line.startswith("[")) == ["[0]<stdout>:hvd1", "[1]<stdout>:hvd2"], out


def test_a_rank_that_fails_is_the_first_cause(salloc_run):
    job = salloc_run("-w hvd[1-2] -n2", "sh", "-c", "test $HOROVOD_RANK = 0 && exec sleep 1000; exit 7")
    assert job.code == 7, job.err
    assert "rank 1 on host hvd2" in job.err, job.err
    job.nothing_left()


def test_scancel_leaves_nothing_and_is_named(salloc_start, slurm):
    job = salloc_start("-w hvd[1-2] -n2 -J cancelled", "sleep", "1000")
    wait_until("workers", lambda: len(workers(job)) == 2)
    slurm.ask("scancel", "--name", "cancelled")
    assert job.finish() != 0
    assert "Slurm ended the step" in job.err, job.err  # why comes from Slurm, perhaps too late
    job.nothing_left()


def test_a_preempted_job_leaves_nothing_and_is_named(salloc_start, slurm):
    job = salloc_start("-w hvd[1-2] -n2", "sleep", "1000")
    wait_until("workers", lambda: len(workers(job)) == 2)
    slurm.ask("salloc", "-p", "urgent", "-w", "hvd2", "-N1", "--exclusive", "true")
    assert job.finish() != 0
    assert "Slurm ended the step: preemption" in job.err, job.err
    job.nothing_left()


@pytest.mark.skipif(os.environ.get("HVD_SOAK") != "1", reason="takes over a minute, the least time limit of Slurm; HVD_SOAK=1 runs it")
def test_the_time_limit_leaves_nothing_and_is_named(salloc_start):
    job = salloc_start("-w hvd[1-2] -n2 -t 1", "sleep", "1000")
    wait_until("workers", lambda: len(workers(job)) == 2)
    job.process.wait(180)  # Slurm looks at the limits twice a minute
    assert job.finish() != 0
    assert "Slurm ended the step: time limit" in job.err, job.err
    job.nothing_left()


def test_a_step_that_is_killed_ends_the_job(salloc_start, slurm):
    job = salloc_start("-w hvd[1-2] -n2", "sleep", "1000")
    wait_until("workers", lambda: len(workers(job)) == 2)
    (second,) = [pid for pid in agents(job) if environ_has(pid, "SLURMD_NODENAME", "hvd2")
                 and read_proc(parent_of(pid), "comm").startswith(b"slurmstepd")]
    kill(parent_of(second))
    assert job.finish() != 0
    assert "hvd2" in job.err, job.err
    job.nothing_left()


def test_a_node_whose_slurmd_is_killed_ends_the_job_when_slurm_gives_it_up(salloc_start, slurm):
    job = salloc_start("-w hvd[1-2] -n2", "sleep", "1000")
    wait_until("workers", lambda: len(workers(job)) == 2)
    (daemon,) = [pid for pid in pids() if read_proc(pid, "cmdline").split(b"\0")[:3] == [b"slurmd", b"-N", b"hvd2"]]
    kill(daemon)
    try:
        slurm.ask("scontrol", "update", "NodeName=hvd2", "State=DOWN", "Reason=test")
        assert job.finish() != 0
        assert "hvd2" in job.err, job.err
        job.nothing_left()
    finally:
        slurm.call(*slurm.on_node(2, "slurmd", "-N", "hvd2"))
        slurm.ask("scontrol", "update", "NodeName=hvd2", "State=RESUME")
        wait_until("the node", lambda: slurm.idle_nodes() == NODES)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
def test_mpirun_starts_the_ranks_in_an_allocation(salloc_run):
    job = salloc_run("-w hvd[1-2] -n4", "--mpi", "--network-interfaces", "eth0", *script("mpi_worker.py"))
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == [f"[{i}]<stdout>:rank {i} of 4" for i in range(4)], job.err
    job.nothing_left()


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
def test_a_rank_of_mpirun_that_dies_in_an_allocation_is_the_first_cause(salloc_run):
    job = salloc_run("-w hvd[1-2] -n2", "--mpi", "--network-interfaces", "eth0",
                     "sh", "-c", "test $HOROVOD_RANK = 0 && exec sleep 1000; exit 7")
    assert job.code == 7, job.err
    assert "rank 1 on host hvd2" in job.err, job.err
    job.nothing_left()


def test_hvdrun_as_tasks_of_srun_is_one_sentence(run, slurm):
    job = run("-N2", "-n2", hvdrun_path(), "true", program=slurm.on_head("srun"), env=slurm.environment)
    assert job.code == 2
    assert job.err.count("of the 2 that srun started, and each of them would start a job of its own") == 2, job.err


def test_one_task_of_srun_may_start_a_job_over_the_allocation(run, slurm):
    inner = ["srun", "-N1", "-n1", "--overlap", hvdrun_path(), "-np", "2", "--slots-per-host", "1", "hostname"]
    job = run("-Q", "-w", "hvd[1-2]", *inner, program=slurm.on_head("salloc"), env=slurm.environment)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:hvd1", "[1]<stdout>:hvd2"], job.err


def test_an_elastic_job_takes_its_hosts_from_the_allocation(salloc_run):
    job = salloc_run("-w hvd[1-2] -n2", "--elastic", "--min-np", 1, "hostname")
    assert job.code == 0, job.err
    assert sorted(job.out.split()) == ["[0]<stdout>:hvd1", "[1]<stdout>:hvd2"], job.err
    job.nothing_left()


def in_one_step(job, nodes):
    """The agents that run share a step of so many nodes."""
    steps = {re.search(rb"\0SLURM_STEP_ID=(\d+)", read_proc(pid, "environ")).group(1) for pid in agents(job)}
    return len(steps) == 1 and all(environ_has(pid, "SLURM_STEP_NUM_TASKS", str(nodes)) for pid in agents(job))


def test_agents_of_an_elastic_job_that_do_not_reach_hvdrun_get_steps_of_their_own(salloc_run):
    job = salloc_run("-w hvd[1-2] -n2", "--elastic", "--min-np", 2, "hostname", env={"HVD_TEST_FAULT": "agent-does-not-connect"})
    assert job.code == 0, job.err
    assert sorted(job.out.split()) == ["[0]<stdout>:hvd1", "[1]<stdout>:hvd2"], job.err
    assert job.err.count("gets a step of its own") == 1, job.err
    job.nothing_left()


# Says in which world it is, and waits for the end of the test.
WAITING = """
import os, sys, time
print('start', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""


def loses_a_node(salloc_start, slurm, folder, flags, *change):
    """An elastic job on two nodes, one of which the scheduler takes; the job goes on with the other one."""
    finish = folder / "finish"
    job = salloc_start(f"-w hvd[1-2] -n2 -J elastic {flags}", "--elastic", "--min-np", 1, "--elastic-restart", "in-job",
                       sys.executable, "-c", WAITING, finish, env={"HVD_TEST_ALLOCATION_MS": "200"})
    read_until(job.process.stdout, " of 2", 2)
    assert in_one_step(job, 2), "of the hosts that were there from the start"
    number = slurm.ask("squeue", "-h", "-n", "elastic", "-o", "%i").strip()
    slurm.ask("scontrol", "update", *(word.format(number) for word in change))
    read_until(job.process.stdout, "start 0 of 1")
    finish.write_text("")
    assert job.finish() == 0, job.err
    job.nothing_left()
    return job


def test_an_elastic_job_goes_on_when_its_allocation_shrinks(salloc_start, slurm, tmp_path):
    loses_a_node(salloc_start, slurm, tmp_path, "", "JobId={}", "NumNodes=1")


def test_an_elastic_job_goes_on_without_a_node_that_fails(salloc_start, slurm, tmp_path):
    try:
        loses_a_node(salloc_start, slurm, tmp_path, "--no-kill", "NodeName=hvd2", "State=DOWN", "Reason=test")
    finally:
        slurm.ask("scontrol", "update", "NodeName=hvd2", "State=RESUME")
        wait_until("the node", lambda: slurm.idle_nodes() == NODES)


def test_an_elastic_job_grows_with_its_allocation(salloc_start, slurm, tmp_path):
    finish = tmp_path / "finish"
    job = salloc_start("-w hvd1 -n1 -J grows", "--elastic", "--max-np", 2, "--elastic-restart", "in-job", sys.executable, "-c", WAITING,
                       finish, env={"HVD_TEST_ALLOCATION_MS": "200"})
    read_until(job.process.stdout, "start 0 of 1")
    number = slurm.ask("squeue", "-h", "-n", "grows", "-o", "%i").strip()
    more = f"cd {tmp_path} && scontrol update JobId=$SLURM_JOB_ID NumNodes=0"  # it leaves files where it runs
    slurm.ask("salloc", "-w", "hvd2", "-n1", f"--dependency=expand:{number}", "sh", "-c", more)
    slurm.ask("scontrol", "update", f"JobId={number}", "NumNodes=ALL")
    read_until(job.process.stdout, " of 2", 2)
    finish.write_text("")
    assert job.finish() == 0, job.err
    assert "there are slots for more ranks; all ranks are started again" in job.err, job.err
    job.nothing_left()


def test_the_batch_script_of_the_docs_requeues_itself(slurm, salloc_start, tmp_path):
    skip_without("torch")
    blocks = re.findall(r"```bash\n(.*?)```", (REPO / "docs" / "slurm.md").read_text(), re.S)
    (text,) = [block for block in blocks if "scontrol requeue" in block]
    for old, new in [("--nodes=2 --ntasks-per-node=4", "--nodes=2 --ntasks-per-node=1"), ("hvdrun", hvdrun_path()),
                     ("python train.py", f"{sys.executable} {REPO}/test/system/workers/requeued_worker.py {tmp_path}/checkpoint")]:
        assert old in text
        text = text.replace(old, new)
    script, out = tmp_path / "script", tmp_path / "out"
    script.write_text(text)

    def said():
        return out.read_text() if out.exists() else ""

    number = slurm.ask("sbatch", "--parsable", "-J", "requeued", "--open-mode=append", "-o", out, f"--chdir={tmp_path}", script).strip()
    wait_until("training", lambda: "trains from step 0" in said(), told=said)
    slurm.ask("scancel", "--batch", "--signal=USR1", number)
    wait_until("its next turn", lambda: "PENDING" in slurm.ask("squeue", "-h", "-j", number, "-o", "%T"), told=said)
    assert int((tmp_path / "checkpoint").read_text()) > 0
    # Slurm counts in whole seconds: the credential of a job that starts in the second in which it was requeued is revoked.
    time.sleep(1.1)

    def ended():
        slurm.ask("scontrol", "update", f"JobId={number}", "StartTime=now")  # else Slurm waits for two minutes
        return said().count("done\n") == 2

    wait_until("the end", ended, told=lambda: said() + slurm.ask("scontrol", "show", "job", number))
    assert re.search(r"trains from step [1-9]", said()), said()


def test_one_job_after_another_starts_and_ends(run, slurm):
    """HVD_SOAK=1: 100 launches."""
    count = 100 if os.environ.get("HVD_SOAK") == "1" else 4
    loop = f"for n in 1 2 3 4; do timeout 60 {hvdrun_path()} true || exit 1; done"
    for _ in range(count // 4):
        job = run("-Q", f"-N{NODES}", f"-n{NODES}", "sh", "-c", loop, program=slurm.on_head("salloc"), env=slurm.environment)
        assert job.code == 0, job.err
        job.nothing_left()


def test_two_jobs_share_an_allocation(run, slurm):
    both = f"{hvdrun_path()} hostname & {hvdrun_path()} hostname; wait"
    job = run("-Q", "-w", "hvd[1-2]", "-n2", "sh", "-c", both, program=slurm.on_head("salloc"), env=slurm.environment)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:hvd1"] * 2 + ["[1]<stdout>:hvd2"] * 2, job.err
