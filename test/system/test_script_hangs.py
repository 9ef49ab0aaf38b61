"""Ranks that train with torch.distributed, and nothing of ours: what hvdrun says when one does not come to a collective, and that it
says nothing wrong of those that are well."""

import json
import os
import pathlib
import re
import shutil
import time

import pytest
from conftest import WORKERS, has_modules
from test_played_hosts import PYTHON

VENV = pathlib.Path(os.environ.get("HVD_TORCH_VENV") or pathlib.Path.home() / ".cache/hvdrun/torch-venv") / "bin"
PY_SPY = shutil.which("py-spy") or shutil.which("py-spy", path=str(VENV))
SCRIPT = WORKERS / "ddp_worker.py"
LINES = SCRIPT.read_text().splitlines()
WARNING = 2  # seconds

pytestmark = pytest.mark.skipif(not has_modules("torch"), reason="the workers need PyTorch")
needs_py_spy = pytest.mark.skipif(not PY_SPY, reason="needs py-spy")


def line_of(what, script=SCRIPT):
    """file:line of the comment that names the line."""
    lines = LINES if script is SCRIPT else script.read_text().splitlines()
    return next(f"{script}:{number}" for number, line in enumerate(lines, 1) if f"# the line: {what}" in line)


def path_with_py_spy(tmp_path, monkeypatch):
    """Nothing else of its folder, which has another Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if PY_SPY:
        (folder / "py-spy").symlink_to(PY_SPY)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}" if PY_SPY else "/usr/bin:/bin")


@pytest.fixture
def ddp(start, tmp_path, monkeypatch):
    """ddp(how, *flags): three ranks, the last of which does something else before their second step."""
    path_with_py_spy(tmp_path, monkeypatch)
    monkeypatch.setenv("HANG_FOLDER", str(tmp_path))

    def begin(how, *flags, seconds=600, python=PYTHON):
        return start("-np", 3, "--stall-check-warning-time-seconds", WARNING, *flags, python, SCRIPT, how, seconds)

    return begin


def said(job, text, limit=60):
    """All that hvdrun has written on stderr once `text` is there."""
    deadline, seen = time.monotonic() + limit, ""
    os.set_blocking(job.process.stderr.fileno(), False)
    while not re.search(text, seen):
        assert time.monotonic() < deadline, f"without {text!r}: {seen}"
        assert job.process.poll() is None, seen
        seen += (job.process.stderr.read() or b"").decode()
        time.sleep(0.05)
    return seen


WAITS = rf"ranks 0-1 have waited \d+ s in \w+ at {re.escape(str(SCRIPT))}:\d+ in \w+ for rank 2, which "
HANGS = [
    ("sleep", r"sleeps at %s in sleep\n  rank 2 on host \S+ \(pid \d+\) has not woken up for \d+ s, in the system call \w*nanosleep\."),
    ("lock", r"waits for a lock at %s in lock"),
    ("read", r"waits for a file at %s in read"),
    ("stopped", r"is stopped by a signal \(SIGSTOP, a terminal\) or a debugger at "),
]


@needs_py_spy
@pytest.mark.parametrize("how, what", HANGS)
def test_a_rank_that_does_not_move_hangs_the_job(ddp, how, what):
    err = said(ddp(how), "the job hangs.*\n")
    what = what % re.escape(line_of(how)) if "%s" in what else what
    assert re.search(r"hvdrun: the job hangs: " + WAITS + what, err), err
    assert err.count("the job hangs") == 1, err


NOTICES = [("loop", r"is busy at %s:\d+ in loop"), ("loop_in_c", r"is busy at %s:\d+ in loop_in_c"), ("child", r"is busy at %s:\d+ in child"),
           ("save", r"(is busy|reads or writes) in \S+ \(torch/serialization.py\) at %s:\d+ in save")]


@pytest.mark.long
@needs_py_spy
@pytest.mark.parametrize("how, what", NOTICES)
def test_a_rank_that_works_is_named_and_not_called_hung(ddp, how, what):
    err = said(ddp(how), "have waited .*\n")
    assert re.search(r"hvdrun: " + WAITS + what % re.escape(str(SCRIPT)), err), err
    assert "hang" not in err, err


@needs_py_spy
def test_ranks_in_different_collectives_hang(ddp):
    err = said(ddp("order"), "the job hangs.*\n(.*\n)*.*rank 2 .*\n")
    assert "ranks have waited" in err and "in different calls of collectives" in err, err
    assert re.search(rf"  ranks 0-1 on host \S+ in all_reduce at {line_of('order, all_reduce')} in order\.\n", err), err
    assert re.search(rf"  rank 2 on host \S+ \(pid \d+\) in broadcast at {line_of('order, broadcast')} in order\.\n", err), err


@needs_py_spy
def test_a_rank_with_another_number_of_batches_hangs_the_job(ddp):
    err = said(ddp("batches"), "the job hangs.*\n(.*\n)*.*rank 2 .*\n")
    assert re.search(rf"  ranks 0-1 on host \S+ in barrier at {line_of('barrier')} in main\.\n", err), err
    assert re.search(r"  rank 2 on host \S+ \(pid \d+\) in (backward|forward) at ", err), err


@needs_py_spy
def test_a_rank_that_does_not_come_to_the_beginning_is_named(ddp):
    err = said(ddp("init"), "have waited .*\n")
    assert re.search(rf"ranks 0-1 have waited \d+ s in \w+ at {line_of('init')} in main for rank 2, which sleeps at {line_of('sleep')}", err), err


@needs_py_spy
def test_a_job_that_hangs_ends_at_the_limit_and_says_why(ddp, tmp_path):
    job = ddp("sleep", "--stall-check-shutdown-time-seconds", 2 * WARNING, "--error-file", tmp_path / "error.json")
    job.finish()
    assert job.process.returncode == 79, job.err
    last = re.findall(r"^hvdrun: .*\n(?:  .*\n)*", job.err, re.M)[-1]
    assert re.search(r"the job hangs: " + WAITS + "sleeps at .*, longer than --stall-check-shutdown-time-seconds allows", last), job.err
    error = json.loads((tmp_path / "error.json").read_text())
    assert error["kind"] == "stall" and error["missing"] == [{"rank": 2, "class": "blocked"}], error
    job.nothing_left()


HEALTHY = [("steps", 4 * WARNING), ("save", 2 * WARNING), ("child", 2 * WARNING), ("loop", 2 * WARNING)]


@pytest.mark.long
@needs_py_spy
@pytest.mark.parametrize("how, seconds", HEALTHY)
def test_a_job_that_is_only_slow_never_hangs(ddp, how, seconds):
    job = ddp(how, seconds=seconds)
    job.finish()
    assert job.process.returncode == 0, job.err
    assert job.out.count("through") == 3 and "hang" not in job.err, job.err


def test_without_the_check_nothing_is_said_of_scripts(ddp):
    job = ddp("sleep", "--no-stall-check", seconds=3 * WARNING)
    job.finish()
    assert job.process.returncode == 0 and "waited" not in job.err and "moved" not in job.err, job.err


def test_without_py_spy_it_says_what_the_kernel_shows_and_what_to_install(ddp, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    if shutil.which("py-spy"):
        pytest.skip("py-spy is there")
    err = said(ddp("sleep"), "no rank has moved.*\n(.*\n)*.*rank 2 .*\n")
    assert "pip install" in err and "hvdrun[stacks]" in err and "hang" not in err, err
    assert re.search(r"  rank 2 on host \S+ \(pid \d+\) sleeps in \w*nanosleep\.\n", err), err


@needs_py_spy
def test_the_newest_pytorch_is_understood(ddp):
    python = VENV / "python"
    if not python.exists():
        pytest.skip("no newest PyTorch here")
    err = said(ddp("batches", python=python), "the job hangs.*\n(.*\n)*.*rank 2 .*\n", limit=120)
    assert re.search(rf"  ranks 0-1 on host \S+ in barrier at {line_of('barrier')} in main\.\n", err), err


# ---- other launchers and libraries

MPI_SCRIPT = WORKERS / "mpi4py_worker.py"
needs_mpi4py = pytest.mark.skipif(not (shutil.which("mpirun") and has_modules("mpi4py", "numpy")), reason="needs mpirun, mpi4py and NumPy")


def launched(launcher):
    """The command by which a launcher other than hvdrun starts three ranks, the last of which sleeps."""
    if launcher == "torchrun":
        return [VENV / "python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", SCRIPT, "sleep"]
    script = f"for r in 0 1 2; do RANK=$r WORLD_SIZE=3 MASTER_PORT=$((MASTER_PORT + 1)) {PYTHON} {SCRIPT} sleep & done; wait"
    return ["sh", "-c", script]


@needs_py_spy
@pytest.mark.parametrize("launcher", ["a shell", pytest.param("torchrun", marks=pytest.mark.long)])
def test_the_ranks_of_another_launcher_under_hvdrun_are_explained(start, tmp_path, monkeypatch, launcher):
    if launcher == "torchrun" and not (VENV / "python").exists():
        pytest.skip("no newest PyTorch here")
    path_with_py_spy(tmp_path, monkeypatch)
    job = start("-np", 1, "--stall-check-warning-time-seconds", WARNING, *launched(launcher))
    err = said(job, "the job hangs.*\n", limit=120)
    assert re.search(r"hvdrun: the job hangs: " + WAITS + "sleeps at " + re.escape(line_of("sleep")), err), err
    assert err.count("the job hangs") == 1, err


@pytest.fixture(params=["hvdrun --mpi", pytest.param("hvdrun mpirun", marks=pytest.mark.long)])
def mpi_job(request, start, tmp_path, monkeypatch):
    """mpi_job(how): three ranks that use mpi4py. They spin while they wait."""
    path_with_py_spy(tmp_path, monkeypatch)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")

    def begin(how, seconds=600):
        flags = ["--stall-check-warning-time-seconds", WARNING]
        if request.param == "hvdrun --mpi":
            return start("--mpi", "-np", 3, *flags, PYTHON, MPI_SCRIPT, how, seconds)
        return start("-np", 1, *flags, "mpirun", "-np", 3, "--oversubscribe", "--bind-to", "none", PYTHON, MPI_SCRIPT, how, seconds)

    return begin


@needs_mpi4py
@needs_py_spy
def test_ranks_that_wait_in_mpi_are_explained(mpi_job):
    err = said(mpi_job("sleep"), "the job hangs.*\n")
    assert re.search(rf"hvdrun: the job hangs: ranks 0-1 have waited \d+ s in Allreduce at {re.escape(line_of('Allreduce', MPI_SCRIPT))} in main "
                     rf"for rank 2, which sleeps at {re.escape(line_of('sleep', MPI_SCRIPT))} in sleep", err), err


@pytest.mark.long
@needs_mpi4py
@needs_py_spy
def test_ranks_that_wait_in_different_calls_of_mpi_hang(mpi_job):
    err = said(mpi_job("order"), "the job hangs.*\n(.*\n)*.*rank 2 .*\n")
    assert re.search(rf"  ranks 0-1 on host \S+ in Allreduce at {re.escape(line_of('Allreduce', MPI_SCRIPT))} in main\.\n", err), err
    assert re.search(rf"  rank 2 on host \S+ \(pid \d+\) in Recv at {re.escape(line_of('order, Recv', MPI_SCRIPT))} in main\.\n", err), err


@pytest.mark.long
@needs_mpi4py
@needs_py_spy
def test_a_rank_of_mpi_that_works_is_not_called_hung(mpi_job):
    job = mpi_job("loop", 4 * WARNING)
    job.finish()
    assert job.process.returncode == 0, job.err
    assert job.out.count("through") == 3 and "hang" not in job.err, job.err
