"""The last block on the screen is the first cause, whoever shouted later; --error-file has it as JSON."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time

import pytest
from conftest import MARK, foreign_worker, hvdrun_path, is_alive, wait_until, worker
from limited_group import limited_group

# Rank 1 raises; the others wait to be asked to end, and shout then.
TRACEBACK = """
import os, signal, sys, time
def shout(*_):
    sys.stderr.write("noise of a consequence\\n" * 100)
    sys.stderr.flush()
    os._exit(9)
if os.environ["HOROVOD_RANK"] != "1":
    signal.signal(signal.SIGTERM, shout)
    while True:  # a signal just before a sleep is heard after it
        time.sleep(0.05)
def deep(n):
    if n == 0:
        raise ValueError("the first cause")
    deep(n - 1)
def middle():
    try:
        [][1]
    except IndexError:
        deep(3)
middle()
"""


def report_of(job):
    return job.err[job.err.rindex("hvdrun: rank") :]


def test_first_failure_is_the_last_block(run):
    job = run("-np", 4, "--terminate-grace", 60, sys.executable, "-c", TRACEBACK)
    assert job.code == 1
    report = report_of(job)
    assert report.startswith("hvdrun: rank 1 on host ") and "exit code 1" in report
    assert "ValueError: the first cause" in report and "noise" not in report
    assert report.rstrip().endswith("3 other ranks were ended because of it.")


# The victim ends in its way; a second one does so 5 ms after the first is dead; the others shout when they are asked to end.
VICTIMS = """
import os, signal, sys, time
folder, way, first, second = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rank = int(os.environ["HOROVOD_RANK"])
def consequence(*_):
    sys.stderr.write("".join(f"Traceback (most recent call last):\\n  line {n} of a consequence\\n" for n in range(100)))
    sys.stderr.flush()
    os._exit(9)
def fail(what):
    if way == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "exit":
        os._exit(7)
    raise ValueError(what)
def state_of(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"
def read(name):
    while True:
        try:
            text = open(f"{folder}/{name}").read()
            if text.endswith("."):
                return text[:-1]
        except OSError:
            time.sleep(0.001)
signal.signal(signal.SIGTERM, consequence)
open(f"{folder}/rank.{rank}", "w").write(f"{os.getpid()}.")
for other in range(int(os.environ["HOROVOD_SIZE"])):
    read(f"rank.{other}")  # nobody fails before all can shout
if rank == first:
    fail("the first cause")
if rank == second:
    pid = read(f"rank.{first}")
    while state_of(pid) not in "ZXgone":
        pass
    time.sleep(0.005)
    fail("the second failure")
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize("way, code", [("raise", 1), ("segv", 128 + signal.SIGSEGV), ("exit", 7)])
@pytest.mark.parametrize("failures", [1, 2])
def test_the_victim_is_named_in_every_round(run, tmp_path, way, code, failures):
    """HVD_SOAK=1: 200 rounds of each; else three. The seed of a round is its number."""
    for seed in range(200 if os.environ.get("HVD_SOAK") else 3):
        first, second = random.Random(seed).sample(range(4), 2)
        folder = tmp_path / str(seed)
        folder.mkdir()
        job = run("-np", 4, "--error-file", folder / "error.json", sys.executable, "-S", "-E", "-c", VICTIMS, folder, way, first,
                  second if failures == 2 else -1)
        said = json.loads((folder / "error.json").read_text())
        told = f"seed {seed}, {way}, rank {first}: {job.err}"
        assert job.code == said["exit_code"] == code, told
        assert said["kind"] == "rank" and said["rank"] == first, told
        report = report_of(job)
        assert report.startswith(f"hvdrun: rank {first} on host "), told
        assert report.count("Traceback") == report.count("the first cause") == (way == "raise"), told
        assert "consequence" not in report and "second" not in report, told


def test_report_has_host_pid_end_traceback_and_others(run):
    job = run("-np", 2, sys.executable, "-c", TRACEBACK)
    report = report_of(job)
    assert f"on host {os.uname().nodename} (pid " in report
    assert report.count("Traceback (most recent call last):") == 2, "with the exception it came from"
    assert "IndexError" in report and report.count("in deep") == 4


def test_a_rank_that_leaves_with_an_exception_is_named_and_not_those_that_fail_of_it(start):
    """It says goodbye on its way out, while its peers have failed already and are gone sooner."""
    for number in range(10):
        job = start("-np", 3, *foreign_worker("init", "sum", "sums"))
        for _ in range(3):
            assert job.process.stdout.readline().endswith(b":sum 6\n")
        victim = job.workers[number % 3]
        os.kill(victim, signal.SIGINT)
        assert job.finish() == 130, (number, job.err)
        assert f"(pid {victim}) failed: signal 2 (SIGINT)" in report_of(job), (number, job.err)


def test_a_long_traceback_is_whole(run):
    code = "import sys\nsys.setrecursionlimit(9999)\n" + "\n".join(
        f"def f{i}(): f{i + 1}()" for i in range(60)) + "\ndef f60(): raise KeyError('bottom')\nf0()\n"
    job = run("-np", 1, sys.executable, "-c", code)
    report = report_of(job)
    assert "in f0" in report and "in f59" in report and "KeyError: 'bottom'" in report


@pytest.mark.parametrize("name, meaning", [("SEGV", "invalid memory access"), ("ABRT", "called abort"),
                                           ("KILL", "not by the OOM killer"), ("TERM", "not part of hvdrun")])
def test_signals_are_told_apart(run, name, meaning):
    number = getattr(signal, f"SIG{name}").value
    job = run("-np", 2, "sh", "-c", f"[ $HOROVOD_RANK = 1 ] && kill -{name} $$; sleep 600")
    assert job.code == 128 + number
    assert f"failed: signal {number} (SIG{name})" in job.err and meaning in job.err


def test_error_file_is_json_for_its_owner(run, tmp_path):
    path = tmp_path / "error.json"
    job = run("-np", 3, "--error-file", path, "sh", "-c", "[ $HOROVOD_RANK = 2 ] && { printf 'q\"\\377\\n' >&2; exit 7; }; sleep 600")
    assert job.code == 7
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = json.loads(path.read_text(encoding="utf-8"))
    assert said["version"] == 1 and said["kind"] == "rank" and said["exit_code"] == 7
    assert said["rank"] == 2 and said["host"] == os.uname().nodename and said["pid"] > 0
    assert said["cause"] == "exit code 7" and said["stderr"] == 'q"\ufffd' and said["others_ended"] == 2
    assert said["command"][0] == "sh" and said["num_proc"] == 3 and said["out_of_memory"] is False
    assert said["report"] in job.err.replace("\udcff", "\ufffd") or "exit code 7" in said["report"]
    assert os.listdir(tmp_path) == ["error.json"]


def test_error_file_of_a_former_job_goes_away(run, tmp_path):
    path = tmp_path / "error.json"
    path.write_text("old")
    assert run("-np", 1, "--error-file", path, "true").code == 0
    assert not path.exists()


def test_error_file_that_cannot_be_written_is_said_before_anything_starts(run, tmp_path):
    for bad in (tmp_path / "no" / "such" / "folder.json", tmp_path):
        job = run("-np", 1, "--error-file", bad, "touch", tmp_path / "started")
        assert job.code == 2 and str(bad) in job.err and len(job.err.splitlines()) == 1
    assert not (tmp_path / "started").exists()


def test_error_file_of_a_signal_and_of_an_interrupt(run, start, tmp_path):
    path = tmp_path / "error.json"
    run("-np", 1, "--error-file", path, "sh", "-c", "kill -SEGV $$")
    said = json.loads(path.read_text())
    assert said["signal"] == 11 and said["signal_name"] == "SIGSEGV" and said["exit_code"] == 139
    job = start("-np", 1, "--error-file", path, "sleep", 600)
    wait_until("the worker", lambda: len(job.processes()) >= 4)
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130
    said = json.loads(path.read_text())
    assert said["kind"] == "interrupt" and said["signal_name"] == "SIGINT"


def memory_group():
    """At most 64 MB for what starts with the command that it yields."""
    return limited_group("memory", ("memory.limit_in_bytes", str(64 << 20)), ("memory.max", str(64 << 20)))


def test_out_of_memory_is_told_from_a_kill():
    eat = ("import os,time\nif os.environ['HOROVOD_RANK'] == '1':\n  x = bytearray(300 << 20)\n"
           "  x[::4096] = b'x' * len(x[::4096])\ntime.sleep(600)")
    with memory_group() as inside:
        done = subprocess.run([*inside, hvdrun_path(), "-np", "2", sys.executable, "-S", "-E", "-c", eat],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 137, done.stderr
        assert "rank 1 on host" in done.stderr and "by the kernel for lack of memory" in done.stderr
        done = subprocess.run([*inside, hvdrun_path(), "-np", "2", "sh", "-c",
                               "[ $HOROVOD_RANK = 1 ] && kill -9 $$; sleep 600"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 137 and "not by the OOM killer" in done.stderr


def test_a_stranger_out_of_memory_says_nothing_about_a_later_kill(start, tmp_path):
    eat = "x = bytearray(300 << 20)\nx[::4096] = b'x' * len(x[::4096])"
    rank = "[ $HOROVOD_RANK = 1 ] || exec sleep 600; until [ -e $0/go ]; do sleep 0.05; done; kill -9 $$"
    with memory_group() as inside:
        job = start("-np", 2, "sh", "-c", rank, tmp_path, program=[*inside, hvdrun_path()])
        wait_until("the ranks", lambda: len(job.workers) == 2)
        stranger = subprocess.run([*inside, sys.executable, "-S", "-E", "-c", eat], timeout=60)
        assert stranger.returncode == -signal.SIGKILL
        time.sleep(5)  # the agent has looked at the counter some times
        (tmp_path / "go").touch()
        assert job.finish() == 137
        assert "rank 1 on host" in job.err and "not by the OOM killer" in job.err


def test_a_kill_by_another_user_is_told_from_a_lack_of_memory(tmp_path):
    """hvdrun and its ranks are nobody's, the killer is root; the words are those of a kill from outside."""
    nobody = 65534
    if os.geteuid() != 0:
        pytest.skip("it needs root to be two users")
    try:
        subprocess.run([hvdrun_path(), "--version"], user=nobody, group=nobody, extra_groups=[], cwd="/", check=True,
                       capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("another user may not read the build")
    tmp_path.chmod(0o777)
    process = subprocess.Popen([hvdrun_path(), "-np", "2", "sh", "-c", "echo $$ $HOROVOD_RANK.; exec sleep 600"], user=nobody,
                               group=nobody, extra_groups=[], cwd="/", env={"PATH": os.environ["PATH"], "HOME": "/"},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = [process.stdout.readline(), process.stdout.readline()]
        words = next(line.split() for line in lines if line.rstrip().endswith(" 1."))
        os.kill(int(words[-2].rpartition(":")[2]), signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGKILL, err
    assert "hvdrun: rank 1 on host" in err and "signal 9 (SIGKILL)" in err and "not by the OOM killer" in err, err
