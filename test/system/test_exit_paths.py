"""Every way in which hvdrun ends: reached on purpose, with its code and a last block on stderr that names the reason."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import DEADLINE, hvdrun_path, kill, read_some, read_until, wait_until, worker

HOST = os.uname().nodename


def last_block(text):
    """From the last line of hvdrun itself on."""
    starts = [found.start() for found in re.finditer(r"^hvdrun: ", text, re.M)]
    return text[starts[-1] :] if starts else ""


# ---- what a command line, a command or its workers bring about


ENDS = [
    # name, arguments, code, the last block, the failure code
    ("wrong usage", ["-np", "0", "true"], 2, r"hvdrun: -np 0 is out of range: .*\n", None),
    ("no such command", ["-np", "2", "no-such-command"], 127, r"hvdrun: the command 'no-such-command' was not found in PATH .*\n", "HVD105"),
    ("no such file", ["-np", "2", "./no/such"], 127, r"hvdrun: the command './no/such' does not exist .*\n", "HVD105"),
    ("a folder", ["-np", "2", "/"], 126, r"hvdrun: the command '/' is a directory; .*\n", "HVD105"),
    ("an exit code", ["-np", "1", "sh", "-c", "exit 3"], 3, r"hvdrun: rank 0 on host \S+ \(pid \d+\) failed: exit code 3\.\n", "HVD101"),
    ("the largest exit code", ["-np", "1", "sh", "-c", "exit 255"], 255, r"hvdrun: rank 0 .* failed: exit code 255\.\n", "HVD101"),
    ("a signal", ["-np", "1", "sh", "-c", "kill -SEGV $$"], 139, r"hvdrun: rank 0 .* failed: signal 11 \(SIGSEGV\).*\n", "HVD102"),
    ("a time limit", ["-np", "2", "--timeout", "0.3", "sleep", "600"], 124, r"hvdrun: the job did not end within .*\n", "HVD302"),
    ("a time limit and deaf workers", ["-np", "2", "--timeout", "0.3", "--terminate-grace", "0.2", "sh", "-c",
                                       "trap '' TERM; while :; do sleep 1; done"], 124, r"hvdrun: the job did not end within .*\n", "HVD302"),
    ("one worker fails, the other is deaf", ["-np", "2", "--terminate-grace", "0.2", "sh", "-c",
                                             "[ $RANK = 0 ] && exit 6; trap '' TERM; while :; do sleep 1; done"], 6,
     r"hvdrun: rank 0 .* failed: exit code 6\.\n  1 other rank was ended because of it\.\n", "HVD101"),
]


@pytest.mark.parametrize("args, code, block, failure", [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_ends_that_workers_bring_about(run, args, code, block, failure):
    job = run(*args)
    assert job.code == code, job.err
    assert re.fullmatch(block, last_block(job.err)), job.err
    assert job.failure_code == failure
    job.nothing_left()


def test_left_without_goodbye(run):
    job = run("-np", 2, *worker("link_worker.py", "join", "1:exit=0", "broken", "exit=5"))
    assert job.code == 1
    assert re.fullmatch(r"hvdrun: rank 1 .* ended too early \(exit code 0\)\.\n  It had called hvd.init\(\) and not hvd.shutdown\(\).*\n"
                        r"  1 other rank was ended because of it\.\n", last_block(job.err)), job.err


# The collective is the last one; what the ranks do after it needs no others.
LEAVES_AT_ONCE = """
import os, sys, time
import numpy
import horovod.numpy as hvd
hvd.init()
print(hvd.allreduce(numpy.ones(4), op=hvd.Sum)[0], flush=True)
time.sleep(1 + 0.2 * hvd.rank())  # by then all have woken up with the result
if sys.argv[1] == "wait" and hvd.rank() == 1:
    hvd.allreduce(numpy.ones(4), name="of no other rank")
os._exit(0)
"""


@pytest.mark.parametrize("ranks", [1, 3])
def test_left_without_goodbye_and_not_missed(run, ranks):
    job = run("-np", ranks, sys.executable, "-c", LEAVES_AT_ONCE, "go")
    assert job.code == 0, job.err
    who = r"rank 0 \(pid \d+\)" if ranks == 1 else r"ranks 0-2 \(pids \d+, \d+, \d+\)"
    assert re.fullmatch(who + r" ended with exit code 0 in the middle of the job, without hvd\.shutdown\(\); .* the job has succeeded\..*",
                        job.err.strip().splitlines()[-1].removeprefix("hvdrun: ")), job.err


def test_left_without_goodbye_and_missed(run):
    job = run("-np", 2, sys.executable, "-c", LEAVES_AT_ONCE, "wait")
    assert job.code == 1, job.err
    assert last_block(job.err).startswith("hvdrun: rank 0 ") and "ended too early (exit code 0)" in last_block(job.err)


# ---- what the machine brings about


def test_a_working_folder_that_is_gone(run, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec {hvdrun_path()} -np 1 true"
    job = run("-c", script, program=["sh"])
    assert (job.code, job.err) == (0, "") or re.fullmatch(r"hvdrun: the working directory .* cannot be entered.*\n", last_block(job.err))


def ended_with(limit, number, user=None):
    """hvdrun under such a limit, with two workers."""

    def prepare():
        resource.setrlimit(limit, (number, number))
        if user is not None:
            os.setgid(user)
            os.setuid(user)

    return subprocess.run([ended_with.program, "-np", "2", "echo", "out"], preexec_fn=prepare, cwd="/", capture_output=True,
                          text=True, timeout=DEADLINE)


def test_too_few_descriptors_whatever_needs_them():
    """From too few for anything to enough: it works, or the last line says that there are too many open files."""
    ended_with.program = hvdrun_path()
    codes = []
    for number in range(4, 64):
        done = ended_with(resource.RLIMIT_NOFILE, number)
        codes.append(done.returncode)
        if done.returncode == 0:
            assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:out", "[1]<stdout>:out"], done
            assert done.stderr == "" or "hvd.init() will fail" in done.stderr, done  # which these ranks do not call
            if codes[-4:] == [0] * 4:
                break
        elif "error while loading shared libraries" not in done.stderr:
            assert done.returncode in (1, 126), done
            assert last_block(done.stderr).startswith("hvdrun: ") and "Too many open files" in last_block(done.stderr), done
    assert codes[0] != 0 and codes[-1] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody who runs nothing else")
def test_too_few_processes_whatever_needs_them(tmp_path):
    ended_with.program = str(tmp_path / "hvdrun")
    shutil.copy(hvdrun_path(), tmp_path)
    for path in [tmp_path, *tmp_path.parents]:
        if str(path) != "/" and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o755)
    codes = []
    for number in range(0, 32):
        done = ended_with(resource.RLIMIT_NPROC, number, user=64000 + os.getpid() % 1000)
        codes.append(done.returncode)
        if done.returncode == 0:
            assert len(done.stdout.splitlines()) == 2 and done.stderr == "", done
            if codes[-4:] == [0] * 4:
                break
        else:
            assert done.returncode in (1, 126) and last_block(done.stderr), done
            assert "Resource temporarily unavailable" in done.stderr, done
    assert codes[0] != 0 and codes[-1] == 0


@pytest.mark.parametrize("args", [["--help"], ["--print-config"], ["--print-env", "-np", "1", "true"], ["ps"],
                                  ["-np", "1", "echo", "lost"]])
def test_a_full_disk_under_stdout(run, args):
    with open("/dev/full", "wb") as full:
        job = run(*args, stdout=full)
    assert job.code == 1
    assert re.search(r"^hvdrun: stdout cannot be written: No space left on device(; .*)?\n\Z", job.err, re.M), job.err


def test_an_error_file_that_can_no_longer_be_written(start, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    job = start("-np", 1, "--error-file", folder / "error.json", "sleep", "600")
    wait_until("the worker", lambda: job.workers)
    folder.rmdir()
    os.kill(job.pid, signal.SIGTERM)
    assert job.finish() == 143
    assert re.fullmatch(r"hvdrun: ended by signal 15 \(SIGTERM\); all ranks were ended\.\nhvdrun: the error file .* cannot be "
                        r"written: No such file or directory\n", job.err), job.err


# ---- what happens to hvdrun's own processes


UNUSABLE = rf"hvdrun: host {HOST} cannot be used, so nothing was started: waiting for the agent's first word"
FAULTS = [
    # what the agent does, hvdrun's arguments, code, the last block
    ("agent-exits", [], 1, rf"{UNUSABLE}: the agent ended with exit code 2\.\n"),
    ("agent-babbles", [], 1, rf"{UNUSABLE}: its stream is damaged: .*\n"),
    ("agent-stops", ["--start-timeout", "0.5"], 1, rf"{UNUSABLE}: it took longer than 0\.5 s; .*\n"),
    ("listen", [], 126, r"hvdrun: no socket could be made for the workers\.\n"),
]


@pytest.mark.parametrize("fault, args, code, block", FAULTS, ids=[row[0] for row in FAULTS])
def test_an_agent_that_fails(run, fault, args, code, block):
    job = run("-np", 2, *args, "sleep", "600", env={"HVD_TEST_FAULT": fault})
    assert job.code == code, job.err
    assert re.fullmatch(block, last_block(job.err)), job.err
    job.nothing_left()


@pytest.mark.parametrize("victim, block", [
    ("agent", rf"hvdrun: host {HOST} was lost: the agent was ended by signal 9 \(Killed\)\. All ranks were ended\.\n"),
    ("warden", rf"hvdrun: host {HOST} was lost: the agent's warden \(pid \d+\) was ended by signal 9 \(Killed\)\. All ranks .*\n"),
])
def test_a_killed_agent_or_warden(start, victim, block):
    job = start("-np", 2, "sleep", "600")
    wait_until("the workers", lambda: len(job.workers) == 2)
    kill(getattr(job, victim))
    assert job.finish() == 1
    assert re.fullmatch(block, last_block(job.err)), job.err
    job.nothing_left()


def test_an_agent_that_is_stopped_is_silent(start):
    job = start("-np", 2, "sleep", "600", env={"HVD_TEST_SILENT_SECONDS": "6"})  # a busy machine is silent for 2
    wait_until("the workers", lambda: len(job.workers) == 2)
    os.kill(job.agent, signal.SIGSTOP)
    assert job.finish() == 1
    assert last_block(job.err) == f"hvdrun: host {HOST} was lost: its agent has been silent for 6 s. All ranks were ended.\n"
    job.nothing_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("stopped", [False, True], ids=["", "the agent does not listen"])
def test_interrupted_once_or_twice(start, number, stopped):
    job = start("-np", 2, "sleep", "600")
    wait_until("the workers", lambda: len(job.workers) == 2)
    if stopped:
        os.kill(job.agent, signal.SIGSTOP)
        for _ in range(2):
            os.kill(job.pid, number)
            time.sleep(0.05)  # two of one number may be one
    else:
        os.kill(job.pid, number)
    assert job.finish() == 128 + number
    assert last_block(job.err) == f"hvdrun: ended by signal {number.value} ({number.name}); all ranks were ended.\n"
    job.nothing_left()


def test_interrupted_while_the_last_output_waits_for_a_reader(start):
    job = start("-np", 1, "sh", "-c", "seq 30000; exit 5", stderr=subprocess.PIPE)
    read_some(job.process.stdout, 1)
    wait_until("hvdrun alone", lambda: job.processes() == [job.pid])
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() in (5, 130, -signal.SIGINT)  # the reader came back, or hvdrun was in its last write
    job.nothing_left()


@pytest.mark.parametrize("args, block", [(["agent"], r"hvdrun agent: started by hvdrun itself.*\n"), (["ps", "x"], r"hvdrun ps: .*\n"),
                                         (["stop"], r"hvdrun stop: .*\n"), (["stop", "0123456789abcdef"], r"hvdrun stop: no job .*\n")])
def test_verbs_used_wrongly(run, args, block):
    job = run(*args)
    assert job.code == 2 and re.fullmatch(block, job.err), job.err


# ---- the code of the job and the state of each rank


TABLE = [
    # what rank 0 does, what the others do, arguments, the code of the job, the states (None: all is well)
    ("exit 0 with goodbye", ["join", "goodbye", "exit=0"], ["join", "goodbye", "exit=0"], [], 0, None),
    ("exit 0 without goodbye", ["join", "exit=0"], ["join", "sleep"], [], 1, ["left", "ended", "ended"]),
    ("exit 0 without init", ["exit=0"], ["exit=0"], [], 0, None),
    ("exit 0 before the others' init", ["exit=0"], ["join", "exit=4"], [], 1, ["left", ("failed", "ended"), ("failed", "ended")]),
    ("exit 3 with goodbye", ["join", "goodbye", "exit=3"], ["join", "goodbye", "sleep"], [], 3, ["failed", "ended", "ended"]),
    ("exit 3 without goodbye", ["join", "exit=3"], ["join", "sleep"], [], 3, ["failed", "ended", "ended"]),
    ("SIGKILL inside", ["join", "kill"], ["join", "sleep"], [], 137, ["failed", "ended", "ended"]),
    ("SIGKILL outside", ["kill"], ["sleep"], [], 137, ["failed", "ended", "ended"]),
    ("an exit handler that hangs", ["join", "goodbye", "exit=5"], ["join", "goodbye", "hang-at-exit=0"],
     ["--terminate-grace", "0.3"], 5, ["failed", "ended", "ended"]),
    ("the failing one hangs at its exit", ["join", "goodbye", "hang-at-exit=5"], ["join", "goodbye", "pause=0.5", "exit=6"],
     ["--terminate-grace", "0.3"], 6, ["ended", ("failed", "ended"), ("failed", "ended")]),
]


@pytest.mark.parametrize("first, others, args, code, states", [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_codes_and_states_are_those_of_the_table(run, tmp_path, first, others, args, code, states):
    error = tmp_path / "error.json"
    steps = [f"0:{step}" for step in first] + [f"{rank}:{step}" for rank in (1, 2) for step in others]
    job = run("-np", 3, *args, "--error-file", error, *worker("link_worker.py", *steps))
    assert job.code == code, job.err
    if states is None:
        assert job.err == "" and not error.exists()
        return
    said = json.loads(error.read_text())
    assert said["exit_code"] == code and [rank["rank"] for rank in said["ranks"]] == [0, 1, 2]
    for rank, expected in zip(said["ranks"], states):
        assert rank["state"] in ([expected] if isinstance(expected, str) else expected), said["ranks"]


def test_the_loss_of_a_host(start, tmp_path):
    error = tmp_path / "error.json"
    job = start("-np", 4, "--hosts-per-machine", 2, "--error-file", error,
                "sh", "-c", "echo here; exec sleep 600")
    read_until(job.process.stdout, "here", 4)  # so hvdrun knows that all of them run
    kill(job.agent)
    assert job.finish() == 1
    said = json.loads(error.read_text())
    assert said["kind"] == "host" and said["exit_code"] == 1 and re.fullmatch("host-[01]", said["host"])
    for rank in said["ranks"]:
        assert rank["state"] == ("lost" if rank["host"] == said["host"] else "ended"), said
    assert sorted(rank["state"] for rank in said["ranks"]) == ["ended", "ended", "lost", "lost"]
    job.nothing_left()


def test_an_interrupt_has_the_state_of_each_rank(start, tmp_path):
    error = tmp_path / "error.json"
    script = f"[ $RANK = 0 ] && exit 0; touch {tmp_path}/up; exec sleep 600"  # dash may lose a SIGINT while it starts a program
    job = start("-np", 2, "--error-file", error, "sh", "-c", script)
    wait_until("rank 1 alone", lambda: (tmp_path / "up").exists() and len(job.workers) == 1)
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130
    said = json.loads(error.read_text())
    assert said["kind"] == "interrupt" and [(r["state"], r.get("exit_code"), r.get("signal")) for r in said["ranks"]] == [
        ("succeeded", 0, None), ("ended", None, signal.SIGINT)]
