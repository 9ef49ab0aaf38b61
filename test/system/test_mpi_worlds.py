"""Worlds that meet by MPI: hvd.init() under a real mpirun, on one host and on two that one machine plays, with
HOROVOD_CONTROLLER=mpi and with communicators of mpi4py. No key-value server, and no hvdrun but the agents."""

import os
import pathlib
import re
import shutil
import sys

import pytest
from conftest import REPO, has_modules, hvdrun_path, library, needs_the_build_tree, package_folder, read_some, foreign_worker as worker
from test_played_hosts import PYTHON
from sentences import NO_SERVER

RUNTIME = pathlib.Path(os.environ.get("HVD_RUNTIME", str(library("libhvd.so"))))
MPIRUN = shutil.which("mpirun")
try:
    from mpi4py import __file__ as mpi4py_file
except ImportError:
    mpi4py_file = None

if MPIRUN is None or not (RUNTIME.parent / "libhvd_mpi.so").exists():
    pytest.skip("needs mpirun and libhvd_mpi.so", allow_module_level=True)
MPICH = shutil.which("mpirun.mpich")
needs_mpich = pytest.mark.skipif(MPICH is None, reason="needs mpirun.mpich")
needs_mpi4py = pytest.mark.skipif(mpi4py_file is None, reason="mpi4py is not installed for this Python")

THREADS = pytest.mark.parametrize("one_thread", [0, 1], ids=["multiple", "funneled"])
HOSTS = pytest.mark.parametrize("hosts", [1, 2])
# Variables that a launcher or an outer job may have left in our own environment.
FOREIGN = re.compile("^(HOROVOD_|HVD_AGENT|HVD_SLOT|HVD_JOB|OMPI_|PMIX_|PMI_|SLURM_|MPI_LOCAL)")

# The program that mpirun starts in place of ssh: a daemon here, with files of its own, as another host
# would have.
PLAYED_HOST = """#!/bin/sh
TMPDIR={folder}/$1
export TMPDIR
mkdir -p "$TMPDIR"
shift
exec /bin/sh -c "$*"
"""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if FOREIGN.match(name):
            monkeypatch.delenv(name)
    paths = [str(package_folder())]
    if mpi4py_file:
        paths.append(str(pathlib.Path(mpi4py_file).parents[1]))
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    monkeypatch.setenv("HVD_RUNTIME", str(RUNTIME))
    monkeypatch.setenv("HVD_HVDRUN", hvdrun_path())
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # Open MPI does


@pytest.fixture
def mpirun(start, tmp_path):
    """mpirun(ranks, *steps): the finished job; `hosts` take the ranks in turns of ranks / hosts. until=(count, text):
    mpirun is ended once that was said so often, because it would not end."""
    def begin(ranks, *steps, hosts=1, options=(), env=None, until=None, program=None):
        command = [MPIRUN, "-np", str(ranks), "--oversubscribe", "--bind-to", "none"]
        command += ["--mca", "mpi_yield_when_idle", "1"]
        if hosts > 1:
            agent = tmp_path / "played_host"
            agent.write_text(PLAYED_HOST.format(folder=tmp_path))
            agent.chmod(0o755)
            names = ",".join("host%s:%d" % (letter, ranks // hosts) for letter in "abcdefgh"[:hosts])
            command += ["-H", names, "--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "self,tcp",
                        "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]
        command += [*options, *(program or worker(*steps))]
        job = start(*command[1:], program=command[:1], env=env)
        seen = ""
        while until and seen.count(until[1]) < until[0]:
            more = read_some(job.process.stdout).decode()
            assert more, seen
            seen += more
        if until:
            job.process.terminate()
        job.code = job.finish()
        job.out = seen + job.out
        job.said = sorted(line for line in job.out.splitlines() if line)
        return job

    return begin


def world_lines(hosts):
    """The words of four ranks, in turns of 4 / hosts."""
    here = 4 // hosts
    return ["world %d of 4 local %d of %d cross %d of %d" % (rank, rank % here, here, rank // here, hosts)
            for rank in range(4)]


MPI = {"HOROVOD_CONTROLLER": "mpi"}
MATRIX = REPO / "test" / "python" / "workers" / "matrix.py"


# ---- as mpirun says


def test_a_world_over_mpi_is_not_tuned_and_says_so(mpirun):
    """One sentence of rank 0; the ranks work as ever."""
    job = mpirun(2, "init", "sum", "shutdown", env=dict(MPI, HOROVOD_AUTOTUNE="1"))
    assert job.code == 0 and job.said == ["sum 3"] * 2, job.out + job.err
    told = [line for line in (job.out + job.err).splitlines() if "HOROVOD_AUTOTUNE has no effect" in line]
    assert len(told) == 1 and "'hvdrun --autotune -np 2 python train.py' tunes a job" in told[0], job.err


@THREADS
@HOSTS
def test_ranks_meet_by_mpi(mpirun, hosts, one_thread):
    env = dict(MPI, HOROVOD_MPI_THREADS_DISABLE=str(one_thread))
    job = mpirun(4, *["init", "world", "facts", "sum", "large", "shutdown"] * 2, hosts=hosts, env=env)
    assert job.code == 0, job.out + job.err
    facts = "mpi True gloo False threads %s" % (not one_thread)
    assert job.said == sorted((world_lines(hosts) + [facts, "sum 10", "large"] * 4) * 2), job.out + job.err
    job.nothing_left()


def test_mpirun_over_several_hosts_needs_no_server(mpirun):
    job = mpirun(4, "init", "world", "facts", "sum", "large", hosts=2)
    assert job.code == 0, job.out + job.err
    assert job.said == sorted(world_lines(2) + ["mpi True gloo False threads True", "sum 10", "large"] * 4)
    job.nothing_left()


@pytest.mark.long  # of 1 to 4 ranks with both kinds of threads, contract_mpi verifies the sums
@THREADS
@pytest.mark.parametrize("ranks", [2, 4])
@needs_the_build_tree("a wheel has no hvd_perf")
def test_hvd_perf_verifies_every_element_over_mpi(mpirun, ranks, one_thread):
    program = [str(pathlib.Path(hvdrun_path()).with_name("hvd_perf")), "--verify", "--loops", "1", "--registered", "--sizes", "8,262144"]
    job = mpirun(ranks, hosts=2, env=dict(MPI, HOROVOD_MPI_THREADS_DISABLE=str(one_thread)), program=program)
    assert job.code == 0, job.out + job.err
    figures = [line for line in job.said if line.startswith("allreduce")]
    assert len(figures) == 4 and all(line.endswith(" verified") for line in figures), job.out + job.err
    job.nothing_left()


@pytest.mark.parametrize("ranks", [1, 2])
def test_mpi_is_initialised_beside_a_world_that_does_not_need_it(mpirun, ranks):
    """Twice, and finalised once: mpirun would complain of a rank that ends without."""
    job = mpirun(ranks, *["init", "facts", "sum", "shutdown"] * 2)
    assert job.code == 0, job.out + job.err
    assert job.said == ["mpi True gloo False threads True"] * 2 * ranks + [f"sum {ranks * (ranks + 1) // 2}"] * 2 * ranks
    job.nothing_left()


def test_gloo_keeps_mpi_out_of_one_host(mpirun):
    job = mpirun(2, "init", "facts", "sum", env={"HOROVOD_CONTROLLER": "gloo"})
    assert job.code == 0, job.out + job.err
    assert job.said == ["mpi False gloo False threads None"] * 2 + ["sum 3"] * 2, job.out + job.err


def test_one_thread_makes_all_calls_of_an_mpi_beside_the_world(mpirun):
    job = mpirun(2, "init", "facts", "sum", env={"HOROVOD_MPI_THREADS_DISABLE": "1"})
    assert job.code == 0, job.out + job.err
    assert job.said == ["mpi True gloo False threads False"] * 2 + ["sum 3"] * 2, job.out + job.err


# What Horovod's README shows; then what a script with an MPI of its own does, and one that leaves MPI to hvd.init().
BESIDE = {
    "after": "hvd.init(); assert hvd.mpi_threads_supported(); from mpi4py import MPI",
    "before": "from mpi4py import MPI; hvd.init(); assert hvd.mpi_threads_supported()",
    "left to us": "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; hvd.init(); assert hvd.mpi_enabled()",
    "single": "import mpi4py; mpi4py.rc.threads = False; from mpi4py import MPI; hvd.init(); "
              "assert hvd.mpi_enabled() and not hvd.mpi_threads_supported()",
}
IN_ONE_WORLD = ("assert hvd.size() == MPI.COMM_WORLD.Get_size() == 2; MPI.COMM_WORLD.barrier(); "
                "total = MPI.COMM_WORLD.allreduce(hvd.rank() + 1); import sys; "
                "sys.stdout.write(f'{hvd.rank() - MPI.COMM_WORLD.rank} {total}\\n'); sys.stdout.flush()")


@needs_mpi4py
@pytest.mark.parametrize("under", ["mpirun", "hvdrun"])
@pytest.mark.parametrize("order", BESIDE)
@pytest.mark.parametrize("end", ["", "MPI.Finalize(); hvd.barrier(); hvd.rank()"])
def test_mpi4py_beside_us(mpirun, run, under, order, end):
    script = "import horovod.numpy as hvd; " + "; ".join(filter(None, [BESIDE[order], IN_ONE_WORLD, end]))
    if under == "mpirun":
        job = mpirun(2, program=[PYTHON, "-c", script])
    else:
        job = run("--mpi", "-np", 2, "--mpi-args=--oversubscribe", PYTHON, "-c", script)
    assert job.code == 0, job.out + job.err
    assert [line.split(":")[-1] for line in job.out.splitlines()] == ["0 3"] * 2, job.out + job.err
    assert job.err == "" or under == "mpirun", job.err
    job.nothing_left()


@pytest.mark.parametrize("says, env", [("was built without MPI", {"HVD_RUNTIME": "{alone}"}),
                                       ("HOROVOD_CONTROLLER is gloo", {"HOROVOD_CONTROLLER": "gloo"}),
                                       ("MPI did not start these ranks", None)])
def test_without_mpi_one_sentence_says_how_to_get_it(mpirun, run, tmp_path, says, env):
    alone = tmp_path / "lib" / "libhvd.so"  # without its neighbours
    alone.parent.mkdir()
    shutil.copy(RUNTIME, alone)
    script = ("import horovod.numpy as hvd; hvd.init(); assert not hvd.mpi_enabled()\n"
              "try: hvd.mpi_threads_supported()\nexcept ValueError as error: print(error, flush=True)")
    if env is None:
        job = run("-c", script, program=[PYTHON])
    else:
        job = mpirun(2, program=[PYTHON, "-c", script], env={name: value.format(alone=alone) for name, value in env.items()})
    assert job.code == 0 and job.out.count("MPI is not in use, because ") == job.out.count(says) > 0, job.out + job.err


def test_many_worlds_one_after_the_other(mpirun):
    """The last words of a world never reach the next one."""
    job = mpirun(4, *["init", "sum", "shutdown"] * 10, hosts=2)
    assert job.code == 0, job.out + job.err
    assert job.said == ["sum 10"] * 40
    job.nothing_left()


def test_a_world_of_one_needs_no_agent(mpirun):
    job = mpirun(1, "init", "facts", "sum", env=dict(MPI, HVD_HVDRUN="/no/hvdrun"))
    assert job.code == 0 and job.said == ["mpi True gloo False threads True", "sum 1"], job.out + job.err


# ---- communicators of mpi4py, and lists of ranks


@needs_mpi4py
@HOSTS
@pytest.mark.parametrize("comm", ["world", "dup"])
def test_a_communicator_of_all(mpirun, hosts, comm):
    job = mpirun(4, *["init=" + comm, "world", "sum", "large", "shutdown"] * 2, hosts=hosts)
    assert job.code == 0, job.out + job.err
    assert job.said == sorted((world_lines(hosts) + ["sum 10", "large"] * 4) * 2)
    job.nothing_left()


@needs_mpi4py
@HOSTS
def test_a_communicator_of_some(mpirun, hosts):
    job = mpirun(4, "init=parity", "world", "sum", "large", hosts=hosts)
    assert job.code == 0, job.out + job.err
    halves = ["world %d of 2 local %d of %d cross %d of %d" % (
        rank, rank if hosts == 1 else 0, 3 - hosts, 0 if hosts == 1 else rank, hosts) for rank in (0, 1)] * 2
    assert job.said == sorted(halves + ["sum 3", "large"] * 4)
    job.nothing_left()


@needs_mpi4py
def test_a_communicator_says_the_order(mpirun):
    job = mpirun(2, "init=reverse", "0:world", "sum")
    assert job.code == 0, job.out + job.err
    assert job.said == ["sum 3", "sum 3", "world 1 of 2 local 1 of 2 cross 0 of 1"]


@needs_mpi4py
def test_a_communicator_of_one(mpirun):
    job = mpirun(2, "init=self", "world", "sum")
    assert job.code == 0, job.out + job.err
    assert job.said == ["sum 1"] * 2 + ["world 0 of 1 local 0 of 1 cross 0 of 1"] * 2


@needs_mpi4py
def test_mpi4py_without_a_launcher(run):
    command = worker("init=world", "facts", "sum")
    job = run(*command[1:], program=command[:1], env={"HVD_HVDRUN": "/no/hvdrun"})
    assert job.code == 0, job.out + job.err
    assert job.out.splitlines() == ["mpi True gloo False threads True", "sum 1"]


@needs_mpi4py
def test_null_is_one_sentence(mpirun):
    job = mpirun(2, "init=null")
    assert job.code == 3
    assert job.out.count("is MPI_COMM_NULL, because this process is not in it") == 2, job.out


@needs_mpi4py
def test_another_communicator_after_memory_was_shared(mpirun):
    """All ranks are told, not only those that share memory; the old ranks may meet again."""
    job = mpirun(4, "init=world", "large", "shutdown", "init=half")
    assert job.code == 3, job.out + job.err
    assert len(re.findall(r"failed: .*rank [01] over MPI shares memory with the ranks of an earlier hvd.init\(\)",
                          job.out)) >= 1, job.out
    job.nothing_left()


@needs_mpi4py
def test_another_communicator_while_no_memory_is_shared(mpirun):
    job = mpirun(4, "init=world", "shutdown", "init=half", "sum", "shutdown", "init=world", "shutdown")
    assert job.code == 0 and job.said == ["sum 3"] * 4, job.out + job.err
    job.nothing_left()


@HOSTS
def test_lists_of_ranks(mpirun, hosts):
    job = mpirun(4, "0:init=2+0", "2:init=0+2", "1:init=1+3", "3:init=1+3", "facts", "sum", "large", hosts=hosts)
    assert job.code == 0, job.out + job.err
    assert job.said == sorted(["mpi True gloo False threads True", "sum 3", "large"] * 4)
    job.nothing_left()


def test_the_list_of_all_ranks_is_no_list(mpirun):
    job = mpirun(2, "init=0+1", "facts", "sum")
    assert job.code == 0 and job.said == ["mpi True gloo False threads True"] * 2 + ["sum 3"] * 2, job.out + job.err


@pytest.mark.parametrize("ranks, says", [("1", "rank 0 of 2 was given a world without this rank"),
                                         ("0+7", "with rank 7, which there is not"),
                                         ("0+0", "a world with rank 0 twice")])
def test_a_list_that_cannot_be_is_one_sentence(mpirun, ranks, says):
    job = mpirun(2, "init=" + ranks)
    assert job.code == 3 and says in job.out, job.out + job.err


# ---- process sets of communicators

SETS = """
from mpi4py import MPI
import horovod.numpy as hvd, numpy, sys
w = MPI.COMM_WORLD
say = lambda *what: sys.stdout.write(" ".join(map(str, what)) + "\\n")  # whole lines
split = lambda color: w.Split(color, w.rank)
{made}
try:
    hvd.init({world}process_sets=sets)
except ValueError as error:
    say("refused:", error)
    sets = []
for each in sets:
    text = str(each).split("<")[0]
    total = hvd.allreduce(numpy.ones(1) * w.rank, op=hvd.Sum, process_set=each)[0] if each.included() else None
    say(w.rank, text, total)
"""


def sets_of(mpirun, made, world="w, ", ranks=4):
    job = mpirun(ranks, program=[PYTHON, "-c", SETS.format(made=made, world=world)])
    assert job.code == 0, job.out + job.err
    return job.said


@needs_mpi4py
@pytest.mark.parametrize("world", ["w, ", ""])
def test_each_rank_gives_the_communicator_that_it_is_in(mpirun, world):
    said = sets_of(mpirun, "sets = [hvd.ProcessSet(split(w.rank % 2))]", world)
    assert said == [f"{rank} ProcessSet(process_set_id={1 + rank % 2}, ranks=[{rank % 2}, {2 + rank % 2}], mpi_comm= {2 + 2 * (rank % 2)}.0"
                    for rank in range(4)]


@needs_mpi4py
def test_the_ranks_of_a_set_are_those_of_the_world_that_was_given(mpirun):
    """The world has the ranks backwards."""
    said = sets_of(mpirun, "sets = [hvd.ProcessSet(split(w.rank // 2))]", "w.Split(0, -w.rank), ")
    assert said == [f"{rank} ProcessSet(process_set_id={2 - rank // 2}, ranks={[[2, 3], [0, 1]][rank // 2]}, mpi_comm= {[1, 5][rank // 2]}.0"
                    for rank in range(4)]


@needs_mpi4py
def test_ranks_outside_give_the_null_communicator(mpirun):
    made = "sets = [hvd.ProcessSet(split(0 if w.rank > 1 else MPI.UNDEFINED)), hvd.ProcessSet([0, 3])]"
    said = sets_of(mpirun, made)
    assert [line for line in said if "ranks=[2, 3]" in line] == [
        f"{rank} ProcessSet(process_set_id=1, ranks=[2, 3], mpi_comm= {5.0 if rank > 1 else None}" for rank in range(4)]
    assert [line for line in said if "ranks=[0, 3]" in line] == [
        f"{rank} ProcessSet(process_set_id=2, ranks=[0, 3], mpi_comm=None) {3.0 if rank in (0, 3) else None}" for rank in range(4)]


@needs_mpi4py
@pytest.mark.parametrize("made, says", [
    ("mine = split(w.rank % 2); sets = [hvd.ProcessSet(mine), hvd.ProcessSet(mine.Dup())]",
     "got the ranks [0, 2] twice, the second time at position 1"),
    ("sets = [hvd.ProcessSet(split(w.rank % 2)), hvd.ProcessSet([0, 2])]", "got the ranks [0, 2] twice, the second time at position 1"),
    ("whole, part = split(0), split(w.rank // 2); sets = [hvd.ProcessSet(whole if w.rank == 0 else part)]",
     "has the ranks [0, 1, 2, 3] on rank 0"),
    ("sets = [hvd.ProcessSet(split(MPI.UNDEFINED))]", "is MPI.COMM_NULL on every rank"),
])
def test_sets_that_cannot_be_are_refused_on_all_ranks(mpirun, made, says):
    said = sets_of(mpirun, made)
    assert len(said) == 4 and all(line.startswith("refused: ") and says in line for line in said), said


@needs_mpi4py
def test_a_set_of_a_communicator_is_added_later(mpirun):
    script = """
from mpi4py import MPI
import horovod.numpy as hvd, numpy
import sys
w = MPI.COMM_WORLD
hvd.init(process_sets="dynamic")
mine = hvd.add_process_set(hvd.ProcessSet(w.Split(w.rank % 2, w.rank)))
total = hvd.allreduce(numpy.ones(1) * w.rank, op=hvd.Sum, process_set=mine)[0]
sys.stdout.write(f"{mine.process_set_id} {mine.ranks} {total}\\n")
"""
    job = mpirun(4, program=[PYTHON, "-c", script])
    assert job.code == 0 and job.said == ["1 [0, 2] 2.0"] * 2 + ["2 [1, 3] 4.0"] * 2, job.out + job.err


@needs_mpi4py
def test_a_set_of_a_communicator_needs_ranks_of_mpi(run):
    script = ("from mpi4py import MPI; import horovod.numpy as hvd\n"
              "try: hvd.init(process_sets=[hvd.ProcessSet(MPI.COMM_WORLD)])\n"
              "except ValueError as error: print(error)")
    job = run("-np", 2, PYTHON, "-W", "ignore", "-c", script)
    assert job.code == 0 and job.out.count("needs ranks that MPI started, but the world of mpi4py has 1 ranks") == 2, job.out + job.err


# ---- the end


@THREADS
@pytest.mark.parametrize("mpi_of", ["ours", pytest.param("mpi4py", marks=needs_mpi4py)])
def test_a_process_that_just_ends_leaves_in_peace(mpirun, one_thread, mpi_of):
    """Also one that has forked a child in the meantime, whose end is not MPI's (mpi4py does finalize in a child)."""
    steps = ["init", "child", "large", "sum"] if mpi_of == "ours" else ["init=world", "large", "sum"]
    job = mpirun(4, *steps, hosts=2, env={"HOROVOD_MPI_THREADS_DISABLE": str(one_thread)})
    assert job.code == 0, job.out + job.err
    assert job.said == sorted((["child 0"] if mpi_of == "ours" else []) * 4 + ["large", "sum 10"] * 4)
    job.nothing_left()


SLOW = 'test "$OMPI_COMM_WORLD_RANK" != 1 || export HVD_TEST_LEAVE_MS=300; exec "$@"'


@THREADS
@needs_the_build_tree("it knows no faults that tests make")
def test_a_rank_that_leaves_slowly_takes_the_leave_of_rank_0_for_no_failure(mpirun, one_thread):
    """Rank 1 leads work with the other host (so with this seed), and rank 0 sees it leave before it says goodbye."""
    env = dict(MPI, HOROVOD_MPI_THREADS_DISABLE=str(one_thread), HOROVOD_DYNAMIC_PROCESS_SETS="1")
    job = mpirun(4, hosts=2, env=env, program=["sh", "-c", SLOW, "slow", PYTHON, MATRIX, "2", "3"])
    assert job.code == 0 and len([line for line in job.said if line == "ok"]) == 4, job.out + job.err
    job.nothing_left()


@needs_mpi4py
@HOSTS
def test_finalizing_mpi_leaves_the_world_first(mpirun, hosts):
    job = mpirun(4, "init=world", "sum", "finalize", hosts=hosts)
    assert job.code == 0, job.out + job.err
    assert job.said == ["initialized False"] * 4 + ["sum 10"] * 4
    job.nothing_left()


@HOSTS
def test_a_rank_that_ends_with_an_error_holds_up_nobody(mpirun, hosts):
    """MPI_Finalize would wait for the others, and they for this rank."""
    job = mpirun(4, "init", "sum", "3:exit=5", "sums", hosts=hosts, env=MPI)
    assert job.code != 0
    job.nothing_left()


@THREADS
@HOSTS
def test_a_rank_that_is_killed_ends_the_job(mpirun, hosts, one_thread):
    env = dict(MPI, HOROVOD_MPI_THREADS_DISABLE=str(one_thread))
    job = mpirun(4, "init", "sum", "1:kill", "sums", hosts=hosts, env=env)
    assert job.code != 0, job.out + job.err
    job.nothing_left()


@THREADS
@HOSTS
def test_survivors_name_the_rank_and_cannot_meet_again(mpirun, hosts, one_thread):
    # With this option mpirun leaves the others alone, as a scheduler may; and it does not end by itself.
    env = dict(MPI, HOROVOD_MPI_THREADS_DISABLE=str(one_thread))
    steps = ["init", "1:kill", "survive", "shutdown", "init"]
    job = mpirun(4, *steps, hosts=hosts, options=["--enable-recovery"], env=env, until=(3, "initialization failed: "))
    why = r"rank 1 on host \S+ \(pid \d+\) died in the middle of the job, without hvd.shutdown\(\)"
    assert len(re.findall("survived: .*" + why, job.out)) == 3, job.out + job.err
    again = "failed: .*ranks over MPI cannot form a world again, because .*; start the job again"
    assert len(re.findall(again, job.out)) == 3, job.out + job.err
    job.nothing_left()


def test_what_is_built_is_said(run):
    job = run("--check-build")
    assert job.code == 0 and job.out.count("    [X] MPI\n") == 2, job.out
    built = "from horovod.common import util; print(util.mpi_built())"
    assert run("-c", built, program=[sys.executable]).out == "True\n"


# ---- what cannot be


def test_several_hosts_without_mpi_and_server_are_one_sentence(mpirun):
    job = mpirun(2, "init", hosts=2, env={"HOROVOD_CONTROLLER": "gloo"})
    assert job.code == 3
    assert NO_SERVER in job.out


def test_a_build_without_mpi_is_one_sentence(mpirun, tmp_path):
    shutil.copy(RUNTIME, tmp_path / "libhvd.so")
    job = mpirun(2, "init", hosts=2, env={"HVD_RUNTIME": str(tmp_path / "libhvd.so")})
    assert job.code == 3
    why = "the world spans several hosts, and .* name no key-value server .* this hvdrun was built without MPI"
    assert re.search(why, job.out), job.out + job.err


def test_a_host_without_an_agent_is_named_on_all_hosts(mpirun):
    nowhere = "set=HVD_HVDRUN:/no/hvdrun"
    job = mpirun(4, "2:" + nowhere, "3:" + nowhere, "init", hosts=2, options=["--enable-recovery"],
                 until=(4, "initialization failed: "))
    why = "mpirun started this rank, and /no/hvdrun, which is to be the agent of this host, cannot be run"
    assert job.out.count("failed: Horovod initialization failed: rank 2 cannot join: " + why) == 2, job.out
    assert job.out.count("failed: Horovod initialization failed: " + why) == 2, job.out
    job.nothing_left()


def test_singletons_of_another_mpi_are_refused(run):
    """The view of ranks under an mpirun of another MPI: each sees itself alone."""
    command = worker("init")
    env = dict(MPI, PMI_RANK="0", PMI_SIZE="4", MPI_LOCALRANKID="0", MPI_LOCALNRANKS="4")
    job = run(*command[1:], program=command[:1], env=env)
    assert job.code == 3
    why = "the launcher started 4 ranks, but Open MPI, which libhvd_mpi.so was built with, sees 1"
    assert why in job.out, job.err


@needs_mpich
@pytest.mark.parametrize("env", [{}, {"HOROVOD_CPU_OPERATIONS": "gloo"}], ids=["", "gloo"])
def test_ranks_of_mpichs_mpirun_meet_without_mpi(start, env):
    job = start("-np", "2", *worker("init", "world", "facts", "sum", "large", "shutdown"), program=[MPICH], env=env)
    assert job.finish() == 0, job.out + job.err
    lines = ["world %d of 2 local %d of 2 cross 0 of 1" % (rank, rank) for rank in range(2)]
    lines += ["mpi False gloo False threads None", "sum 3", "large"] * 2
    # Hydra passes on what comes, also half a line.
    assert sorted(job.out.replace("\n", "")) == sorted("".join(lines)), job.out + job.err
    job.nothing_left()


@needs_mpich
@pytest.mark.parametrize("name", ["HOROVOD_CPU_OPERATIONS", "HOROVOD_CONTROLLER"])
def test_mpi_that_is_asked_for_under_mpichs_mpirun_is_one_sentence(start, name):
    """The plug-in is Open MPI's; nobody waits for anybody."""
    job = start("-np", "2", *worker("init"), program=[MPICH], env={name: "MPI"})
    assert job.finish() == 3, job.out + job.err
    why = "the launcher started 2 ranks, but Open MPI, which libhvd_mpi.so was built with, sees 1"
    assert job.out.count(why) >= 1 and "Traceback" not in job.out + job.err, job.out + job.err
    job.nothing_left()


@needs_mpi4py
def test_hvdrun_and_a_communicator_are_one_sentence(run):
    job = run("-np", 2, *worker("init=world"))
    assert job.code == 3
    assert "but hvdrun started this rank, and MPI knows nothing of the others" in job.out


# ---- everything


@pytest.mark.skipif(not has_modules("numpy"), reason="the worker needs NumPy")
@THREADS
def test_the_matrix_of_operations_types_and_sets(mpirun, one_thread):
    """test/python/workers/matrix.py over two hosts: drawn from a seed, checked against NumPy."""
    env = dict(MPI, HOROVOD_MPI_THREADS_DISABLE=str(one_thread), HOROVOD_DYNAMIC_PROCESS_SETS="1")
    job = mpirun(4, hosts=2, env=env, program=[PYTHON, MATRIX, "40", "60"])
    assert job.code == 0 and len([line for line in job.said if line == "ok"]) == 4, job.out + job.err
    job.nothing_left()
