"""hvdrun, warden and agent killed at once: nobody is left to end what the job had started, so the next one does."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import children_of, environ_has, hvdrun_path, is_alive, kill, read_proc, wait_until
from test_ends import MAY_MAKE_CGROUPS, cgroup2_folder, cgroups_left

# Each rank leaves two behind: one of its own session, one that has left it.
FAMILY = ["sh", "-c", "sleep 600 & setsid sleep 600 & touch \"$0/$HOROVOD_RANK\"; wait", "{folder}"]
WITHOUT = ["", "cgroup"]
LOOKS_S = 8  # longer than the warden waits for the pulse of an agent that nobody leads


def begin(start, folder, *options, without="", ranks=2):
    job = start("-np", ranks, *options, *FAMILY[:3], str(folder), env={"HVD_TEST_WITHOUT": without})
    wait_until("the ranks", lambda: all((folder / str(r)).exists() for r in range(ranks)))
    wait_until("their children", lambda: len(job.processes()) == 3 + 3 * ranks)
    return job


def kill_as_a_whole(job):
    """In the order in which nobody can do anything about it."""
    own, ranks = [job.pid, job.warden, job.agent], job.workers
    for pid in own:
        os.kill(pid, signal.SIGSTOP)
    for pid in own:
        os.kill(pid, signal.SIGKILL)
    job.process.wait()
    wait_until("the end of all", lambda: not any(is_alive(p) for p in (*own, *ranks)))


def hvdrun(*words, without="", prefix=()):
    return subprocess.run([*prefix, hvdrun_path(), *words], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, HVD_TEST_WITHOUT=without))


def ended_by(command, start, folder, without):
    """The output of `command(job id)` about a job whose processes are gone after it. Any hvdrun of this user that happens to
    run ends them, too, and may be faster: then there is nothing to say, and it is done once more."""
    for attempt in range(5):
        place = folder / str(attempt)
        place.mkdir()
        job = begin(start, place, without=without)
        job_id = job.job_id()
        kill_as_a_whole(job)
        ended = command(job_id)
        assert not job.processes(), ended.stderr
        if "killed as a whole" in ended.stderr:
            return ended, job_id
    pytest.fail("it is never said: " + ended.stderr)


@pytest.mark.parametrize("without", WITHOUT)
@pytest.mark.parametrize("verb", ["run", "ps", "stop", "doctor"])
def test_what_a_job_killed_as_a_whole_has_left_is_ended_by_the_next(start, tmp_path, verb, without):
    def command(job_id):
        words = {"run": ("-np", "1", "true"), "ps": ("ps",), "stop": ("stop", job_id), "doctor": ("doctor",)}[verb]
        return hvdrun(*words, without=without)

    ended, job_id = ended_by(command, start, tmp_path, without)
    assert ended.returncode == 0 or verb == "doctor", ended.stderr
    assert f"job {job_id} was killed as a whole" in ended.stderr and "4 processes" in ended.stderr


@pytest.mark.parametrize("without", WITHOUT)
def test_a_job_that_is_alive_is_left_alone(start, tmp_path, without):
    job = begin(start, tmp_path, without=without)
    before = job.processes()
    for stopped in ([], [job.agent], [job.warden, job.agent], [job.pid, job.warden, job.agent]):
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        for words in (("ps",), ("-np", "1", "true")):
            shown = hvdrun(*words, without=without)
            assert shown.returncode == 0 and "killed as a whole" not in shown.stderr
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert all(is_alive(p) for p in before)


@pytest.mark.parametrize("without", WITHOUT)
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare for a pid namespace")
def test_a_job_whose_agent_is_out_of_sight_is_left_alone(start, tmp_path, without):
    """A rank is a container: in it one sees processes of the job, and no agent."""
    inside = f"sleep 600 & {hvdrun_path()} ps 2>{tmp_path}/said; {hvdrun_path()} -np 1 true; echo $? >{tmp_path}/code; sleep 600"
    job = start("-np", 1, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside,
                env={"HVD_TEST_WITHOUT": without})
    wait_until("the job inside", lambda: (tmp_path / "code").exists() and (tmp_path / "code").read_text())
    assert (tmp_path / "code").read_text() == "0\n" and (tmp_path / "said").read_text() == ""
    wait_until("both sleep", lambda: len([p for p in job.processes() if read_proc(p, "cmdline").startswith(b"sleep\0")]) == 2)
    # Seen from outside it is an ordinary job.
    kill_as_a_whole(job)
    hvdrun("ps", without=without)
    job.nothing_left()


def test_what_others_have_started_with_its_environment_is_left_alone(start, tmp_path):
    """As sbatch and at do: it has parents of its own."""
    job = begin(start, tmp_path, without="cgroup")
    entries = [e.split(b"=", 1) for e in read_proc(job.workers[0], "environ").split(b"\0") if e]
    at = ("import subprocess, sys; "
          "subprocess.run(['sh', '-c', 'sleep 600 & wait'], env=dict(e.split('=', 1) for e in sys.argv[1:]))")
    server = subprocess.Popen([sys.executable, "-S", "-E", "-c", at, *(b"=".join(e).decode() for e in entries)], env={})
    try:
        wait_until("what it starts", lambda: [p for c in children_of(server.pid) for p in children_of(c)])
        shell = children_of(server.pid)[0]
        spared = [shell, *children_of(shell)]
        assert all(environ_has(p, "HVD_JOB_ID", job.job_id()) for p in spared)
        kill_as_a_whole(job)
        hvdrun("ps", without="cgroup")
        assert [p for p in job.processes() if p not in spared] == []
        assert all(is_alive(p) for p in spared)
    finally:
        for pid in [server.pid, *spared]:
            kill(pid)
        server.wait()


# ---- an agent that is stopped


def test_a_stopped_agent_whose_driver_is_killed_ends_with_its_job(start, tmp_path):
    job = begin(start, tmp_path)
    os.kill(job.agent, signal.SIGSTOP)
    os.kill(job.pid, signal.SIGKILL)
    job.nothing_left(within=40)  # nobody continues the agent


@pytest.mark.skipif(not MAY_MAKE_CGROUPS, reason="no cgroup can be made here")
def test_an_agent_without_a_driver_leaves_no_cgroup_to_its_warden(start):
    """The warden may be killed before its turn."""
    job = start("-np", 2, "sleep", "600")
    wait_until("the ranks", lambda: len(job.workers) == 2)
    agent, warden, job_id = job.agent, job.warden, job.job_id()
    os.kill(warden, signal.SIGSTOP)
    os.kill(job.pid, signal.SIGKILL)
    wait_until("the end of the agent", lambda: not is_alive(agent))
    os.kill(warden, signal.SIGKILL)
    job.nothing_left()
    assert not any(job_id in name for name in cgroups_left())


@pytest.mark.skipif(not MAY_MAKE_CGROUPS, reason="no cgroup can be made here")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare for a pid namespace")
def test_the_cgroup_of_a_killed_container_is_removed(tmp_path):
    """Its first process is killed, and all others with it. Those of a container that lives are left alone, also while empty."""
    folder = cgroup2_folder()
    inside = f"{hvdrun_path()} -np 1 sh -c 'echo $HVD_JOB_ID > {tmp_path}/$0; sleep 600' $0 & wait"
    containers = []

    def contain(name):
        containers.append(subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside, name]))
        wait_until("its job", lambda: (tmp_path / name).exists() and (tmp_path / name).read_text())
        return (tmp_path / name).read_text().strip()

    def is_empty(name):
        try:
            return not (pathlib.Path(folder) / name / "cgroup.procs").read_text()
        except OSError:
            return True  # it is gone

    def is_left(job):
        return any(job in name for name in cgroups_left())

    try:
        alive = contain("alive")
        for attempt in range(10):  # until none of the hvdruns of other tests, which remove such groups, too, was quicker
            dead = contain(f"dead-{attempt}")
            assert is_left(dead) and is_left(alive)
            containers[-1].kill()
            wait_until("the end of its processes", lambda: all(is_empty(name) for name in cgroups_left() if dead in name))
            if is_left(dead):
                break
        else:
            pytest.fail("a killed container has never left a group")
        assert hvdrun("ps").returncode == 0
        assert not is_left(dead) and is_left(alive)
    finally:
        for container in containers:
            container.kill()
            container.wait()
        hvdrun("ps")
    wait_until("the end of both", lambda: hvdrun("ps").returncode == 0 and not is_left(alive))


@pytest.mark.long
def test_a_stopped_agent_of_a_live_driver_goes_on(start, tmp_path):
    job = begin(start, tmp_path)
    agent = job.agent
    os.kill(agent, signal.SIGSTOP)
    os.kill(job.pid, signal.SIGSTOP)
    everybody = job.processes()
    time.sleep(LOOKS_S)
    assert all(is_alive(p) for p in everybody)
    os.kill(job.pid, signal.SIGCONT)
    time.sleep(LOOKS_S)
    assert all(is_alive(p) for p in everybody)
    os.kill(agent, signal.SIGCONT)
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130
    job.nothing_left()
