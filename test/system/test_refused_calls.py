"""Under seccomp filters that answer newer system calls with an error of their own choice, as container runtimes do."""

import errno
import os
import platform
import re
import subprocess
import sys
import time

import pytest
from conftest import WORKERS, hvdrun_path, read_proc, wait_until, worker

sys.path.insert(0, str(WORKERS))
from refused_calls import NUMBERS  # noqa: E402

ERRORS = ["ENOSYS", "EPERM", "EINVAL", "EACCES"]
# The C library starts threads by it and tries the older call after ENOSYS only: no program has threads then.
THREADS = "clone3"
REFUSABLE = [call for call in NUMBERS if call not in (THREADS, "getrandom")]
IDLE_S = 1.0
MOST_AT_ONCE_NS = 10_000_000


def refusing(error, calls, command):
    return [sys.executable, "-S", "-E", str(WORKERS / "refused_calls.py"), error, ",".join(calls), "--", *command]


def filters_work():
    if platform.machine() != "x86_64":
        return "the numbers of the calls are those of x86-64"
    close_range = "import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(436, 900, 901, 0); print(ctypes.get_errno())"
    shown = subprocess.run(refusing("EDOM", ["close_range"], [sys.executable, "-S", "-c", close_range]), capture_output=True, text=True)
    return "" if shown.stdout.strip() == str(errno.EDOM) else f"no seccomp filter can be installed: {shown.stdout}{shown.stderr}"


WHY_NOT = filters_work()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def threads_of(pid):
    """By thread: how long it ran (ns), how often it went to sleep."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        ran = read_proc(pid, f"task/{thread}/schedstat").split()
        slept = re.search(rb"\nvoluntary_ctxt_switches:\s+(\d+)", read_proc(pid, f"task/{thread}/status"))
        if ran and slept:
            found[thread] = int(ran[0]), int(slept.group(1))
    return found


def spinners(before, after):
    """The threads that ran long without going to sleep; a busy machine gives them little time, but no rest."""
    grown = {thread: (after[thread][0] - ran, after[thread][1] - slept) for thread, (ran, slept) in before.items() if thread in after}
    return {thread: spent for thread, spent in grown.items() if spent[0] / (spent[1] + 1) > MOST_AT_ONCE_NS}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("calls", [REFUSABLE, ["futex_waitv"]], ids=["all", "futex_waitv"])
def test_refused_calls_cost_no_processor(start, tmp_path, calls, error):
    steps = ("join", f"touch={tmp_path}/0", f"wait-file={tmp_path}/go", "goodbye", "exit=0")
    others = [step.replace(f"{tmp_path}/0", f"{tmp_path}/1") for step in steps]
    job = start("--verbose", "-np", 2, *worker("link_worker.py", *(f"0:{s}" for s in steps), *(f"1:{s}" for s in others)),
                program=refusing(error, calls, [hvdrun_path()]))
    wait_until("both ranks in the world", lambda: all((tmp_path / str(r)).exists() for r in range(2)) or
               job.process.poll() is not None)
    assert job.process.poll() is None, (job.finish(), job.err)
    own = {"hvdrun": job.pid, "warden": job.warden, "agent": job.agent}
    before = {name: threads_of(pid) for name, pid in own.items()}
    time.sleep(IDLE_S)
    spinning = {name: spinners(before[name], threads_of(pid)) for name, pid in own.items()}
    (tmp_path / "go").touch()
    assert job.finish() == 0, job.err
    assert not any(spinning.values()), spinning
    job.nothing_left()


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", REFUSABLE)
def test_a_job_runs_without_each_call(run, call, error):
    job = run("-np", 2, *worker("init_worker.py"), program=refusing(error, [call], [hvdrun_path()]))
    assert job.code == 0, job.err
    assert job.out.count("joined") == 2
    job.nothing_left()


def test_a_death_is_noticed_and_everything_ends_without_any_of_them(start):
    family = "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 600\" & [ $HOROVOD_RANK = 1 ] && kill -9 $$; sleep 600"
    job = start("-np", 2, "sh", "-c", family, program=refusing("EPERM", REFUSABLE, [hvdrun_path()]))
    assert job.finish() == 137, job.err
    assert "rank 1" in job.err
    job.nothing_left()


@pytest.mark.parametrize("error", ["EPERM", "EINVAL"])
def test_without_threads_it_is_said(run, error):
    job = run("-np", 2, *worker("init_worker.py"), program=refusing(error, [THREADS], [hvdrun_path()]))
    assert job.code not in (0, 134, 139), job.err
    assert "thread" in job.err and THREADS in job.err, job.err
    job.nothing_left()
