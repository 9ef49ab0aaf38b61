"""Collectives that take too long: the text about the ranks that are missing, and how the job ends. One machine."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import DEADLINE, WORKERS, has_modules, hvdrun_path, read_proc, read_until, wait_until
from test_played_hosts import PYTHON

pytestmark = pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")

STALLED = 79  # the exit code
WARNING, LIMIT = 1, 3  # seconds
PROMPT = 2  # seconds after a limit; alone on a machine it takes half a second
SCRIPT = WORKERS / "hang_worker.py"
LINES = SCRIPT.read_text().splitlines()


def prompt():
    """As long as that takes beside everything else that runs here now."""
    return PROMPT * (1 + os.getloadavg()[0] / os.cpu_count())


def line_of(what):
    """file:line of the comment that names the line."""
    return next(f"{SCRIPT}:{number}" for number, line in enumerate(LINES, 1) if f"# the line: {what}" in line)


def hang_worker(*args):
    return [PYTHON, SCRIPT, *args]


def watched(*flags, limit=0):
    return [*flags, "--stall-check-warning-time-seconds", WARNING, "--stall-check-shutdown-time-seconds", limit]


@pytest.fixture
def hang(start, tmp_path):
    """hang(how, *flags): the finished job, with `took`, the seconds from the first rank that hangs to the end."""

    def begin(how, *flags, ranks=3, limit=0):
        job = start(*watched("-np", ranks, "--error-file", tmp_path / "error.json", *flags, limit=limit), *hang_worker(how))
        return finished(job, tmp_path)

    return begin


def finished(job, folder):
    first = b""
    while b"hangs" not in first:
        piece = os.read(job.process.stdout.fileno(), 65536)
        assert piece, "it ended before it hung: " + first.decode() + job.process.stderr.read().decode()
        first += piece
    since = time.monotonic()
    job.finish()
    job.took, job.code, job.out = time.monotonic() - since, job.process.returncode, first.decode() + job.out
    error = folder / "error.json"
    job.error = json.loads(error.read_text()) if error.exists() else None
    job.nothing_left()
    return job


def last_block(job):
    return re.findall(r"^hvdrun: .*\n(?:  .*\n)*", job.err, re.M)[-1]


HANGS = [
    ("stopped", "stopped", r"is stopped: by a signal"),
    ("sleep", "blocked", r"is blocked in the system call \w*nanosleep at %s in sleep"),
    ("read", "blocked", r"is blocked in the system call read at %s in read"),
    ("loop", "busy", r"is busy in user code at %s in loop"),
    ("busy", "busy", rf"is busy in user code at {SCRIPT}:\d+ in busy"),  # of the two lines of its loop either
    ("deaf", "blocked", r"is blocked in "),
]


@pytest.mark.parametrize("how, class_name, words", HANGS)
def test_a_rank_that_hangs_is_explained_and_ended_at_the_limit(hang, how, class_name, words):
    job = hang(how, limit=LIMIT)
    assert job.code == STALLED, job.err
    words = words % line_of(how) if "%s" in words else words
    assert re.search(rf"  rank 2 on host \S+ \(pid \d+\) {words}", last_block(job)), job.err
    assert re.search(r"^hvdrun: rank [01] has waited \d+ s in 'allreduce.gradient' for rank 2 to submit it, longer than "
                     r"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS allows\.$", last_block(job), re.M), job.err
    assert "its last finished collective was number 1, 'allreduce.before'" in last_block(job), job.err
    assert job.error["kind"] == "stall" and job.error["exit_code"] == STALLED
    assert job.error["missing"] == [{"rank": 2, "class": class_name}]
    assert job.took < LIMIT + prompt(), job.took


def test_a_rank_that_is_slow_is_named_before_any_limit_and_ends_nothing(start):
    job = start(*watched("-np", 2), *hang_worker("halves", 4))
    job.finish()
    assert job.process.returncode == 0, job.err
    assert re.search(r"hvdrun: rank 0 has waited \d+ s in 'allreduce.z' for rank 1 to submit it\.?\n", job.err), job.err
    assert re.search(r"  rank 1 on host \S+ \(pid \d+\) is blocked in the system call \w*nanosleep at %s:\d+ in halves" % SCRIPT,
                     job.err), job.err
    assert job.out.count("through") == 2


@pytest.mark.parametrize("how", ["name", "two_sets"])
def test_a_wait_that_can_never_end_ends_at_the_warning_time(hang, how):
    job = hang(how)
    assert job.code == STALLED, job.out + job.err
    block = last_block(job)
    assert "it can never end" in block, job.err
    assert re.search(r"rank \d on host \S+ \(pid \d+\) is in another collective: it has waited \d+ s in '\S+' ", block), job.err
    if how == "name":
        assert "'allreduce.other'" in block and "'allreduce.gradient'" in block, job.err
        assert f" at {SCRIPT}:{int(line_of('reduce').split(':')[-1]) + 1} in reduce" in block, job.err
    else:
        assert "'allreduce.left'" in block and "'allreduce.right'" in block, job.err
    assert {entry["class"] for entry in job.error["missing"]} == {"in another collective"}
    assert job.took < WARNING + prompt(), job.took


def test_another_shape_ends_at_once_and_names_both(hang):
    job = hang("shape")
    assert job.code == 1, job.err
    assert re.search(r"rank \d has \[4\].* rank 2 has \[5\]", job.err), job.err


def test_a_rank_that_ends_early_is_named_at_once(hang):
    job = hang("early")
    assert job.code == 1, job.err
    assert re.search(r"rank 2 left the world before it took part in '|rank 2 .*left the world", job.err), job.err


@pytest.mark.parametrize("how", ["orders", "halves", "two_threads"])
def test_ranks_that_differ_in_their_order_are_no_deadlock(run, how):
    job = run(*watched("-np", 3), *hang_worker(how, 2.5))
    assert job.code == 0, job.out + job.err
    assert job.out.count("through") == 3, job.out + job.err
    assert "never end" not in job.err


def test_without_the_check_nothing_is_said(start):
    job = start("-np", 2, "--no-stall-check", "--stall-check-warning-time-seconds", WARNING, *hang_worker("halves", 3))
    job.finish()
    assert job.process.returncode == 0 and "has waited" not in job.err, job.err


def test_without_stacks_there_is_a_class_and_no_line(hang):
    job = hang("sleep", "--no-stall-check-stacks", limit=LIMIT)
    assert job.code == STALLED, job.err
    assert re.search(r"rank 2 on host \S+ \(pid \d+\) is blocked in the system call \w*nanosleep;", last_block(job)), job.err
    assert f" at {SCRIPT}" not in job.err


def py_spy(tmp_path, monkeypatch, then):
    """A stand-in on PATH that says what it was asked for, then does something."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "py-spy"
    program.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/asked\n{then}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path / "asked"


def test_py_spy_tells_the_line_of_a_rank_whose_own_handler_cannot(hang, tmp_path, monkeypatch):
    """A rank that blocks all signals writes no stacks itself."""
    line = line_of("deaf")
    asked = py_spy(tmp_path, monkeypatch, f"printf 'Process %s: python\\n\\nThread %s (idle): \"MainThread\"\\n    deaf ({line})\\n' $5 $5")
    job = hang("deaf", limit=LIMIT)
    assert job.code == STALLED, job.err
    assert re.search(rf"rank 2 on host \S+ \(pid \d+\) is blocked in .* at {line} in deaf", last_block(job)), job.err
    pid = re.search(r"rank 2 on host \S+ \(pid (\d+)\)", job.err).group(1)
    assert f"dump --nonblocking --full-filenames --pid {pid}" in asked.read_text().splitlines()


def test_a_py_spy_that_hangs_holds_up_nothing(hang, tmp_path, monkeypatch):
    asked = py_spy(tmp_path, monkeypatch, "exec sleep 600")
    job = hang("deaf", limit=LIMIT)
    assert job.code == STALLED and asked.exists(), job.err
    assert re.search(r"rank 2 on host \S+ \(pid \d+\) is blocked in ", last_block(job)), job.err


def test_py_spy_is_not_asked_where_stacks_are_not_wanted(hang, tmp_path, monkeypatch):
    asked = py_spy(tmp_path, monkeypatch, "true")
    job = hang("deaf", "--no-stall-check-stacks", limit=LIMIT)
    assert job.code == STALLED and not asked.exists(), job.err


def stacks_of(job_id, flag="--stacks"):
    return subprocess.run([hvdrun_path(), "dump", flag, job_id], capture_output=True, text=True, timeout=DEADLINE)


def test_stacks_of_any_script_are_read_from_outside_and_equal_ones_shown_once(start, tmp_path, monkeypatch):
    """Three ranks that know nothing of Horovod, behind a shell; the stand-in shows the argument of each."""
    asked = py_spy(tmp_path, monkeypatch, "printf 'Process %s: python\\nPython v3.11\\n\\nThread %s (idle): \"MainThread\"\\n    ' $5 $5\n"
                                          "tr '\\0' ' ' < /proc/$5/environ | grep -o 'MYPLACE=[a-z]*'")
    script = "import time; print('runs', flush=True); time.sleep(600)"
    job = start("-np", 3, "sh", "-c", f"[ $RANK = 1 ] && export MYPLACE=save || export MYPLACE=reduce; {sys.executable} -c \"{script}\"; true")
    read_until(job.process.stdout, "runs", 3)
    done = stacks_of(job.job_id())
    host = re.search(r"rank 1 on host (\S+):", done.stdout).group(1)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f'ranks 0,2 on host {host}:\n  Thread (idle): "MainThread"\n      MYPLACE=reduce\n'
                           f'rank 1 on host {host}:\n  Thread (idle): "MainThread"\n      MYPLACE=save\n')
    assert len(asked.read_text().splitlines()) == 3


@pytest.mark.parametrize("is_stopped", [False, True])
def test_c_frames_are_asked_for_and_equal_ones_shown_once(is_stopped, start, tmp_path, monkeypatch):
    """Addresses differ by rank. Of a rank that is stopped py-spy cannot read C frames, so it is asked for its Python."""
    asked = py_spy(tmp_path, monkeypatch, "printf 'Process %s: python\n\nThread %s (idle): \"MainThread\"\n    0x7f%s (libc.so.6)\n    f (x.so)\n' $5 $5 $5")
    job = start("-np", 2, "sh", "-c", "echo pid $$ runs; while :; do sleep 1; done")
    pids = [int(pid) for pid in re.findall(rb"pid (\d+) runs", read_until(job.process.stdout, "runs", 2))]
    if is_stopped:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            wait_until("the rank is stopped", lambda: b" T " in read_proc(pid, "stat"))
    done = stacks_of(job.job_id(), "--native")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r'ranks 0-1 on host \S+:\n  Thread \(idle\): "MainThread"\n      \?\? \(libc.so.6\)\n      f \(x.so\)\n', done.stdout), done.stdout
    how = "--nonblocking" if is_stopped else "--native"
    assert sorted(asked.read_text().splitlines()) == sorted(f"dump {how} --full-filenames --pid {pid}" for pid in pids)


@pytest.mark.parametrize("then, why", [
    ("echo 'Error: Permission Denied: try again as root' >&2; exit 1", "py-spy says: Error: Permission Denied: try again as root"),
    (None, "py-spy is not on the PATH of its host: pip install py-spy"),
])
def test_stacks_that_cannot_be_read_say_why(start, tmp_path, monkeypatch, then, why):
    if then:
        py_spy(tmp_path, monkeypatch, then)
    else:
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        assert not shutil.which("py-spy")
    job = start("-np", 2, "sh", "-c", "echo runs; sleep 600")
    read_until(job.process.stdout, "runs", 2)
    done = stacks_of(job.job_id())
    assert done.returncode == 1 and f"ranks 0-1 on host " in done.stdout and f": no stacks; {why}" in done.stdout, done


@pytest.mark.parametrize("args", [["--stacks", "-o", "x"], ["--native", "-o", "x"], ["--stack"], ["--stacks", "a", "b"]])
def test_wrong_wishes_for_stacks_are_one_sentence(args):
    done = subprocess.run([hvdrun_path(), "dump", *args], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and done.stdout == "", done
