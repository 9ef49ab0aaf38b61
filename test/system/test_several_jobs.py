"""Several jobs on one machine: they do not touch each other, can be listed, and can be stopped one by one."""

import os
import random
import signal
import subprocess

import pytest
from conftest import hvdrun_path, is_alive, read_proc, wait_until


def hvdrun(*args):
    return subprocess.run([hvdrun_path(), *args], capture_output=True, text=True, timeout=60)


def listed():
    done = hvdrun("ps")
    assert done.returncode == 0 and done.stderr == ""
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["JOB", "AGE", "NP", "ALIVE", "COMMAND"]
    return {line.split()[0]: line.split(None, 4)[1:] for line in lines}


def running(start, *args, ranks):
    job = start(*args)
    wait_until("the workers", lambda: sum(read_proc(p, "cmdline").startswith(b"sleep\0") for p in job.processes()) >= ranks)
    name = job.job_id()
    # hvdrun hears of a worker a moment after it runs.
    wait_until("ps counts the workers", lambda: listed()[name][1:3] == [str(ranks)] * 2)
    return job, name


def test_ps_lists_every_job_and_stop_ends_only_the_one(start):
    first, first_id = running(start, "-np", 2, "sleep", 601, ranks=2)
    second, second_id = running(start, "-np", 3, "sleep", 602, ranks=3)
    jobs = listed()
    assert jobs[first_id][1:3] == ["2", "2"] and jobs[second_id][1:3] == ["3", "3"]
    assert jobs[first_id][3].endswith("-np 2 sleep 601")
    done = hvdrun("stop", first_id)
    assert done.returncode == 0 and first_id in done.stdout
    assert first.finish() == 130
    first.nothing_left(first_id)
    assert first_id not in listed() and listed()[second_id][1:3] == ["3", "3"]
    os.kill(second.pid, signal.SIGKILL)
    second.nothing_left(second_id)


def test_a_job_on_played_hosts_is_one_job(start):
    mark = f"603.{random.randrange(1 << 30)}"  # other jobs of this user may be tests, too
    job, _ = running(start, "-np", 4, "--hosts-per-machine", 2, "sleep", mark, ranks=4)

    def mine():
        return [line[1:3] for line in listed().values() if line[3].endswith(f"sleep {mark}")]

    wait_until("four ranks of one job", lambda: mine() == [["4", "4"]], told=mine)  # a worker is counted after its exec
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130


@pytest.mark.parametrize("args", [["stop"], ["stop", "0123456789abcdef"], ["stop", "x\x1b"], ["stop", "a", "b"], ["ps", "x"]])
def test_wrong_use_is_one_sentence_and_exit_2(args):
    done = hvdrun(*args)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "\x1b" not in done.stderr


def test_an_end_of_one_job_leaves_nine_others_alone(start):
    others = [running(start, "-np", 2, "sleep", 604, ranks=2)[0] for _ in range(9)]
    for victim in ("hvdrun", "warden", "agent"):
        job, job_id = running(start, "-np", 2, "sh", "-c", "setsid sleep 605 & sleep 605", ranks=2)
        os.kill({"hvdrun": job.pid, "warden": job.warden, "agent": job.agent}[victim], signal.SIGKILL)
        job.nothing_left(job_id)
    for other in others:
        assert is_alive(other.pid) and len(other.processes()) == 5
        other.process.send_signal(signal.SIGTERM)
    assert [other.finish() for other in others] == [143] * 9
