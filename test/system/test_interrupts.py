"""Ctrl-C, and the signals that others send to hvdrun: the signals that ranks get, their order, and the end."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from conftest import DEADLINE, hvdrun_path, read_some, read_until, wait_until
from sentences import ENDED_BY_SIGINT

PYTHON = ["/usr/bin/python3", "-S", "-E", "-c"]
# A rank that tells what it hears, and is ready when its file is there.
TELLS = """
import os, signal, sys, time
folder, rank, deaf = sys.argv[1], os.environ["RANK"], sys.argv[2].split(",")
def hear(number, frame):
    os.write(1, f"heard {signal.Signals(number).name}\\n".encode())  # print() fails if a second signal comes within it
    if signal.Signals(number).name not in deaf:
        sys.exit(0)
for name in ("SIGINT", "SIGTERM"):
    signal.signal(getattr(signal, name), hear)
open(f"{folder}/{rank}", "w").close()
while True:
    time.sleep(0.1)
"""
# As users write it: nothing about signals.
SAVES = """
import os, sys, time
try:
    open(f"{sys.argv[1]}/{os.environ['RANK']}", "w").close()
    time.sleep(600)
except KeyboardInterrupt:
    print("saved at the interrupt", flush=True)
    sys.exit(0)
finally:
    print("finally ran", flush=True)
"""


def begin(start, tmp_path, script, *more, ranks=2, args=()):
    job = start("-np", ranks, *args, *PYTHON, script, tmp_path, *more)
    wait_until("all ranks", lambda: all((tmp_path / str(r)).exists() for r in range(ranks)))
    return job


def heard(job, rank):
    return [line.split("heard ")[1] for line in job.out.splitlines() if line.startswith(f"[{rank}]<stdout>:heard")]


def test_ctrl_c_is_a_keyboard_interrupt_in_every_rank(start, tmp_path):
    job = begin(start, tmp_path, SAVES)
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130
    assert job.out.count("saved at the interrupt") == 2 and job.out.count("finally ran") == 2
    assert job.err == ENDED_BY_SIGINT + "\n"
    job.nothing_left()


def test_sigint_then_sigterm_then_sigkill(start, tmp_path):
    job = begin(start, tmp_path, TELLS, "SIGINT,SIGTERM", args=["--terminate-grace", "0.7"])
    began = time.monotonic()
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130
    assert time.monotonic() - began >= 1.3, "two graces"
    for rank in range(2):
        assert heard(job, rank) == ["SIGINT", "SIGTERM"]
    job.nothing_left()


def test_a_second_ctrl_c_kills(start, tmp_path):
    job = begin(start, tmp_path, TELLS, "SIGINT,SIGTERM", args=["--terminate-grace", "600"])
    job.process.send_signal(signal.SIGINT)
    read_until(job.process.stdout, "heard SIGINT", 1)
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130
    job.nothing_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_sigterm_is_sigterm_first(start, tmp_path, number):
    job = begin(start, tmp_path, TELLS, "")
    job.process.send_signal(number)
    assert job.finish() == 128 + number
    for rank in range(2):
        assert heard(job, rank) == ["SIGTERM"]


def test_sigterm_after_ctrl_c_is_the_next_step_and_not_the_last(start, tmp_path):
    """Programs around hvdrun pass Ctrl-C on in their own way."""
    job = begin(start, tmp_path, TELLS, "SIGINT", args=["--terminate-grace", "600"])
    job.process.send_signal(signal.SIGINT)
    read_until(job.process.stdout, "heard SIGINT", 2)
    job.process.send_signal(signal.SIGTERM)
    assert job.finish() == 130
    assert job.out.count("heard SIGTERM") == 2


IN_COLLECTIVE = """
import os, sys, time
import numpy as np
import horovod.numpy as hvd
hvd.init()
open(f"{sys.argv[1]}/{hvd.rank()}", "w").close()
try:
    if hvd.rank() == 0:
        time.sleep(600)
    hvd.allreduce(np.zeros(4), name="never")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    # One that left would be seen by the others, in their collective, before their own signal comes.
    open(f"{sys.argv[1]}/{hvd.rank()}.interrupted", "w").close()
    while not all(os.path.exists(f"{sys.argv[1]}/{rank}.interrupted") for rank in range(hvd.size())):
        time.sleep(0.01)
    raise
"""


def test_also_inside_a_collective(start, tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    error = tmp_path / "error.json"
    job = start("-np", 3, "--error-file", error, "--terminate-grace", "600", "/usr/bin/python3", "-c", IN_COLLECTIVE, folder)
    wait_until("all ranks", lambda: len(list(folder.iterdir())) == 3, told=lambda: "")
    time.sleep(0.5)  # ranks 1 and 2 are in the collective, or about to be
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130, job.err
    assert job.out.count("interrupted\n") == 3, job.out + job.err
    assert job.err.splitlines()[-1] == ENDED_BY_SIGINT
    said = json.loads(error.read_text())
    assert said["kind"] == "interrupt" and said["exit_code"] == 130
    assert {rank["state"] for rank in said["ranks"]} == {"ended"}, said["ranks"]
    job.nothing_left()


def test_in_init_too(start, tmp_path):
    script = IN_COLLECTIVE.replace("hvd.init()", "open(f\"{sys.argv[1]}/{os.environ['RANK']}\", 'w').close()\n"
                                   "if os.environ['RANK'] == '0': time.sleep(600)\nhvd.init()", 1)
    job = start("-np", 2, "--terminate-grace", "600", "/usr/bin/python3", "-c", script, tmp_path)
    wait_until("both ranks", lambda: all((tmp_path / str(r)).exists() for r in range(2)))
    time.sleep(0.5)
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130, job.err
    assert job.err.count("KeyboardInterrupt") >= 2
    job.nothing_left()


FAILS = """
import os, signal, sys, time
rank = os.environ["RANK"]
def hear(number, frame):
    time.sleep(0.2 * int(rank))
    print("HorovodInternalError: rank 0 has left", file=sys.stderr, flush=True)
    os._exit(1)
signal.signal(signal.SIGINT, hear)
open(f"{sys.argv[1]}/{rank}", "w").close()
time.sleep(600)
"""


def test_ranks_that_fail_of_it_are_never_the_first_cause(start, tmp_path):
    error = tmp_path / "error.json"
    job = begin(start, tmp_path, FAILS, ranks=3, args=["--error-file", error])
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130
    assert "failed" not in job.err and job.err.endswith(ENDED_BY_SIGINT + "\n")
    said = json.loads(error.read_text())
    assert said["kind"] == "interrupt" and all(rank["state"] == "ended" for rank in said["ranks"])


FAILS_FIRST = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.environ["RANK"] == "1":
    while not os.path.exists(f"{sys.argv[1]}/0"):
        time.sleep(0.01)
    sys.exit(7)
open(f"{sys.argv[1]}/0", "w").close()
time.sleep(600)
"""


def test_a_rank_that_failed_before_stays_the_first_cause(start, tmp_path):
    job = start("-np", 2, "--terminate-grace", "600", *PYTHON, FAILS_FIRST, tmp_path)
    wait_until("rank 0 alone", lambda: (tmp_path / "0").exists() and len(job.workers) == 1)
    time.sleep(0.5)  # hvdrun has heard of it
    job.process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 7 and "rank 1 on host" in job.err


def test_on_a_terminal_one_line_says_what_happens(tmp_path):
    """Typed, not sent: the terminal's driver makes the signal, and only hvdrun is in its foreground."""
    pid, leader = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(hvdrun_path(), ["hvdrun", "-np", "2", "--color", "never", *PYTHON, SAVES, str(tmp_path)])
    wait_until("both ranks", lambda: all((tmp_path / str(r)).exists() for r in range(2)))
    os.write(leader, b"\x03")
    seen = b""
    while data := read_some(leader):
        seen += data
    _, status = os.waitpid(pid, 0)
    os.close(leader)
    text = seen.decode()
    line = "hvdrun: interrupted: every rank gets SIGINT now, SIGTERM after 3 s and SIGKILL 3 s later; Ctrl-C again kills them at once\r\n"
    assert text.count(line) == 1 and text.index(line) < text.index("saved at the interrupt"), text
    assert os.waitstatus_to_exitcode(status) == 130
    assert text.count("saved at the interrupt") == 2


def test_without_a_terminal_nothing_is_said_before_the_end(start, tmp_path):
    job = begin(start, tmp_path, TELLS, "")
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130 and len(job.err.splitlines()) == 1


def test_stop_says_which_of_the_two_it_is(start, tmp_path):
    job = begin(start, tmp_path, TELLS, "")
    id = job.job_id()
    done = subprocess.run([hvdrun_path(), "stop", id], capture_output=True, text=True, timeout=DEADLINE)
    assert done.stdout == f"hvdrun stop: job {id} was asked to end as by Ctrl-C: its ranks get SIGINT, then SIGTERM, then SIGKILL\n"
    assert job.finish() == 130
    for rank in range(2):
        assert heard(job, rank) == ["SIGINT"]
