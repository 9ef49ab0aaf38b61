"""Hosts that ssh reaches and that do not reach each other: the bytes of their ranks go through hvdrun."""

import os
import re
import signal

import pytest
from conftest import WORKERS, kill, parent_of, read_proc, foreign_worker as worker
from host_rig import WHY_NOT, rig_of
from sentences import ENDED_BY_SIGINT, killed

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

PYTHON = "/usr/bin/python3"
WARNING = (r"The data of their ranks go through this machine, at [\d.]+ MB/s in all "
           r"\(measured; [\d.]+ ms there and back\)\. ")


rig = rig_of(4)


@pytest.fixture
def firewall(rig):
    """firewall(host, rule): packets to the host that begin a connection, to any port but 22, are handled so."""
    closed = []

    def close(host, rule="reject with tcp reset", sources=""):
        closed.append(host)
        host.run("nft", "-f", "-", input="table inet f {\n chain i {\n type filter hook input priority 0;\n"
                 " iif lo accept\n" f" {sources} tcp flags & (syn | ack) == syn tcp dport != 22 {rule}\n" " }\n}\n")

    yield close
    for host in closed:
        host.run("nft", "delete", "table", "inet", "f")


def warnings(job):
    return re.findall(r"^hvdrun: (.*) ?" + WARNING, job.err, re.M)


@pytest.mark.parametrize("rule", ["reject with tcp reset", "drop"])
def test_two_hosts_of_which_only_ssh_gets_through_form_a_world(hosts_run, rig, firewall, rule):
    for host in rig.hosts[:2]:
        firewall(host, rule)
    job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:2", *worker("init", "world", "sum", "large", "shutdown"))
    assert job.code == 0, job.err
    assert job.out.count("sum 10") == 4 and job.out.count("large") == 4
    assert warnings(job) == ["hosts hvd1 and hvd2 do not reach each other. "], job.err
    assert re.search(r"Host hvd1 says: it cannot reach hvd2 \(.*10\.99\.0\.3:\d+: .*\)\. .*--port-range", job.err), job.err
    rig.nothing_left()


def training(*steps):
    return [PYTHON, WORKERS / "training_worker.py", *steps]


def digests(job):
    assert job.code == 0, job.out + job.err
    return re.findall(r"weights (\w{64})$", job.out, re.M)


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 4])
def test_training_gives_the_same_numbers_as_without_a_firewall(hosts_run, rig, firewall, count):
    """No host reaches any other."""
    args = ["-np", count, "-H", ",".join(host.name for host in rig.hosts[:count]), *training("train", "big")]
    free = hosts_run(*args)
    assert len(set(digests(free))) == 1 and not warnings(free) and "hvdrun" not in free.err, free.err
    for host in rig.hosts[:count]:
        firewall(host)
    relayed = hosts_run(*args)
    assert digests(relayed) == digests(free) and relayed.out.count("big") == count
    who = "hosts hvd1 and hvd2 do not reach each other" if count == 2 else "none of the 4 hosts reaches another"
    assert warnings(relayed) == [who + ". "], relayed.err
    rig.nothing_left()


def test_one_pair_among_four_is_relayed_and_the_others_connect(hosts_run, rig, firewall):
    for host, other in ((rig.hosts[1], rig.hosts[2]), (rig.hosts[2], rig.hosts[1])):
        other_v6 = rig.address6(other.number)
        firewall(host, f"ip saddr {other.address} reject with tcp reset\n"
                       f" tcp flags & (syn | ack) == syn tcp dport != 22 ip6 saddr {other_v6} reject with tcp reset")
    job = hosts_run("-np", 4, "-H", "hvd1,hvd2,hvd3,hvd4", "--verbose", *worker("init", "sum", "large", "shutdown"))
    assert job.code == 0 and job.out.count("sum 10") == 4 and job.out.count("large") == 4, job.err
    assert "hosts hvd2 and hvd3 do not reach each other. The data" in job.err, job.err
    blocked = re.findall(r"^hvdrun: host (\w+): it cannot reach (\w+) ", job.err, re.M)
    assert sorted(blocked) == [("hvd2", "hvd3"), ("hvd3", "hvd2")], "all others connect as usual"
    assert all(f"host {host.name} is reached at " in job.err for host in rig.hosts)
    rig.nothing_left()


def test_agents_that_do_not_reach_each_other_form_no_tree(hosts_run, rig, firewall):
    for host in rig.hosts:
        firewall(host)
    job = hosts_run("-np", 4, "-H", "hvd1,hvd2,hvd3,hvd4", "--tree-radix", 2, *worker("init", "sum", "shutdown"))
    assert job.code == 0 and job.out.count("sum 10") == 4, job.out + job.err
    assert warnings(job) == ["none of the 4 hosts reaches another. "], job.err
    rig.nothing_left()


def test_a_way_that_works_in_one_direction_only_is_relayed_in_the_other(hosts_run, rig, firewall):
    """As behind NAT: hvd2 can begin connections, and nobody can begin one to it."""
    firewall(rig.hosts[1])
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--verbose", *worker("init", "sum", "large", "shutdown"))
    assert job.code == 0 and job.out.count("sum 3") == 2 and job.out.count("large") == 2, job.err
    assert "host hvd1 does not reach host hvd2. The data" in job.err, job.err
    assert re.search(r"host hvd1 is reached at \S+ by hvd2\n", job.err), job.err
    rig.nothing_left()


def test_without_the_relay_a_firewall_is_named_before_anything_starts(hosts_run, rig, firewall):
    for host in rig.hosts[:2]:
        firewall(host)
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--relay", "never", "touch", rig.folder / "started")
    assert job.code == 1 and not (rig.folder / "started").exists()
    for one, other in ((1, 2), (2, 1)):
        assert re.search(rf"hvd{one}: looking for an address .*: it cannot reach hvd{other} \(.*\); look for a firewall .*; "
                         r"nothing is relayed because of --relay never", job.err), job.err
    rig.nothing_left()


def test_a_killed_rank_is_the_first_cause_through_the_relay_too(hosts_start, rig, firewall):
    for host in rig.hosts[:2]:
        firewall(host)
    job = hosts_start("-np", 2, "-H", "hvd1,hvd2", *training("busy"))
    for _ in range(2):
        assert b":busy " in job.process.stdout.readline()
    victim = [pid for pid in rig.hosts[1].processes() if b"training_worker" in read_proc(pid, "cmdline")][0]
    kill(victim)
    assert job.finish() == 137
    assert re.search(killed(1, "hvd2"), job.err), job.err
    assert re.search(r"told: .*rank 1 on host hvd2 \(pid \d+\) died in the middle of the job", job.out), job.out
    rig.nothing_left()


def test_a_lost_host_ends_what_is_relayed_to_it(hosts_start, rig, firewall):
    for host in rig.hosts[:3]:
        firewall(host)
    job = hosts_start("-np", 3, "-H", "hvd1,hvd2,hvd3", *training("busy"))
    for _ in range(3):
        assert b":busy " in job.process.stdout.readline()
    kill(next(pid for pid in rig.hosts[1].agents() if parent_of(pid) in rig.hosts[1].agents()))
    assert job.finish() == 1
    assert re.search(r"hvdrun: host hvd2 was lost: the agent was ended by signal 9.* All ranks were ended\.", job.err), job.err
    rig.nothing_left()


def test_logs_and_generations_pass_a_relay_that_is_full(hosts_run, rig, firewall):
    for host in rig.hosts[:2]:
        firewall(host)
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", *training("talk", "again", "train", "again", "talk"))
    assert len(set(digests(job))) == 1
    for rank in range(2):
        lines = re.findall(rf"^\[{rank}\]<stdout>:line (\d+) (\d+) \.{{200}}$", job.out, re.M)
        assert lines == 2 * [(str(step), str(line)) for step in range(100) for line in range(20)]
    rig.nothing_left()


def test_programs_that_connect_by_themselves_get_the_name_of_the_first_host(hosts_run, rig, firewall):
    for host in rig.hosts[:2]:
        firewall(host)
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "sh", "-c", "echo master $MASTER_ADDR")
    assert job.code == 0 and job.out.count("master hvd1\n") == 2, job.err


def test_ctrl_c_ends_a_job_that_relays_all_it_can(hosts_start, rig, firewall):
    for host in rig.hosts[:2]:
        firewall(host)
    job = hosts_start("-np", 2, "-H", "hvd1,hvd2", "--heartbeat-timeout", "5", *training("busy"))
    for _ in range(2):
        assert b":busy " in job.process.stdout.readline()
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130, job.err
    assert job.err.splitlines()[-1] == ENDED_BY_SIGINT
    rig.nothing_left()
