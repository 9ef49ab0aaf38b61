"""What PyTorch's flight recorder adds to the verdict about a script that hangs: dumps of its real recorder, written by a thread that
does with the pipe what ProcessGroupNCCL does (workers/flight_worker.py)."""

import os
import pathlib
import re
import subprocess

import pytest
from conftest import WORKERS
from test_script_hangs import PY_SPY, VENV, WARNING, said

SCRIPT = WORKERS / "flight_worker.py"
PYTHON = VENV / "python"

pytestmark = [
    pytest.mark.skipif(not PYTHON.exists(), reason="needs the newest PyTorch"),
    pytest.mark.skipif(not PY_SPY, reason="needs py-spy"),
]


@pytest.fixture
def flight(start, tmp_path, monkeypatch):
    """flight(how, *flags): three ranks, the last of which does something else in place of the second all_reduce."""
    for folder in ("bin", "tmp"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "py-spy").symlink_to(PY_SPY)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HANG_FOLDER", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return lambda how, *flags: start("-np", 3, "--stall-check-warning-time-seconds", WARNING, *flags, PYTHON, SCRIPT, how)


def folders(tmp_path):
    return sorted((tmp_path / "tmp").glob("hvdrun-flight-*"))


RECORDED = r"  PyTorch's flight recorder: "
FOUND = [
    ("sleep", r"collective 2 of the default group, all_reduce of Float \[4, 3\], was enqueued by ranks 0-1 and not by rank 2, "
     r"whose last one is number 1, all_reduce of Float \[4, 3\]\.\n"),
    ("order", r"ranks have enqueued different operations as collective 2 of the default group: all_reduce of Float \[4, 3\] on ranks 0-1, "
     r"broadcast of Float \[4, 3\] on rank 2\.\n"),
    ("silent", r"collective 2 of the default group, all_reduce of Float \[4, 3\], was enqueued by ranks 0-1; there is no dump of rank 2\.\n"),
]  # fmt: skip


@pytest.mark.parametrize("how, line", FOUND)
def test_the_verdict_names_the_collective(flight, how, line):
    err = said(flight(how), RECORDED + ".*\n", limit=120)
    assert re.search(r"have waited \d+ s in .*\n(  .*\n)*" + RECORDED + line, err), err


def test_the_dumps_of_all_hosts_make_one_sentence(flight):
    err = said(flight("sleep", "--hosts-per-machine", 2), RECORDED + ".*\n", limit=120)
    assert re.search(RECORDED + FOUND[0][1], err), err


def test_a_wait_that_no_stack_shows_is_a_notice(flight):
    err = said(flight("inside"), RECORDED + ".*\n", limit=120)
    assert re.search(r"a collective of PyTorch has not ended for \d+ s\n" + RECORDED + FOUND[0][1], err)
    assert "hangs" not in err and err.count("has not ended") == 1, err


@pytest.mark.parametrize("how", ["broken", "code"])
def test_a_dump_is_read_and_never_run(flight, how, tmp_path):
    err = said(flight(how), RECORDED + ".*\n", limit=120)
    assert re.search(RECORDED + r"collective 2 .*, was enqueued by ranks 0-1; there is no dump of rank 2\.\n", err), err
    assert not (tmp_path / "ran").exists()


def test_a_job_that_ends_at_the_limit_says_it_and_leaves_nothing(flight, tmp_path):
    job = flight("sleep", "--stall-check-shutdown-time-seconds", 6 * WARNING)
    job.finish(limit=120)
    assert job.process.returncode == 79, job.err
    last = job.err[job.err.rindex("hvdrun: the job hangs") :]
    assert re.search(RECORDED + "collective 2 .*rank 2", last), job.err
    assert folders(tmp_path) == []
    job.nothing_left()


def test_a_dump_that_pytorch_has_written_before_a_failure_is_read_and_kept(flight, tmp_path):
    job = flight("timeout", "--stall-check-warning-time-seconds", 60)
    job.finish(limit=120)
    assert re.search(RECORDED + r"collective 2 .*, was enqueued by rank 0; there is no dump of ranks 1-2\.\n", job.err), job.err
    assert [file.name for file in folders(tmp_path)[0].iterdir()] == ["0.0"]


def test_what_the_user_has_set_stays(flight, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    job = flight("sleep", "-x", f"TORCH_NCCL_DEBUG_INFO_PIPE_FILE={mine}/pipe_", "-x", f"TORCH_FR_DUMP_TEMP_FILE={mine}/dump_")
    err = said(job, RECORDED + ".*\n", limit=120)
    assert re.search(RECORDED + "collective 2 .* not by rank 2", err), err
    assert sorted(file.name for file in mine.glob("dump_*")) == ["dump_0", "dump_1", "dump_2"]


def test_without_the_check_the_recorder_is_left_alone(flight, tmp_path):
    show = "import os; print([name for name in os.environ if name.startswith('TORCH_')])"
    for flag, names in [("--no-stall-check", 0), ("--stall-check", 3)]:
        out = subprocess.run(
            [os.environ.get("HVDRUN", pathlib.Path(__file__).parents[2] / "build/bin/hvdrun"), "-np", "1", flag, PYTHON, "-c", show],
            capture_output=True, text=True, check=True).stdout  # fmt: skip
        assert out.count("TORCH_") == names, (flag, out)
    assert folders(tmp_path) == []
