"""Jobs over several hosts with an sshd each."""

import os
import pathlib
import pwd
import random
import re
import signal
import subprocess
import time

import pytest
from conftest import hvdrun_path, kill, parent_of, pids, read_proc, wait_until, foreign_worker as worker
from host_rig import SSHD, WHY_NOT, HostRig, rig_of
from sentences import ENDED_BY_SIGINT, killed

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


rig = rig_of(4)


@pytest.fixture
def hosts_run(run, rig, client):
    return lambda *args, **kwargs: run("--ssh-client", client, *args, program=rig.on_head(hvdrun_path()), **kwargs)


@pytest.fixture
def hosts_start(start, rig, client):
    return lambda *args, **kwargs: start("--ssh-client", client, *args, program=rig.on_head(hvdrun_path()), **kwargs)


def test_a_command_runs_on_every_host(hosts_run, rig):
    job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:1,hvd3:1", "hostname")
    assert job.code == 0, job.err
    assert sorted(job.out.split()) == ["[0]<stdout>:hvd1", "[1]<stdout>:hvd1", "[2]<stdout>:hvd2", "[3]<stdout>:hvd3"]
    rig.nothing_left()


def test_ranks_of_several_hosts_form_one_world(hosts_run, rig):
    job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:1,hvd3:1", *worker("init", "world", "sum", "shutdown"))
    assert job.code == 0, job.err
    assert job.out.count("sum 10") == 4
    rig.nothing_left()


def test_the_agents_prove_at_which_addresses_they_reach_each_other(hosts_run, rig):
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--verbose", "sh", "-c", "echo master $MASTER_ADDR")
    assert job.code == 0, job.err
    for one, other in ((1, 2), (2, 1)):
        assert re.search(rf"host hvd{one} is reached at (10\.99\.0\.{one + 1}|fd99::{one + 1}) by hvd{other}\n", job.err)
    assert len(re.findall(r"master (10\.99\.0\.2|fd99::2)\n", job.out)) == 2


def test_hosts_without_ipv4(hosts_run, rig):
    for host in rig.hosts[:2]:
        host.ip(f"addr del {host.address}/16 dev eth0")
    try:
        job = hosts_run("-np", 2, "-H", "hvd1-v6,hvd2-v6", *worker("init", "sum", "shutdown"))
    finally:
        for host in rig.hosts[:2]:
            host.ip(f"addr add {host.address}/16 dev eth0")
    assert job.code == 0 and job.out.count("sum 3") == 2, job.err


def test_an_interface_with_the_same_address_everywhere_is_in_nobodys_way(hosts_run, rig):
    """docker0 has 172.17.0.1 on every host: it leads to oneself, and proves nothing."""
    for host in rig.hosts[:3]:
        host.ip("link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up")
    try:
        job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", "--verbose", *worker("init", "sum", "shutdown"))
    finally:
        for host in rig.hosts[:3]:
            host.ip("link del docker0")
    assert job.code == 0 and job.out.count("sum 6") == 3, job.err
    assert "is reached at" in job.err and "is reached at 172.17" not in job.err


@pytest.fixture
def unlike_networks(rig):
    """The network card of each host has another name; all have a docker0 with the same address, and one a network of its own."""
    names = ("eth0", "ens3", "enp1s0")

    def rename(host, old, new):
        if old != new:
            host.ip(f"link set {old} down", f"link set {old} name {new}", f"link set {new} up",
                    f"addr add {rig.address6(host.number)}/64 dev {new} nodad")

    for host, name in zip(rig.hosts, names):
        rename(host, "eth0", name)
        host.ip("link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up")
    rig.hosts[0].ip("link add dead0 type bridge", "addr add 192.168.77.1/24 dev dead0", "link set dead0 up")
    yield rig
    rig.hosts[0].ip("link del dead0")
    for host, name in zip(rig.hosts, names):
        host.ip("link del docker0")
        rename(host, name, "eth0")


def test_cards_of_any_name_meet_in_the_network_that_they_share(hosts_run, unlike_networks):
    rig, steps = unlike_networks, worker("init", "sum", "shutdown")
    job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", "--verbose", *steps)
    assert job.code == 0 and job.out.count("sum 6") == 3, job.err
    used = set(re.findall(r"is reached at (\S+) by", job.err))
    assert used and all(address.startswith(("10.99.", "fd99::")) for address in used), used
    job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", "--verbose", "--network-interfaces", "10.99.0.0/16", *steps)
    assert job.code == 0 and job.out.count("sum 6") == 3, job.err
    used = set(re.findall(r"is reached at (\S+) by", job.err))
    assert used == {rig.address(number) for number in (1, 2, 3)}, used
    job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", "--network-interfaces", "192.168.77.0/24", "touch", rig.folder / "started")
    assert job.code == 1 and not (rig.folder / "started").exists()
    for number in (2, 3):
        assert re.search(rf"^  hvd{number}: looking for an address .*: no address of it is in 192\.168\.77\.0/24; it has .*{rig.address(number)}", job.err, re.M), job.err
    job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", "--network-interfaces", "10.99.0.0/33", "true")
    assert job.code == 2 and "'10.99.0.0/33' is no range of addresses" in job.err, job.err
    rig.nothing_left()


def test_the_network_interface_can_be_named(hosts_run, rig):
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--network-interfaces", "eth0", *worker("init", "sum", "shutdown"))
    assert job.code == 0 and job.out.count("sum 3") == 2, job.err
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--network-interfaces", "ib7", "touch", rig.folder / "started")
    assert job.code == 1 and not (rig.folder / "started").exists()
    assert re.search(r"hvd1, hvd2: looking for an address .*: there is no network interface 'ib7' with an address; "
                     r"those with one are .*eth0", job.err), job.err
    rig.nothing_left()


def test_a_firewall_between_the_hosts_is_named_before_anything_starts(hosts_run, rig):
    """ssh works, and nothing else: ports 50000 to 50009 are closed between the hosts."""
    host = rig.hosts[1]
    host.run("nft", "-f", "-", input="table inet f {\n chain i {\n type filter hook input priority 0;\n"
                                     " tcp dport 50000-50009 reject with tcp reset\n }\n}\n")
    try:
        job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--port-range", "50000-50009", "--relay", "never", "touch", rig.folder / "started")
    finally:
        host.run("nft", "delete", "table", "inet", "f")
    assert job.code == 1 and not (rig.folder / "started").exists()
    assert re.search(r"hvd1: looking for an address .*: it cannot reach hvd2 \(.*:5000\d: .*\); look for a firewall", job.err), job.err
    rig.nothing_left()


# ---- hosts that cannot be used


def test_one_report_for_all_hosts_with_a_cause_and_a_cure_for_each(hosts_run, rig):
    """Two hosts that do not exist, one without sshd on its port, one that works."""
    job = hosts_run("-np", 4, "-H", "nohost1,hvd1,nohost2,[hvd2]:2222", "touch", rig.folder / "started")
    assert job.code == 1 and not (rig.folder / "started").exists()
    lines = job.err.splitlines()
    assert lines[-4] == "hvdrun: 3 of 4 hosts cannot be used, so nothing was started.", job.err
    assert re.match(r"  nohost1, nohost2: resolving its name: .*(cannot be resolved|no address).*; check the spelling", lines[-3]), job.err
    assert re.match(r"  hvd2: connecting: .*refused; .*sshd.* port", lines[-2]), job.err
    assert lines[-1] == "  hvd1: ready"
    rig.nothing_left()


def test_a_host_whose_key_is_not_known_is_refused(hosts_run, rig):
    known = (rig.folder / "known_hosts").read_text()
    try:
        rig.write("known_hosts", "")
        job = hosts_run("-np", 1, "-H", "hvd1", "true")
        assert job.code == 1
        assert re.search(r"host hvd1 cannot be used, .* checking its host key: .*known.*--ssh-host-keys accept-new", job.err), job.err
        job = hosts_run("-np", 1, "-H", "hvd1", "--ssh-host-keys", "accept-new", "true")
        assert job.code == 0 and "hvd1" in (rig.folder / "known_hosts").read_text(), job.err
        other = (rig.folder / "id.pub").read_text().split()[1]
        rig.write("known_hosts", f"hvd1 ssh-ed25519 {other}\n")
        job = hosts_run("-np", 1, "-H", "hvd1", "--ssh-host-keys", "accept-new", "true")
        assert job.code == 1 and re.search(r"checking its host key: .*ssh-keygen -R", job.err), job.err
    finally:
        rig.write("known_hosts", known)


def test_user_port_and_key_as_the_user_says_or_as_ssh_config_says(hosts_run, rig):
    rig.ssh_config("Host other", " HostName hvd2", " HostKeyAlias hvd2")
    try:
        job = hosts_run("-np", 2, "-H", "root@hvd1,other", "-p", 22, "-i", rig.folder / "id", "hostname")
        assert job.code == 0 and sorted(job.out.split()) == ["[0]<stdout>:hvd1", "[1]<stdout>:hvd2"], job.err
        job = hosts_run("-np", 1, "-H", "nobody@hvd1", "true")
        assert job.code == 1 and "logging in: " in job.err and "ssh-copy-id" in job.err, job.err
    finally:
        rig.ssh_config()


@pytest.fixture(scope="module")
def old_and_new_sshd(rig):
    """Where the log is of an sshd on port 2223 of hvd1 that also takes ciphers which are out of use."""
    usual = [line for line in (rig.folder / "sshd_config").read_text().splitlines() if not line.startswith("Port ")]
    rig.write("sshd_config.any", "\n".join([*usual, "Port 2223", "Ciphers +aes256-cbc,3des-cbc", "LogLevel DEBUG1"]) + "\n")
    log = rig.folder / "any.log"
    server = subprocess.Popen(rig.hosts[0].command(SSHD, "-D", "-f", rig.folder / "sshd_config.any", "-E", log))
    wait_until("the second sshd", lambda: log.exists() and "Server listening" in log.read_text())
    yield log
    server.kill()
    server.wait()


@pytest.mark.parametrize("lines, only_ssh", [
    ([" Ciphers aes256-ctr", " MACs hmac-sha2-512", " HostKeyAlgorithms ssh-ed25519"], ""),
    ([" Ciphers chacha20-poly1305@openssh.com"], "Ciphers"),
    ([" Ciphers aes256-cbc,3des-cbc"], "Ciphers"),
    ([" Ciphers aes128-ctr", " MACs umac-128-etm@openssh.com"], "MACs"),
])
def test_algorithms_of_the_users_configuration_are_kept(run, rig, old_and_new_sshd, lines, only_ssh):
    """Where hvdrun's own client may use none of them, the ssh program goes there. The server takes all of them."""
    key = " ".join((rig.folder / "host_key.pub").read_text().split()[:2])
    known = (rig.folder / "known_hosts").read_text()
    rig.write("known_hosts", known + f"[hvd1]:2223,[{rig.address(1)}]:2223 {key}\n")
    rig.ssh_config("Host hvd1", *lines)
    before = len(old_and_new_sshd.read_text())
    try:
        job = run("-np", 1, "-H", "[hvd1]:2223", "--verbose", "hostname", program=rig.on_head(hvdrun_path()))
    finally:
        rig.ssh_config()
        rig.write("known_hosts", known)
    used = old_and_new_sshd.read_text()[before:]
    assert job.code == 0 and ":hvd1\n" in job.out, job.err
    why = re.findall(r"host hvd1: the ssh program goes there, because (\w+) allows none that hvdrun's own client may use", job.err)
    assert why == ([only_ssh] if only_ssh else []), job.err
    kept = [line.split()[1].split(",")[0] for line in lines if not line.startswith(" HostKey")]
    assert all(re.search(r"kex: client->server cipher: .*" + re.escape(name), used) for name in kept), used
    rig.nothing_left()


def test_a_command_in_the_users_configuration_is_not_run_instead_of_ours(hosts_run, rig):
    rig.ssh_config("Host hvd1", f" RemoteCommand touch {rig.folder}/theirs")
    try:
        job = hosts_run("-np", 1, "-H", "hvd1", "hostname")
    finally:
        rig.ssh_config()
    assert job.code == 0 and job.out == "[0]<stdout>:hvd1\n" and not (rig.folder / "theirs").exists(), job.err


def test_a_shell_that_talks_is_no_hindrance(hosts_run, rig):
    """Start-up files of a shell may print: --rsh-agent stands for such a shell."""
    agent = rig.folder / "talks"
    agent.write_text('#!/bin/sh\necho "Welcome to $1"; shift\nexec sh -c "$*"\n')
    agent.chmod(0o755)
    job = hosts_run("-np", 2, "-H", "anything:2", "--rsh-agent", agent, "echo", "here")
    assert job.code == 0 and sorted(job.out.split()) == ["[0]<stdout>:here", "[1]<stdout>:here"], job.err


def test_an_agent_command_of_ones_own(hosts_run, rig):
    """As kubectl exec, or the kubexec.sh of an MPI operator: COMMAND HOST 'words for a shell'."""
    agent = rig.folder / "kubexec"
    agent.write_text("#!/bin/sh\nhost=$1; shift\n" + "".join(
        f'[ $host = pod{h.number} ] && exec {" ".join(h.command())} /bin/sh -c "$*"\n' for h in rig.hosts[:2]) +
        'echo "no such pod: $host" >&2; exit 1\n')
    agent.chmod(0o755)
    job = hosts_run("-np", 3, "-H", "pod1:2,pod2:1", "--rsh-agent", agent, *worker("init", "sum", "shutdown"))
    assert job.code == 0 and job.out.count("sum 6") == 3, job.err
    job = hosts_run("-np", 2, "-H", "pod1,pod7", "--rsh-agent", agent, "true")
    assert job.code == 1 and re.search(r"pod7: starting the agent: .*no such pod: pod7", job.err), job.err
    rig.nothing_left()


# ---- ends


def begin(hosts_start, rig, hosts=3, *args, command=()):
    """`command`: words that a shell gets before those of the rank."""
    job = hosts_start("-np", hosts, "-H", ",".join(h.name for h in rig.hosts[:hosts]), *args, *command,
                      *worker("init", "sum", "sums"))
    for _ in range(hosts):
        assert job.process.stdout.readline().endswith(b":sum %d\n" % (hosts * (hosts + 1) // 2))
    return job


def end_of(job, code=1):
    assert job.finish() == code, job.err
    return job.err.splitlines()[-1] if "Its last lines" not in job.err else job.err


# Each rank has a child in its session and one that has left it.
FAMILY = ["sh", "-c", 'sleep 600 & setsid sleep 600 & exec "$@"', "sh"]


def warden_and_agent(host):
    return sorted(host.agents(), key=lambda pid: parent_of(pid) in host.agents())


@pytest.mark.parametrize("victims", ["hvdrun", "warden", "agent", "hvdrun+warden", "hvdrun+agent", "warden+agent",
                                     "hvdrun+warden+agent"])
def test_whoever_is_killed_nothing_is_left_anywhere(hosts_start, rig, victims):
    job = begin(hosts_start, rig, command=FAMILY)
    host = rig.hosts[1]
    wait_until("the ranks' children", lambda: all(
        sum(read_proc(pid, "comm") == b"sleep\n" for pid in h.processes()) == 2 for h in rig.hosts[:3]))
    warden, agent = warden_and_agent(host)
    chosen = [{"hvdrun": job.pid, "warden": warden, "agent": agent}[name] for name in victims.split("+")]
    for pid in chosen:
        os.kill(pid, signal.SIGSTOP)  # nobody does anything about the first before the last is killed
    for pid in chosen:
        kill(pid)
    if warden in chosen and agent in chosen:  # nobody was left there: the next hvdrun does it
        wait_until("the rank's end", lambda: all(read_proc(pid, "comm") == b"sleep\n" for pid in host.processes()))
        host.run(hvdrun_path(), "ps")
    rig.nothing_left()


def test_a_killed_agent_is_named_and_everything_ends_everywhere(hosts_start, rig):
    job = begin(hosts_start, rig)
    agent = warden_and_agent(rig.hosts[1])[1]
    kill(agent)
    assert end_of(job) .startswith("hvdrun: host hvd2 was lost: the agent was ended by signal 9"), job.err
    rig.nothing_left()


def test_a_killed_sshd_is_named_and_everything_ends_everywhere(hosts_start, rig):
    job = begin(hosts_start, rig)
    rig.hosts[2].kill_sshd()
    assert re.match(r"hvdrun: host hvd3 was lost: .*connection .*All ranks were ended\.", end_of(job)), job.err
    rig.nothing_left()


def test_a_host_that_is_cut_off_is_lost_within_the_heartbeat_and_ends_its_own(hosts_start, rig):
    job = begin(hosts_start, rig, 3, "--heartbeat-timeout", "4")
    host = rig.hosts[1]
    host.cut()
    try:
        last = end_of(job)
        assert last == "hvdrun: host hvd2 was lost: its agent has been silent for 4 s. All ranks were ended.", job.err
        rig.nothing_left()  # over there nobody hears anything either
    finally:
        host.join()


def test_a_killed_rank_is_the_first_cause_on_every_host(hosts_start, rig):
    job = begin(hosts_start, rig)
    victim = [pid for pid in rig.hosts[1].processes() if b"foreign_worker" in read_proc(pid, "cmdline")][0]
    kill(victim)
    assert job.finish() == 137
    assert re.search(killed(1, "hvd2"), job.err), job.err
    assert len(re.findall(r"rank 1 on host hvd2 \(pid \d+\) died in the middle of the job", job.err + job.out)) >= 2
    rig.nothing_left()


def test_ctrl_c_ends_everything_everywhere(hosts_start, rig):
    job = begin(hosts_start, rig)
    os.kill(job.pid, signal.SIGINT)
    assert end_of(job, 130) == ENDED_BY_SIGINT
    rig.nothing_left()


def test_a_host_that_is_switched_off(tmp_path, start):
    rig = HostRig(tmp_path, 2)
    try:
        job = begin(lambda *args: start(*args, program=rig.on_head(hvdrun_path())), rig, 2)
        rig.hosts[1].switch_off()
        assert re.match(r"hvdrun: host hvd2 was lost: .*All ranks were ended\.", end_of(job)), job.err
        rig.nothing_left()
    finally:
        rig.down()


def test_nothing_secret_in_any_argv(hosts_start, rig):
    job = begin(hosts_start, rig, 2)
    seen = [read_proc(pid, "environ") for host in rig.hosts for pid in host.processes()]
    keys = {entry for environ in seen for entry in environ.split(b"\0") if entry.startswith(b"HVD_JOB_KEY=")}
    assert len(keys) == 1
    key = keys.pop().partition(b"=")[2]
    assert len(key) >= 16 and not any(key in read_proc(pid, "cmdline") for pid in pids())
    os.kill(job.pid, signal.SIGTERM)
    job.finish()
    rig.nothing_left()


def test_one_agent_per_host_whatever_the_number_of_ranks(hosts_start, rig, client):
    job = hosts_start("-np", 8, "-H", "hvd1:4,hvd2:4", *worker("init", "sum", "sums"))
    for _ in range(8):
        assert job.process.stdout.readline().endswith(b":sum 36\n")
    for host in rig.hosts[:2]:
        assert len(host.agents()) == 2, "the agent and its warden"
        assert len(host.processes()) == 2 + 4
    here = [pid for pid in job.processes() if b"\0HOROVOD_RANK=" not in read_proc(pid, "environ")]
    assert len(here) == (1 if client == "auto" else 3), "hvdrun, and one ssh program per host where that speaks SSH"
    os.kill(job.pid, signal.SIGTERM)
    job.finish()
    rig.nothing_left()


def test_a_host_without_hvdrun_is_named(hosts_run, rig):
    build = pathlib.Path(hvdrun_path()).parent
    rig.hosts[1].run("mount", "-t", "tmpfs", "none", build)
    try:
        job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--bundle", "never", "true")
    finally:
        rig.hosts[1].run("umount", build)
    assert job.code == 1
    assert re.search(rf"hvd2: starting the agent: hvdrun is neither at {hvdrun_path()} nor on PATH; install hvdrun .*--bundle auto", job.err), job.err
    rig.nothing_left()


def test_two_jobs_share_hosts_and_a_range_of_ports(hosts_start, rig):
    jobs = [hosts_start("-np", 4, "-H", "hvd1:2,hvd2:2", "--port-range", "42000-42019", *worker("init", "sum", "shutdown"))
            for _ in range(2)]
    for job in jobs:
        assert job.finish() == 0 and job.out.count("sum 10") == 4, job.err
    rig.nothing_left()


def listeners(host):
    """Ports of TCP on which somebody other than sshd listens there."""
    rows = [line.split() for table in ("tcp", "tcp6") for line in host.run("cat", f"/proc/net/{table}").splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"} - {22}


def test_who_has_no_key_gets_nothing_but_a_closed_connection(hosts_start, rig):
    """Somebody who speaks another protocol, at the ports where ranks listen for each other."""
    job = begin(hosts_start, rig, 2)
    ports = listeners(rig.hosts[1])
    assert ports
    for port in ports:
        probe = f"exec 3<>/dev/tcp/{rig.hosts[1].address}/{port}; yes 'GET / HTTP/1.0' | head -c 4096 >&3; cat <&3; echo closed"
        said = subprocess.run(rig.on_head("bash", "-c", probe), capture_output=True, text=True, timeout=60).stdout
        assert said == "closed\n", port
    assert job.process.poll() is None, "the job goes on"
    os.kill(job.pid, signal.SIGTERM)
    job.finish()
    rig.nothing_left()


# ---- ends at random


def end_worker(rig, job, host, random):
    rank, victim = random.choice([(rank, pid) for rank, pid in ranks_on(host)])
    kill(victim)
    return 137, rf"hvdrun: rank {rank} on host {host.name} \(pid \d+\) failed: signal 9"


def end_agent(rig, job, host, random):
    kill(next(pid for pid in host.agents() if parent_of(pid) in host.agents()))
    return 1, rf"hvdrun: host {host.name} was lost: the agent was ended by signal 9"


def end_warden(rig, job, host, random):
    kill(next(pid for pid in host.agents() if parent_of(pid) not in host.agents()))
    return 1, rf"hvdrun: host {host.name} was lost: "


def end_sshd(rig, job, host, random):
    host.kill_sshd()
    return 1, rf"hvdrun: host {host.name} was lost: .*connection"


def end_link(rig, job, host, random):
    host.cut()
    return 1, rf"hvdrun: host {host.name} was lost: its agent has been silent for 5 s"


def end_hvdrun(rig, job, host, random):
    kill(job.pid)
    return -9, ""


def end_asked(rig, job, host, random):
    os.kill(job.pid, signal.SIGTERM)
    return 143, r"hvdrun: ended by signal 15"


def end_asked_while_a_worker_is_stopped(rig, job, host, random):
    os.kill(random.choice(ranks_on(host))[1], signal.SIGSTOP)
    return end_asked(rig, job, host, random)


def end_agent_stopped(rig, job, host, random):
    """Its warden, too, every other time."""
    agent = next(pid for pid in host.agents() if parent_of(pid) in host.agents())
    for pid in random.choice([[agent], [parent_of(agent), agent]]):
        os.kill(pid, signal.SIGSTOP)
    return 1, rf"hvdrun: host {host.name} was lost: its agent has been silent for 5 s"


def end_asked_after_dropped_sessions(rig, job, host, random):
    """The connection is lost, once or twice, and made anew: the job goes on until it is asked to end."""
    for _ in range(random.choice([1, 2])):
        host.kill_sshd()
        said = b""
        while f"host {host.name} is back after".encode() not in said:
            line = job.process.stderr.readline()
            assert line, said
            said += line
    return end_asked(rig, job, host, random)


def end_worker_while_a_session_is_dropped(rig, job, host, random):
    host.kill_sshd()
    return end_worker(rig, job, host, random)


end_asked_after_dropped_sessions.grace = end_worker_while_a_session_is_dropped.grace = 60


def ranks_on(host):
    environs = [(pid, read_proc(pid, "environ")) for pid in host.processes()]
    ranks = [(re.search(rb"\0HOROVOD_RANK=(\d+)", environ), pid) for pid, environ in environs]
    return sorted((int(rank.group(1)), pid) for rank, pid in ranks if rank)


ENDS = [end_worker, end_agent, end_warden, end_sshd, end_link, end_hvdrun, end_asked, end_asked_while_a_worker_is_stopped,
        end_agent_stopped, end_asked_after_dropped_sessions, end_worker_while_a_session_is_dropped]


@pytest.mark.long
def test_random_ends_leave_nothing_and_name_the_first_cause(hosts_start, rig, client):
    """HVD_SOAK=1: 300 ends over 4 hosts, or HVD_SOAK_ROUNDS."""
    soak = os.environ.get("HVD_SOAK") == "1"
    seed = int(time.time()) if soak else 6
    print("seed", seed)
    source = random.Random(seed)
    for number in range(int(os.environ.get("HVD_SOAK_ROUNDS", 300)) if soak else len(ENDS)):
        end = source.choice(ENDS) if soak else ENDS[number]
        host = source.choice(rig.hosts)
        job = hosts_start("-np", 8, "-H", ",".join(h.name + ":2" for h in rig.hosts),
                          "--driver-grace", getattr(end, "grace", 0), *worker("init", "sum", "sums"))
        for _ in range(8):
            assert job.process.stdout.readline().endswith(b":sum 36\n")
        code, cause = end(rig, job, host, source)
        what = f"round {number}: {end.__name__} of {host.name}"
        try:
            assert job.finish() == code, (what, job.err)
            assert re.search(cause, job.err), (what, job.err)
            rig.nothing_left()
            if soak:
                print(what, flush=True)
        finally:
            host.join()


def test_many_launches_never_hang(run, client, tmp_path):
    """8 hosts; HVD_SOAK=1: 1,000 launches, or HVD_SOAK_ROUNDS."""
    soak = os.environ.get("HVD_SOAK") == "1"
    rig = HostRig(tmp_path, 8)
    try:
        for number in range(int(os.environ.get("HVD_SOAK_ROUNDS", 1000)) if soak else 5):
            job = run("--ssh-client", client, "-np", 8, "-H", ",".join(h.name for h in rig.hosts),
                      *worker("init", "sum", "shutdown"), program=rig.on_head(hvdrun_path()))
            assert job.code == 0 and job.out.count("sum 36") == 8, (number, job.out, job.err)
            if soak and number % 10 == 9:
                print(number + 1, "launches", flush=True)
        rig.nothing_left()
    finally:
        rig.down()


# ---- what ps and stop see


def listed(rows):
    """The lines of `hvdrun ps` by job: age, NP, ALIVE, COMMAND."""
    return {line.split()[0]: line.split(None, 4)[1:] for line in rows.splitlines()[1:]}


def on_head(rig, *words):
    return subprocess.run(rig.on_head(hvdrun_path(), *words), capture_output=True, text=True, timeout=60)


def test_ps_and_stop_see_a_job_whose_ranks_are_all_elsewhere(hosts_start, rig):
    job = hosts_start("-np", 3, "-H", "hvd1:2,hvd2:1", "sh", "-c", 'test "$RANK" = 1 && exit 0; exec sleep 600')
    wait_until("the ranks", lambda: sum(read_proc(pid, "comm") == b"sleep\n" for host in rig.hosts for pid in host.processes()) == 2)

    def on_the_head():  # jobs of other tests may be there, too
        return {name: row for name, row in listed(on_head(rig, "ps").stdout).items() if "-H hvd1:2,hvd2:1" in row[3]}

    wait_until("the end of rank 1", lambda: [row[1:3] for row in on_the_head().values()] == [["3", "2"]])
    [name] = on_the_head()
    for host, alive in ((rig.hosts[0], "1"), (rig.hosts[1], "1")):
        [(part, (_, size, there, command))] = listed(host.run(hvdrun_path(), "ps")).items()
        assert (part, size, there) == (name, "3", alive)
        assert re.fullmatch(r"part of a job of (10\.99\.0\.1|fd99::1): sleep 600", command), command
        done = subprocess.run(host.command(hvdrun_path(), "stop", name[:6]), capture_output=True, text=True)
        assert done.returncode == 2 and f"hvdrun stop {name} ends it there" in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert listed(rig.hosts[2].run(hvdrun_path(), "ps")) == {}
    # The hosts are containers of this machine: their part is theirs, though their processes are seen here.
    assert name not in listed(subprocess.run([hvdrun_path(), "ps"], capture_output=True, text=True).stdout)
    job.process.send_signal(signal.SIGSTOP)  # a driver that cannot answer is listed all the same
    assert name in listed(on_head(rig, "ps").stdout)
    job.process.send_signal(signal.SIGCONT)
    done = on_head(rig, "stop", name)
    assert done.returncode == 0 and "asked to end" in done.stdout, done.stderr
    assert job.finish() == 130
    assert on_the_head() == {}
    rig.nothing_left()


def test_the_run_id_is_the_same_on_every_host(hosts_run, rig):
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "sh", "-c", "echo $TORCHELASTIC_RUN_ID")
    assert job.code == 0 and len({line.split(":")[-1] for line in job.out.splitlines()}) == 1, job.out


# ---- reasons


def test_the_story_of_a_start_over_several_hosts(hosts_run, rig):
    job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", "--log-level", "INFO", *worker("init", "sum", "shutdown"))
    assert job.code == 0 and len(job.err.splitlines()) <= 10, job.err
    assert re.search(r"^hvdrun: the hosts reach each other: hvd1 at \S+, hvd2 at \S+, hvd3 at \S+$", job.err, re.M), job.err
    verbose = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--verbose", *worker("init", "shutdown"))
    assert verbose.err.count("host hvd1: starting the agent\n") == 1, verbose.err


@pytest.mark.parametrize("code", [3, 0])
def test_a_start_up_file_that_exits_is_suspected(hosts_run, rig, tmp_path, code):
    shell = tmp_path / "shell"
    shell.write_text(f"#!/bin/sh\nexit {code}\n")  # what a .bashrc with that line makes of every command
    shell.chmod(0o755)
    rig.hosts[0].run("mount", "--bind", shell, os.path.realpath(pwd.getpwuid(0).pw_shell))
    try:
        job = hosts_run("-np", 1, "-H", "hvd1", "true")
    finally:
        rig.hosts[0].run("umount", os.path.realpath(pwd.getpwuid(0).pw_shell))
    assert job.code == 1 and "does a start-up file of the shell there (.bashrc, .profile) call exit?\n" in job.err, job.err


def test_a_configuration_that_cannot_be_read_for_lack_of_ssh_is_said_once(run, rig):
    path = rig.folder / "no-ssh"
    path.mkdir(exist_ok=True)
    job = run("-np", 2, "-H", "hvd1,hvd2", "true", program=rig.on_head("env", f"PATH={path}", hvdrun_path()))
    assert job.err.count("/etc/ssh/ssh_config is not read, because that takes the ssh program") == 1, job.err


def test_a_wrong_configuration_is_quoted_in_one_line(run, rig):
    rig.ssh_config("NoSuchOption yes")
    try:
        job = run("-np", 1, "-H", "hvd1", "true", program=rig.on_head(hvdrun_path()))
    finally:
        rig.ssh_config()
    assert job.code == 1 and "Bad configuration option: nosuchoption" in job.err and "\\x0d" not in job.err, job.err


def test_a_question_ends_a_sentence(run, rig):
    job = run("-np", 1, "-H", "hvd1", "-p", 9, "true", program=rig.on_head(hvdrun_path()))
    assert job.code == 1 and "is it the right port?\n" in job.err, job.err
