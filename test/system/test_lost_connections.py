"""The connection between hvdrun and a host is lost while a job runs: with --driver-grace it is made anew and nothing else
happens; without it, or when the host does not come back, everything ends everywhere."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import children_of, hvdrun_path, kill, parent_of, read_proc, wait_until, foreign_worker as worker
from host_rig import WHY_NOT, rig_of
from sentences import BACK

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


rig = rig_of(2)


@pytest.fixture
def hosts_start(start, rig, client):
    yield lambda *args, **kwargs: start("--ssh-client", client, *args, program=rig.on_head(hvdrun_path()), **kwargs)
    for host in rig.hosts:  # an agent whose test has failed would wait for its driver
        for pid in host.processes():
            kill(pid)


def begin(hosts_start, grace, count, *args):
    """Two ranks on each of two hosts, which have printed their first line."""
    job = hosts_start("-np", 4, "-H", "hvd1:2,hvd2:2", "--driver-grace", grace, *args, *worker("init", f"lines={count}", "shutdown"))
    job.seen = b""
    while job.seen.count(b":line 0 x") < 4:
        line = job.process.stdout.readline()
        assert line, job.process.stderr.read().decode()
        job.seen += line
    return job


def every_line_once_and_in_order(job, count):
    text = job.seen.decode() + job.out
    for rank in range(4):
        assert re.findall(rf"^\[{rank}\]<stdout>:line (\d+) x{{2000}}$", text, re.M) == [str(n) for n in range(count)], f"rank {rank}"


@pytest.mark.parametrize("times", [1, 2])
def test_a_dropped_session_is_made_anew_and_no_rank_notices(hosts_start, rig, times):
    count = 500
    job = begin(hosts_start, 60, count)
    workers = [rank_processes(host) for host in rig.hosts]
    for _ in range(times):
        rig.hosts[1].kill_sshd()
        for _ in range(100):
            job.seen += job.process.stdout.readline()
        wait_for_words(job, "host hvd2 is back after ")
    assert [rank_processes(host) for host in rig.hosts] == workers, "no rank was started anew"
    assert job.finish() == 0, job.err
    every_line_once_and_in_order(job, count)
    said = job.words + job.err
    assert len(re.findall(r"hvdrun: the connection to host hvd2 was lost \(.*connection.*\); trying again for 60 s\n", said)) == times, said
    assert len(BACK.findall(said)) == times, said
    rig.nothing_left()


def test_ranks_work_and_end_while_their_host_is_away(hosts_start, rig):
    """The session is killed and no new one let in until the ranks there are done: nobody there has noticed."""
    count = 200
    job = begin(hosts_start, 60, count)
    host = rig.hosts[1]
    host.run("nft", "-f", "-", input="table inet f {\n chain i {\n type filter hook input priority 0;\n tcp dport 22 drop\n }\n}\n")
    try:
        host.kill_sshd()
        wait_for_words(job, "trying again")
        wait_until("the end of the ranks", lambda: not rank_processes(host))
    finally:
        host.run("nft", "delete", "table", "inet", "f")
    assert job.finish() == 0, job.err
    every_line_once_and_in_order(job, count)
    assert len(BACK.findall(job.err)) == 1, job.err
    rig.nothing_left()


def test_an_hvdrun_that_was_stopped_for_longer_than_its_heartbeat_goes_on(hosts_start, rig):
    """A laptop that was closed: the agents hear nothing, and wait."""
    count = 500
    job = begin(hosts_start, 60, count, "--heartbeat-timeout", 1)
    os.kill(job.pid, signal.SIGSTOP)
    time.sleep(4)
    os.kill(job.pid, signal.SIGCONT)
    assert job.finish() == 0, job.err
    every_line_once_and_in_order(job, count)
    assert "is back after" in job.err
    rig.nothing_left()


def rank_processes(host):
    return sorted(pid for pid in host.processes() if b"\0HOROVOD_RANK=" in read_proc(pid, "environ"))


def wait_for_words(job, words):
    """Reads what hvdrun says until these have come (once more than before)."""
    job.words = getattr(job, "words", "")
    fresh = ""
    while words not in fresh:
        line = job.process.stderr.readline().decode()
        assert line, f"hvdrun ended, and had not said {words!r}: {job.words}{fresh}"
        fresh += line
    job.words += fresh


@pytest.mark.long
def test_a_cut_link_that_comes_back_within_the_grace(hosts_start, rig):
    count = 1000
    job = begin(hosts_start, 60, count, "--heartbeat-timeout", 2)
    host = rig.hosts[1]
    host.cut()
    try:
        wait_for_words(job, "trying again")
        time.sleep(3)  # so that both sides have noticed, and some tries were in vain
    finally:
        host.join()
    assert job.finish() == 0, job.err
    every_line_once_and_in_order(job, count)
    said = job.words + job.err
    assert "hvdrun: the connection to host hvd2 was lost (its agent has been silent for 2 s); trying again for 60 s\n" in said
    assert len(BACK.findall(said)) == 1, said
    rig.nothing_left()


@pytest.fixture
def waits_for_hvd2(hosts_start, rig):
    """begin(grace): a job whose agent on hvd1 is ready while nothing reaches hvd2 yet."""
    rig.hosts[1].cut()

    def begin(grace, *args):
        job = hosts_start("-np", 4, "-H", "hvd1:2,hvd2:2", "--driver-grace", grace, "--verbose", "--stage-timeouts",
                          "connect=120,hello=120", *args, *worker("init", "sum", "shutdown"))
        wait_for_words(job, "agent on host hvd1: pid")
        wait_until("the agent's listener", lambda: "@hvd" in rig.hosts[0].run("cat", "/proc/net/unix"))
        return job

    yield begin
    rig.hosts[1].join()


def test_a_session_that_is_lost_before_the_job_starts_is_made_anew(waits_for_hvd2, rig):
    job = waits_for_hvd2(60)
    agents = agent_of(rig.hosts[0])
    rig.hosts[0].kill_sshd()
    wait_for_words(job, "host hvd1 is back after ")
    assert agent_of(rig.hosts[0]) == agents, "it has waited"
    rig.hosts[1].join()
    assert job.finish() == 0, job.words + job.err
    assert job.out.count("sum 10") == 4, job.out
    said = job.words + job.err
    assert len(re.findall(r"hvdrun: the connection to host hvd1 was lost \(.*connection.*\); trying again for 60 s\n", said)) == 1, said
    rig.nothing_left()


def test_a_job_that_is_given_up_before_it_starts_leaves_no_agent_that_waits(waits_for_hvd2, rig):
    """The session to hvd1 is gone when Ctrl-C comes; its agent would wait for a minute."""
    job = waits_for_hvd2(60)
    host = rig.hosts[0]
    host.run("nft", "-f", "-", input="table inet f {\n chain i {\n type filter hook input priority 0;\n tcp dport 22 drop\n }\n}\n")
    try:
        host.kill_sshd()
        wait_for_words(job, "trying again")
        os.kill(job.pid, signal.SIGINT)
    finally:
        host.run("nft", "delete", "table", "inet", "f")
    assert job.finish() == 130, job.words + job.err
    rig.nothing_left()


def test_a_host_that_does_not_come_back_is_lost_for_the_first_reason(hosts_start, rig):
    job = begin(hosts_start, 3, 100000, "--heartbeat-timeout", 2)
    host = rig.hosts[1]
    host.cut()
    try:
        assert job.finish() == 1, job.err
        assert re.search(r"hvdrun: host hvd2 was lost: its agent has been silent for 2 s; it could not be reached again within 3 s.*\. "
                         r"All ranks were ended\.\n$", job.err), job.err
        assert "hvdrun: what is left of the job on host hvd2 could not be ended from here (no answer within 4 s); " in job.err
        rig.nothing_left()  # over there the agent has waited in vain, too
    finally:
        host.join()


def agent_of(host):
    return next(pid for pid in host.agents() if parent_of(pid) in host.agents())


def warden_of(host):
    return parent_of(agent_of(host))


@pytest.mark.parametrize("who", [agent_of, warden_of])
def test_an_agent_that_is_gone_is_not_waited_for(hosts_start, rig, who):
    job = begin(hosts_start, 3600, 100000)
    kill(who(rig.hosts[1]))
    assert job.finish() == 1
    assert re.search(r"hvdrun: host hvd2 was lost: .*; its agent is not there any more\. All ranks were ended\.\n$", job.err), job.err
    rig.nothing_left()


def test_a_killed_hvdrun_is_waited_for_no_longer_than_the_grace(hosts_start, rig):
    job = begin(hosts_start, 4, 100000)
    kill(job.pid)
    time.sleep(1)
    assert [len(rank_processes(host)) for host in rig.hosts] == [2, 2], "the ranks go on"
    rig.nothing_left()


@pytest.mark.long
def test_ctrl_c_while_a_host_is_away_ends_the_others_and_says_what_becomes_of_it(hosts_start, rig):
    job = begin(hosts_start, 20, 100000, "--heartbeat-timeout", 2)  # SIGINT, SIGTERM and SIGKILL take their graces
    host = rig.hosts[1]
    host.cut()
    try:
        wait_for_words(job, "trying again")
        os.kill(job.pid, signal.SIGINT)
        wait_until("the end of the ranks that can be told", lambda: not rank_processes(rig.hosts[0]))
        assert job.finish() == 130, job.err
        assert re.search(r"hvdrun: host hvd2 could not be told to end, .*; its agent ends by itself within 20 s\n", job.err), job.err
        rig.nothing_left()
    finally:
        host.join()


def test_a_job_that_fails_while_a_host_is_away_ends_it_as_soon_as_it_is_back(hosts_start, rig):
    job = begin(hosts_start, 60, 100000, "--heartbeat-timeout", 2)
    host = rig.hosts[1]
    host.cut()
    try:
        wait_for_words(job, "trying again")
        kill(rank_processes(rig.hosts[0])[0])
    finally:
        host.join()
    assert job.finish() == 137, job.err
    assert re.search(r"hvdrun: rank [01] on host hvd1 \(pid \d+\) failed: signal 9", job.err), job.err
    assert "could not be told" not in job.err
    rig.nothing_left()


KNOCK = """
import array, os, socket, sys
os.setuid(int(sys.argv[2]))
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.connect("\\0" + sys.argv[1])
ours, theirs = socket.socketpair()


def heard(of):
    try:
        return of.recv(65536)
    except ConnectionResetError:
        return b""


try:
    listener.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()] * 2))])
    ours.sendall(b"0" * 64)
except BrokenPipeError:
    pass
theirs.close()
print("said", heard(ours), "listener", heard(listener))
"""


@pytest.mark.parametrize("user", [0, 65534])
def test_whoever_has_not_the_key_gets_nothing_from_a_waiting_agent(hosts_start, rig, user):
    count = 300
    job = begin(hosts_start, 60, count)
    names = re.findall(r"@(hvd-resume-\w+)", rig.hosts[1].run("cat", "/proc/net/unix"))
    assert len(names) == 1
    for _ in range(20):  # more than the listener takes at once
        assert rig.hosts[1].run(sys.executable, "-c", KNOCK, names[0], user) == "said b'' listener b''\n"
    assert job.finish() == 0 and "hvd2" not in job.err, job.err
    every_line_once_and_in_order(job, count)
    rig.nothing_left()


SQUAT = """
import os, pathlib, re, socket, sys
# Another user, who sees the id of a job in a command line and takes any name that follows from it.
os.setgid(65534)
os.setuid(65534)
taken = {}
print("there", flush=True)
while True:
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\\0")
        except OSError:
            continue
        for word in words:
            if not re.fullmatch(b"[0-9a-f]{16}", word) or b"agent" not in words or word in taken:
                continue
            squat = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                squat.bind(b"\\0hvd-resume-" + word)
                squat.listen()
            except OSError:
                pass
            taken[word] = squat
            print("squats", flush=True)
"""


def test_a_stranger_cannot_take_the_name_of_the_resume_listener(hosts_start, rig):
    count = 300
    host = rig.hosts[1]
    stranger = subprocess.Popen(host.command(sys.executable, "-c", SQUAT), stdout=subprocess.PIPE)
    try:
        assert stranger.stdout.readline() == b"there\n"
        job = begin(hosts_start, 20, count)
        assert stranger.stdout.readline() == b"squats\n"
        host.kill_sshd()
        assert job.finish() == 0, job.err
        assert "host hvd2 is back after " in job.err
        every_line_once_and_in_order(job, count)
    finally:
        for pid in [*children_of(stranger.pid), stranger.pid]:  # nsenter's child is the stranger
            kill(pid)
        stranger.communicate()
    rig.nothing_left()


# ---- agents that are stopped


@pytest.mark.parametrize("stopped", [[agent_of], [warden_of, agent_of]], ids=["agent", "agent and warden"])
@pytest.mark.parametrize("grace", [0, 3])
def test_nothing_is_left_of_a_host_whose_agent_is_stopped(hosts_start, rig, stopped, grace):
    job = begin(hosts_start, grace, 100000, "--heartbeat-timeout", 2)
    for pid in [who(rig.hosts[1]) for who in stopped]:
        os.kill(pid, signal.SIGSTOP)
    assert job.finish() == 1
    assert re.search(r"hvdrun: host hvd2 was lost: its agent has been silent for 2 s.*\. All ranks were ended\.\n$", job.err), job.err
    rig.nothing_left()


def test_nothing_is_left_of_a_stopped_agent_when_the_user_does_not_wait_for_its_heartbeat(hosts_start, rig):
    job = begin(hosts_start, 0, 100000, "--heartbeat-timeout", 3600, "--terminate-grace", 1)
    os.kill(agent_of(rig.hosts[1]), signal.SIGSTOP)
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130, job.err
    rig.nothing_left()
