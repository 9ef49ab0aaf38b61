"""Agents that pass hvdrun's messages on to each other, over seven hosts and a tree of two branches each."""

import os
import signal
import subprocess
import sys

import pytest
from conftest import hvdrun_path, kill, parent_of, read_proc, wait_until, foreign_worker as worker
from host_rig import WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
COUNT = 7
HOSTS = ",".join(f"hvd{i}" for i in range(1, COUNT + 1))
# 0 has 1-3 below it, 4 has 5-6; the first of each block passes on to the rest.
TREE = ("--tree-radix", "2", "-H", HOSTS, "-np", str(COUNT))


rig = rig_of(COUNT)


@pytest.fixture
def tree_run(run, rig):
    return lambda *args, **kwargs: run(*TREE, *args, program=rig.on_head(hvdrun_path()), **kwargs)


@pytest.fixture
def tree_start(start, rig):
    return lambda *args, **kwargs: start(*TREE, *args, program=rig.on_head(hvdrun_path()), **kwargs)


def connections_of(agent):
    """TCP connections of an agent: those of the tree. Its stream is a pair of pipes."""
    def target(fd):
        try:
            return os.readlink(f"/proc/{agent}/fd/{fd}")
        except OSError:
            return ""  # closed meanwhile
    inodes = {target(fd) for fd in os.listdir(f"/proc/{agent}/fd")}
    lines = [line.split() for table in ("tcp", "tcp6")
             for line in read_proc(agent, f"net/{table}").decode().splitlines()[1:]]
    return sum(fields[3] == "01" and f"socket:[{fields[9]}]" in inodes for fields in lines)


def agent_of(host):
    """The one under the warden; none yet, or not any more: None."""
    agents = host.agents()
    return next((pid for pid in agents if parent_of(pid) in agents), None)


def test_messages_of_a_job_go_over_the_tree(tree_run, rig):
    job = tree_run(*worker("init", "world", "sum", "shutdown"))
    assert job.code == 0, job.out + job.err
    assert job.out.count("sum 28") == COUNT
    rig.nothing_left()


@pytest.mark.parametrize("count, radix", [(3, 2), (5, 2), (7, 6)])
def test_a_branch_may_be_one_host_alone(run, rig, count, radix):
    """Of 3 hosts 0 has 1 below it, and 2 nobody. However large --tree-radix, there are at most four branches: of 7 hosts, 2 2 2 1."""
    job = run("--tree-radix", radix, "-H", ",".join(HOSTS.split(",")[:count]), "-np", count, *worker("init", "world", "sum", "shutdown"),
              program=rig.on_head(hvdrun_path()))
    assert job.code == 0, job.out + job.err
    assert job.out.count(f"sum {count * (count + 1) // 2}") == count
    rig.nothing_left()


def stand(rig):
    """The tree is there: hvd1 and hvd5 have two below them, hvd2 one."""
    def connected():
        agents = [agent_of(host) for host in rig.hosts]
        return all(agents) and [connections_of(agent) for agent in agents] == [2, 2, 1, 1, 2, 1, 1]
    wait_until("every agent connected to those beside it in the tree", connected)


def test_agents_are_connected_to_their_parent_and_their_children_only(tree_start, rig):
    job = tree_start("sleep", "1000")
    stand(rig)
    job.process.send_signal(signal.SIGTERM)
    code = job.finish()
    assert code == 128 + signal.SIGTERM
    rig.nothing_left()


@pytest.mark.parametrize("number", [1, 2, 3, 5, 7])
def test_an_agent_that_is_killed_is_the_first_cause_wherever_it_stands(tree_start, rig, number):
    job = tree_start(*worker("init", "sum", "sums"))
    stand(rig)
    kill(agent_of(rig.hosts[number - 1]))
    code = job.finish()
    assert code != 0 and job.err, (code, job.out, job.err)
    assert f"hvd{number}" in job.err.strip().splitlines()[0], job.err
    rig.nothing_left()


@pytest.mark.parametrize("number", [2, 4])
def test_a_rank_that_fails_is_the_first_cause_wherever_it_stands(tree_run, rig, number):
    job = tree_run("sh", "-c", f'test "$HOROVOD_RANK" != {number} || exit 7; exec sleep 1000')
    assert job.code == 7, job.err
    assert f"rank {number} on host hvd{number + 1}" in job.err
    rig.nothing_left()


def test_a_host_that_is_cut_off_in_the_middle_of_the_tree_is_the_cause(tree_start, rig):
    job = tree_start("--heartbeat-timeout", "2", "sleep", "1000")
    stand(rig)
    rig.hosts[1].cut()
    try:
        job.finish()
    finally:
        rig.hosts[1].join()
    assert "host hvd2" in job.err, job.err
    rig.nothing_left()


def test_ranks_come_back_to_the_next_world(tree_run, rig):
    job = tree_run(*worker("init", "sum", "shutdown", "init", "sum", "shutdown"))
    assert job.code == 0, job.out + job.err
    assert job.out.count("sum 28") == 2 * COUNT
    rig.nothing_left()


LISTENER = """
import socket
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
packets.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: nothing is dropped
print("up", flush=True)
with open({path!r}, "wb", buffering=0) as file:
    while True:
        file.write(packets.recv(65536))
"""


def test_nobody_on_the_way_reads_what_agents_tell_each_other(tree_run, rig, tmp_path):
    """The last output of a rank goes up the tree with its end; the way from hvd3 is hvd2, hvd1, hvdrun."""
    heard = tmp_path / "heard"
    listener = rig.spawn(sys.executable, "-S", "-c", LISTENER.format(path=str(heard)), stdout=subprocess.PIPE)
    assert listener.stdout.readline() == b"up\n"
    try:
        job = tree_run("sh", "-c", 'test "$HOROVOD_RANK" != 2 || { echo a-canary-of-rank-$HOROVOD_RANK >&2; exit 7; }; '
                       "exec sleep 1000")
    finally:
        listener.kill()
        listener.wait()
    assert job.code == 7 and "a-canary-of-rank-2" in job.err, job.err
    packets = heard.read_bytes()
    assert packets.count(b"HvMh") >= COUNT - 2, "the hellos of the tree were not heard"
    assert packets.count(b"a-canary-of-rank") == 0
    rig.nothing_left()


LIAR = r"""
import os, re
started = re.compile(rb"(\x09\0\0\0Hv\x04.{33}\x01)\x01\0\0\0", re.DOTALL)
while piece := os.read(0, 1 << 20):
    piece = started.sub(rb"\g<1>\0\0\0\0", piece)
    while piece:
        piece = piece[os.write(1, piece):]
"""


def test_a_host_that_speaks_of_another_hosts_rank_is_given_up(run, rig, tmp_path):
    """Between hvdrun and the agent of hvd2 somebody has the agent say that it started rank 0, which is on hvd1."""
    (tmp_path / "liar.py").write_text(LIAR)
    agent = tmp_path / "rsh"
    agent.write_text("#!/bin/sh\nhost=$1; shift\n" + "".join(
        f'[ $host = {host.name} ] && {" ".join(host.command())} /bin/sh -c "$*"{lie}\n'
        for host, lie in zip(rig.hosts, ["", f" | {sys.executable} -S {tmp_path}/liar.py"])))
    agent.chmod(0o755)
    job = run("--rsh-agent", agent, "-H", "hvd1:1,hvd2:1", "-np", 2, "sleep", "1000", program=rig.on_head(hvdrun_path()))
    assert job.code == 1, job.err
    assert "hvd2" in job.err and "reported unknown rank 0" in job.err, job.err
    rig.nothing_left()
