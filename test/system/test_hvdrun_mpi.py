"""hvdrun --mpi: a real mpirun (Open MPI, and MPICH where Debian's is installed) starts the ranks in its world, and output,
ends and causes are hvdrun's."""

import json
import os
import pathlib
import shutil
import signal
import sys

import pytest
from conftest import WORKERS, children_of, read_proc, read_until, skip_without, wait_until, worker

MPICH = shutil.which("mpirun.mpich")
needs_openmpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun")
MPIS = [pytest.param("openmpi", marks=needs_openmpi),
        pytest.param("mpich", marks=pytest.mark.skipif(MPICH is None, reason="needs mpirun.mpich"))]


@pytest.fixture(params=MPIS)
def mpi(request, monkeypatch, tmp_path):
    """Which MPI is first on PATH."""
    if request.param == "mpich":
        put_mpirun(monkeypatch, tmp_path, f'exec {MPICH} "$@"')
    return request.param


def put_program(monkeypatch, folder, name, script):
    program = folder / "bin" / name
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def put_mpirun(monkeypatch, folder, script):
    put_program(monkeypatch, folder, "mpirun", script)


def rank(*steps):
    return [sys.executable, "-S", "-E", worker("mpi_worker.py")[-1], *steps]


def launcher_of(job):
    """The mpirun that hvdrun started."""
    found = [pid for pid in children_of(job.pid) if b"mpirun" in read_proc(pid, "cmdline")]
    return found[0] if found else None


def test_ranks_are_in_the_world_of_mpirun(run, mpi):
    job = run("--mpi", "-np", 2, *rank(mpi))
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == [f"[{i}]<stdout>:rank {i} of 2" for i in range(2)]
    assert job.err == ""
    job.nothing_left()


def test_ranks_add_up_whatever_mpi_started_them(run, mpi):
    """Asked for MPI's operations, too: hvdrun's ranks have its own."""
    script = ("import numpy, horovod.numpy as hvd; hvd.init(); "
              "print(hvd.rank(), hvd.size(), hvd.allreduce(numpy.arange(3.0) + hvd.rank(), op=hvd.Sum).tolist())")
    job = run("--mpi", "-np", 2, sys.executable, "-c", script, env={"HOROVOD_CPU_OPERATIONS": "MPI"})
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == [f"[{rank}]<stdout>:{rank} 2 [1.0, 3.0, 5.0]" for rank in range(2)]
    job.nothing_left()


@needs_openmpi
def test_mpi4py_is_in_the_same_world(run):
    skip_without("mpi4py")
    script = ("from mpi4py import MPI; import horovod.numpy as hvd; w = MPI.COMM_WORLD; hvd.init(); "
              "assert (w.rank, w.size) == (hvd.rank(), hvd.size()); print(w.allreduce(w.rank))")
    for init in ("hvd.init()", "hvd.init(comm=w.Dup())"):
        job = run("--mpi", "-np", 2, sys.executable, "-c", script.replace("hvd.init()", init))
        assert (job.code, sorted(job.out.splitlines())) == (0, ["[0]<stdout>:1", "[1]<stdout>:1"]), job.err


@needs_openmpi
@pytest.mark.parametrize("init, total", [("hvd.init(w.Split(w.rank % 2, w.rank))", {0: 2, 1: 4}), ("hvd.init([w.rank % 2, w.rank % 2 + 2])", {0: 2, 1: 4})])
def test_a_communicator_of_some_is_the_world(run, init, total):
    skip_without("mpi4py")
    script = ("from mpi4py import MPI; import numpy, horovod.numpy as hvd; w = MPI.COMM_WORLD; " + init +
              "; print(hvd.rank(), hvd.size(), int(hvd.allreduce(numpy.ones(1) * w.rank, op=hvd.Sum)[0]), hvd.mpi_enabled())")
    job = run("--mpi", "-np", 4, "-H", "localhost:4", "--mpi-args=--oversubscribe", sys.executable, "-c", script)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == [f"[{rank}]<stdout>:{rank // 2} 2 {total[rank % 2]} True" for rank in range(4)]
    job.nothing_left()


@needs_openmpi
def test_stdin_is_rank_0s_and_variables_come_from_both_sides(run, tmp_path):
    (tmp_path / "in").write_text("typed\n")
    script = 'read line; echo "$line $THIS $THAT $NCCL_IB_DISABLE"'
    with open(tmp_path / "in") as stdin:
        job = run("--mpi", "-np", 2, "--tcp", "-x", "THIS=a b", "--mpi-args=-x THAT='c d'", "sh", "-c", script, stdin=stdin)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:typed a b c d 1", "[1]<stdout>: a b c d 1"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_ranks_are_bound_as_mpirun_was_told(run, mpi):
    script = "import os; print(len(os.sched_getaffinity(0)))"
    job = run("--mpi", "-np", 2, "--binding-args=-bind-to core", sys.executable, "-c", script)
    assert (job.code, sorted(job.out.splitlines())) == (0, ["[0]<stdout>:1", "[1]<stdout>:1"]), job.err
    job = run("--mpi", "-np", 2, sys.executable, "-c", script)
    assert sorted(job.out.splitlines()) == [f"[{i}]<stdout>:{len(os.sched_getaffinity(0))}" for i in range(2)], job.err


@pytest.mark.parametrize("end, code, cause", [("exit", 3, "exit code 3"), ("die", 137, "signal 9 (SIGKILL)")])
def test_the_rank_that_failed_is_the_cause(run, mpi, tmp_path, end, code, cause):
    job = run("--mpi", "-np", 2, "--error-file", tmp_path / "error", *rank(mpi, end, "stay"))
    assert job.code == code, job.err
    assert "rank 1 on host" in job.err and f"failed: {cause}" in job.err, job.err
    error = json.loads((tmp_path / "error").read_text())
    assert (error["kind"], error["rank"]) == ("rank", 1)
    job.nothing_left()


def test_a_killed_mpirun_is_the_cause(start, mpi, tmp_path):
    job = start("--mpi", "-np", 2, "--error-file", tmp_path / "error", *rank(mpi, "stay"))
    read_until(job.process.stdout, "of 2", 2)
    os.kill(launcher_of(job), signal.SIGKILL)
    assert job.finish() == 137, job.err
    assert "hvdrun: mpirun was ended by signal 9 (SIGKILL) while the ranks ran." in job.err
    assert json.loads((tmp_path / "error").read_text())["kind"] == "launcher"
    job.nothing_left()


def test_ctrl_c_ends_the_world(start, mpi):
    job = start("--mpi", "-np", 2, *rank(mpi, "stay"))
    read_until(job.process.stdout, "of 2", 2)
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130, job.err
    job.nothing_left()


def test_nothing_is_left_of_a_killed_hvdrun(start, mpi):
    job = start("--mpi", "-np", 2, *rank(mpi, "stay"))
    read_until(job.process.stdout, "of 2", 2)
    os.kill(job.pid, signal.SIGKILL)
    job.nothing_left()


def test_one_job_after_another_starts_and_ends(run, mpi):
    """HVD_SOAK=1: 100 launches."""
    for _ in range(100 if os.environ.get("HVD_SOAK") == "1" else 4):
        job = run("--mpi", "-np", 2, "--start-timeout", 30, "true")
        assert job.code == 0, job.err
    job.nothing_left()


OPEN_MPI = 'case "$*" in *--version) echo "mpirun (Open MPI) 4.1.4"; exit;; esac\n'


def test_a_silent_mpirun_is_ended_and_named(run, monkeypatch, tmp_path):
    put_mpirun(monkeypatch, tmp_path, OPEN_MPI + "sleep 600")
    job = run("--mpi", "-np", 2, "--start-timeout", 1, "true")
    assert job.code == 1
    assert job.err == ("hvdrun: mpirun has started none of 2 ranks within 1 s, and was ended; try again, or a longer "
                       "--start-timeout.\n")
    job.nothing_left()


def test_an_mpirun_that_starts_nothing_says_why(run, monkeypatch, tmp_path):
    put_mpirun(monkeypatch, tmp_path, OPEN_MPI + "echo ------ >&2; echo no more slots >&2; echo ------ >&2; exit 9")
    job = run("--mpi", "-np", 2, "true")
    assert (job.code, job.err) == (9, "hvdrun: mpirun ended with exit code 9 when it had started none of 2 ranks: no more slots.\n")


def test_arguments_that_mpirun_does_not_know_are_named_before_the_start(run, mpi):
    for flag in ("--mpi-args", "--binding-args"):
        job = run("--mpi", "-np", 2, f"{flag}=-foo", "echo", "started")
        assert (job.code, job.out) == (2, "")
        assert "does not know '-foo'; leave it out" in job.err, job.err
        assert len(job.err.splitlines()) == 1


def test_the_command_for_each_mpi_by_its_recorded_words(run, monkeypatch, tmp_path):
    version = tmp_path / "version"
    put_mpirun(monkeypatch, tmp_path, f'case "$*" in *--version) cat {version}; exit;; esac\necho "$*" > {tmp_path}/args; exit 9')
    openmpi, hydra = "--allow-run-as-root -np 2 -H localhost:2 -bind-to none -map-by slot -mca pml ob1", "-np 2 -ppn 2 -hosts localhost "
    head = {"mpirun (Open MPI) 3.1.3\n\nReport bugs to http://www.open-mpi.org/community/help/\n": openmpi,
            "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n": openmpi,
            "mpirun (Open MPI) 5.0.3\n": openmpi,
            "HYDRA build details:\n    Version:                                 4.0.2\n": hydra + "-bind-to none -map-by slot",
            "HYDRA build details:\n    Version:                                 3.1rc1\n": hydra,  # MVAPICH2 has Hydra
            "mpirun (IBM Spectrum MPI) 10.4.0.3\n": "--allow-run-as-root -np 2 -H localhost:2 -bind-to socket",
            "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005\n": hydra}
    for said, args in head.items():
        version.write_text(said)
        job = run("--mpi", "-np", 2, "-H", "localhost:2", "true")
        assert job.code == 9, job.err
        words = (tmp_path / "args").read_text()
        assert words.startswith(args), words
        assert " worker --job " in words
    version.write_text("Slurm 22\n")
    job = run("--mpi", "-np", 2, "true")
    assert job.code == 2
    assert "says 'Slurm 22\\n' of itself, which is none of Open MPI, Spectrum MPI, MPICH and Intel MPI" in job.err


def test_without_an_mpirun_it_is_one_sentence(run):
    job = run("--mpi", "-np", 2, "true", env={"PATH": "/nowhere"})
    assert job.code == 2
    assert job.err.startswith("hvdrun: --mpi: there is no mpirun on PATH; ") and len(job.err.splitlines()) == 1


def test_a_worker_by_hand_is_one_sentence(run):
    for args in (["worker"], ["worker", "--job", "0123456789abcdef", "--hosts", "1"]):
        job = run(*args)
        assert job.code == 2
        assert "hvdrun --mpi" in job.err and len(job.err.splitlines()) == 1


def test_no_key_is_in_an_argument_or_in_mpiruns_environment(start, mpi):
    job = start("--mpi", "-np", 2, *rank(mpi, "stay"))
    read_until(job.process.stdout, "of 2", 2)
    key = next(entry.split(b"=", 1)[1] for entry in read_proc(job.workers[0], "environ").split(b"\0")
               if entry.startswith(b"HVD_JOB_KEY="))
    wait_until("mpirun", lambda: launcher_of(job))
    for pid in job.processes():
        assert key not in read_proc(pid, "cmdline")
        if pid not in job.workers:
            assert key not in read_proc(pid, "environ"), pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    os.kill(job.pid, signal.SIGTERM)
    job.finish()


@pytest.fixture
def jsrun(monkeypatch, tmp_path):
    """The stand-in (workers/jsrun.py) is first on PATH."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JSRUN_SAID", str(tmp_path / "said"))
    put_program(monkeypatch, tmp_path, "jsrun", f'exec {sys.executable} {WORKERS / "jsrun.py"} "$@"')


def test_jsrun_starts_the_ranks_by_a_resource_file(run, jsrun, tmp_path):
    job = run("--jsrun", "-np", 2, "-H", "localhost:2", "sh", "-c", "echo $HOROVOD_RANK $JSM_NAMESPACE_RANK of $HOROVOD_SIZE")
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == [f"[{i}]<stdout>:{i} {i} of 2" for i in range(2)]
    assert not list(tmp_path.glob("hvdrun-erf*")), "the file is gone"
    job = run("--jsrun", "-np", 2, "sh", "-c", "exit $((HOROVOD_RANK * 5))")
    assert job.code == 5, job.err
    assert "rank 1 on host" in job.err and "failed: exit code 5." in job.err


def test_a_killed_jsrun_leaves_nothing(start, jsrun):
    job = start("--jsrun", "-np", 2, "-H", "localhost:2", "sh", "-c", "echo here; exec sleep 1000")
    read_until(job.process.stdout, "here", 2)
    (launcher,) = [pid for pid in children_of(job.pid) if b"jsrun.py" in read_proc(pid, "cmdline")]
    os.kill(launcher, signal.SIGKILL)
    assert job.finish() == 137, job.err
    assert "hvdrun: jsrun was ended by signal 9 (SIGKILL) while the ranks ran." in job.err
    job.nothing_left()


def test_jsrun_gets_the_arguments_of_the_user(run, jsrun, tmp_path):
    job = run("--jsrun", "-np", 2, "--binding-args=-n 2", "--mpi-args=-gpu", "--tcp", "true")
    assert job.code == 0, job.err
    assert (tmp_path / "said").read_text() == "smpiargs -tcp -gpu\n"


def test_without_a_jsrun_it_is_one_sentence(run):
    job = run("--jsrun", "-np", 2, "true", env={"PATH": "/nowhere"})
    assert job.code == 2
    assert job.err.startswith("hvdrun: --jsrun: there is no jsrun on PATH; ") and len(job.err.splitlines()) == 1
