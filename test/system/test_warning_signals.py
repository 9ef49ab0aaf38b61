"""SIGUSR1 and SIGUSR2 warn: they go to the ranks that handle them, and end nothing."""

import os
import signal
import sys

import pytest
from conftest import has_modules, own_children, read_until, wait_until
from installed import NO_TOOL, packaging_tool

PYTHON = "/usr/bin/python3"
# Says which signal it got; a child that it forks, as a DataLoader does, has its handlers.
HANDLES = """
import os, signal, sys, time
got = []
def handler(number, frame):
    got.append(number)
    os.write(1, f"{who} got {number}\\n".encode())
who = "rank"
for number in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, handler)
if os.fork() == 0:
    who = "loader"
    while True:
        time.sleep(0.05)
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
time.sleep(0.2)
"""
WAITS = """
import os, sys, time
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""


def handling(tmp_path, script=HANDLES):
    return [sys.executable, "-S", "-E", "-c", script, tmp_path / "go"]


# What uv does: it passes on what it gets.
UV = """
import ctypes, os, signal, subprocess, sys
ctypes.CDLL(None).prctl(15, b"uv", 0, 0, 0)  # its name
child = subprocess.Popen(sys.argv[1:])
for number in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, frame: child.send_signal(number))
sys.exit(child.wait())
"""


def finish(job, tmp_path):
    (tmp_path / "go").touch()
    return job.finish()


def agents(job):
    return [agent for warden in own_children(job.pid) for agent in own_children(warden)]


# A package of PyPI: only --soak has it for sure.
UV_ITSELF = pytest.param("uv", marks=pytest.mark.soak)


def behind(wrapper, command):
    """The command as a wrapper's child."""
    if wrapper == "sh":  # more than one command, so that it does not become the rank
        return ["sh", "-c", '"$@"; exit $?', "sh", *command]
    if wrapper == "python":  # conda run
        return [sys.executable, "-S", "-E", "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))", *command]
    if wrapper == "like uv":
        return [sys.executable, "-S", "-E", "-c", UV, *command]
    if wrapper == "uv":
        uv = packaging_tool("uv")
        if uv is None:
            pytest.skip(f"uv {NO_TOOL}")
        return [uv, "run", "--no-project", "--offline", "--python", sys.executable, *command]
    return command


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
@pytest.mark.parametrize("wrapper", ["", "like uv", UV_ITSELF])
def test_a_signal_that_no_rank_handles_goes_to_none_and_the_job_goes_on(start, tmp_path, number, wrapper):
    job = start("-np", 2, *behind(wrapper, handling(tmp_path, WAITS)))
    read_until(job.process.stdout, "ready", 2)
    job.process.send_signal(number)
    said = read_until(job.process.stderr, "goes on").decode()
    assert finish(job, tmp_path) == 0, said + job.err
    assert f"no rank handles signal {number.value} ({number.name}), so none got it" in said


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
@pytest.mark.parametrize("wrapper", ["", "sh", "python", "like uv", UV_ITSELF])
def test_a_ranks_own_process_gets_the_signal_that_it_handles(start, tmp_path, number, wrapper):
    command = behind(wrapper, handling(tmp_path))
    job = start("-np", 2, *command)
    read_until(job.process.stdout, "ready", 2)
    job.process.send_signal(number)
    said = read_until(job.process.stdout, f"rank got {number.value}", 2).decode()
    assert finish(job, tmp_path) == 0, job.err
    assert (said + job.out).count("got") == 2 and "loader" not in said + job.out
    assert job.err == ""


@pytest.mark.parametrize(
    "script, says", [(HANDLES, ""), (WAITS, "got signal 12 (SIGUSR2), and no rank there handles it")], ids=["handled", "not handled"]
)
def test_a_signal_to_an_agent_is_for_the_ranks_of_its_host(start, tmp_path, script, says):
    job = start("-np", 2, "--hosts-per-machine", 2, *handling(tmp_path, script))
    read_until(job.process.stdout, "ready", 2)
    wait_until("two agents", lambda: len(agents(job)) == 2)
    os.kill(agents(job)[1], signal.SIGUSR2)
    said = read_until(job.process.stderr, "goes on").decode() if says else ""
    out = "" if says else read_until(job.process.stdout, "rank got 12").decode()
    assert finish(job, tmp_path) == 0, said + job.err
    assert says in said and (out + job.out).count("got") == (0 if says else 1)


def test_wardens_survive_a_signal_to_all_processes_of_a_step(start, tmp_path):
    job = start("-np", 1, *handling(tmp_path))
    read_until(job.process.stdout, "ready")
    for pid in (job.warden, job.agent, job.pid):
        os.kill(pid, signal.SIGUSR1)
    out = read_until(job.process.stdout, "rank got 10").decode()
    assert finish(job, tmp_path) == 0, job.err
    assert (out + job.out).count("got") == 1, "hvdrun and its agent both got it, at once"


def test_other_signals_end_the_job_with_a_line_that_names_them(start, tmp_path):
    job = start("-np", 1, *handling(tmp_path, WAITS))
    read_until(job.process.stdout, "ready")
    job.process.send_signal(signal.SIGXCPU)
    assert job.finish() == 128 + signal.SIGXCPU, job.err
    assert "ended by signal 24 (SIGXCPU)" in job.err.splitlines()[-1]


STOPS = """
import sys, time
import horovod.numpy as hvd
hvd.init()
print("ready", flush=True)
for step in range(100000):
    hvd.barrier()
    if hvd.should_stop():
        print(f"stops at {step}", flush=True)
        time.sleep(0.3 * hvd.rank())
        sys.exit(75)
    time.sleep(0.002)
"""


@pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")
@pytest.mark.parametrize("to", ["hvdrun", "agent"])
def test_should_stop_becomes_true_on_all_ranks_of_a_fixed_job_at_one_step(start, to):
    job = start("-np", 2, "--hosts-per-machine", 2, PYTHON, "-c", STOPS)
    read_until(job.process.stdout, "ready", 2)
    os.kill(job.pid if to == "hvdrun" else agents(job)[1], signal.SIGUSR1)
    out = read_until(job.process.stdout, "stops at", 2).decode()
    assert job.finish() == 75, job.err
    steps = {line.split("stops at")[1] for line in (out + job.out).splitlines() if "stops at" in line}
    assert len(steps) == 1, out + job.out
    assert "as signal 10 (SIGUSR1) asks; exit code 75" in job.err.splitlines()[-1]
