"""The MPI plug-in when something goes wrong: every rank that still lives says why, in time, and can leave."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading

import pytest

from conftest import DEADLINE, REPO

BUILD = pathlib.Path(os.environ.get("HVDRUN", REPO / "build" / "bin" / "hvdrun")).parents[1]
PROGRAM = BUILD / "test" / "contract_mpi"
THREADS = pytest.mark.parametrize("threads", ["multiple", "one"])

if shutil.which("mpirun") is None or not PROGRAM.exists():
    pytest.skip(f"needs mpirun and {PROGRAM}", allow_module_level=True)


class Mpirun:
    """One run under mpirun; its lines are collected while it runs."""

    def __init__(self, ranks, *args, options=()):
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   ASAN_OPTIONS="detect_leaks=0")
        command = ["mpirun", "-np", str(ranks), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", *options,
                   str(PROGRAM), *args]
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, text=True, start_new_session=True)
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()

    def wait_for(self, count, pattern):
        """The first `count` lines that match."""
        def matching():
            return [line for line in self.lines if re.search(pattern, line)]
        with self.changed:
            assert self.changed.wait_for(lambda: len(matching()) >= count, DEADLINE), "".join(self.lines)
            return matching()

    def end(self):
        self.process.terminate()  # mpirun takes its ranks with it
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.reader.join()
        self.process.stdout.close()


@pytest.fixture
def mpirun():
    runs = []

    def begin(*args, **kwargs):
        runs.append(Mpirun(*args, **kwargs))
        return runs[-1]

    yield begin
    for run in runs:
        run.end()


@THREADS
def test_a_rank_that_does_not_come_is_named_at_the_deadline(mpirun, threads):
    run = mpirun(3, f"--threads={threads}", "--end=absent")
    for line in run.wait_for(2, r"^rank \d: code"):
        assert re.search(r"rank [01]: the allreduce of 400000 bytes over MPI by 3 hosts waits for rank 2, "
                         r"and the time for it is over", line), line
    run.wait_for(2, r"^rank [01] left")


@THREADS
def test_an_abort_ends_every_wait_on_every_rank(mpirun, threads):
    run = mpirun(3, f"--threads={threads}", "--end=abort")
    for line in run.wait_for(3, r"^rank \d: code"):
        assert "rank 7 is gone, says its agent" in line
    run.wait_for(3, r"^rank \d left")


@THREADS
def test_who_waits_for_a_rank_that_leaves_is_told(mpirun, threads):
    run = mpirun(3, f"--threads={threads}", "--end=leaves")
    for line in run.wait_for(2, r"^rank \d: code"):
        assert re.search(r"rank [01]: code 6: rank 2 has left the world", line), line


@THREADS
def test_a_killed_rank_ends_the_job(mpirun, threads):
    run = mpirun(3, f"--threads={threads}", "--end=killed")
    assert run.process.wait(DEADLINE) not in (0, None)


@THREADS
def test_survivors_of_a_killed_rank_are_told_by_the_deadline(mpirun, threads):
    # With this option mpirun leaves the others alone, as a scheduler may.
    run = mpirun(3, f"--threads={threads}", "--end=killed", options=["--enable-recovery"])
    for line in run.wait_for(2, r"^rank \d: code"):
        assert re.search(r"rank [01]: code [16]: .*rank 2", line), line
    run.wait_for(2, r"^rank [01] left")


def test_a_wait_for_a_late_rank_is_said(mpirun):
    run = mpirun(2, "--application=late")
    assert run.process.wait(DEADLINE) == 0, "".join(run.lines)
    run.wait_for(1, r"^heard: .*rank 0 of 2 over MPI: .* waits for ranks that have not come to hvd.init\(\) yet")
    run.wait_for(2, r"^together")


@pytest.mark.parametrize("level", ["multiple", "serialized"])
def test_mpi_of_the_application_is_used_and_left_alone(mpirun, level):
    run = mpirun(2, f"--application={level}")
    assert run.process.wait(DEADLINE) == 0, "".join(run.lines)
    run.wait_for(2, r"^rank \d: added")
    run.wait_for(2, r"^MPI is still there")
    warnings = [line for line in run.lines if "must not call MPI itself" in line]
    assert len(warnings) == (2 if level == "serialized" else 0)


def test_mpi_of_the_application_with_too_little_for_threads_is_refused(mpirun):
    run = mpirun(2, "--application=funneled")
    assert run.process.wait(DEADLINE) == 0, "".join(run.lines)
    for line in run.wait_for(2, r"^refused"):
        assert "the application initialised it with MPI_THREAD_FUNNELED" in line
    run.wait_for(2, r"^MPI is still there")


def test_singletons_of_a_mixed_installation_are_refused():
    # The view of ranks under an mpirun of another MPI: each sees itself alone.
    env = dict(os.environ, OMPI_COMM_WORLD_SIZE="4", ASAN_OPTIONS="detect_leaks=0")
    done = subprocess.run([PROGRAM], env=env, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode != 0
    assert "the launcher started 4 ranks, but Open MPI, which libhvd_mpi.so was built with, sees 1" in done.stderr
