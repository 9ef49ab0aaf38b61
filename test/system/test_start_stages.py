"""Hosts that do not get as far as a worker, each in its own way: one report names all of them with their stages, nothing is
left, and Ctrl-C ends hvdrun at every stage. And names that nobody knows yet."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import hvdrun_path, needs_the_build_tree, read_proc, wait_until, foreign_worker as worker
from host_rig import SSHD, WHY_NOT, HostRig, rig_of
from slowness import scaled

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

STUB = os.path.join(os.path.dirname(__file__), "dns_stub.py")
ACCEPTS = """
import socket
listener = socket.create_server(("", 2222), backlog=100)
kept = []
while True:
    kept.append(listener.accept())
"""
DROPS = "table inet f {\n chain i {\n type filter hook input priority 0;\n tcp dport 2222 drop\n }\n}\n"

rig = rig_of(6)


@pytest.fixture
def hosts_run(run, rig, client):
    return lambda *args, **kwargs: run("--ssh-client", client, *args, program=rig.on_head(hvdrun_path()), **kwargs)


@pytest.fixture
def hosts_start(start, rig, client):
    return lambda *args, **kwargs: start("--ssh-client", client, *args, program=rig.on_head(hvdrun_path()), **kwargs)


@pytest.fixture(scope="module")
def stuck(rig):
    """The fault of port 2222 of each host: 1 asks for a password, 2 shows a key that nobody knows, 3 accepts and is
    silent, 4 drops packets, 5 sleeps before it runs anything, 6 thinks for ever about a key."""
    folder = rig.folder
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "other_key"], check=True)
    own = {1: ["PubkeyAuthentication no", "PasswordAuthentication yes"], 2: [f"HostKey {folder}/other_key"],
           5: ["ForceCommand sleep 1000"],
           6: ["AuthorizedKeysFile none", "AuthorizedKeysCommand /usr/bin/sleep 1000", "AuthorizedKeysCommandUser root"]}
    children = []
    for number, lines in own.items():
        names = {line.split()[0] for line in lines}
        usual = [line for line in (folder / "sshd_config").read_text().splitlines() if line.split()[0] not in names | {"Port"}]
        rig.write(f"sshd_config.{number}", "\n".join([*lines, *usual, "Port 2222"]) + "\n")
        children.append(subprocess.Popen(rig.hosts[number - 1].command(SSHD, "-D", "-f", folder / f"sshd_config.{number}", "-E",
                                                                       folder / f"stuck{number}.log")))
    children.append(subprocess.Popen(rig.hosts[2].command(sys.executable, "-c", ACCEPTS)))
    rig.hosts[3].run("nft", "-f", "-", input=DROPS)
    known = folder / "known_hosts"
    key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    known.write_text(known.read_text() + "".join(f"[hvd{n}]:2222,[{rig.address(n)}]:2222 {key}\n" for n in (1, 5, 6)))
    for number in (1, 2, 3, 5, 6):
        probe = rig.on_head("bash", "-c", f"exec 3<>/dev/tcp/hvd{number}/2222")
        wait_until(f"port 2222 of hvd{number}", lambda p=probe: subprocess.run(p, capture_output=True).returncode == 0)
    yield rig
    for child in children:
        child.kill()
        child.wait()


def no_agents(rig):
    """Other processes are those of the fixtures."""
    wait_until("no agent on any host", lambda: not any(host.agents() for host in rig.hosts), limit=30)


def nothing_left(rig, job):
    """No child and no socket of it, here or there."""
    job.nothing_left()
    peers = subprocess.run(rig.on_head("ss", "-Htn"), capture_output=True, text=True, check=True).stdout
    assert not [line for line in peers.splitlines() if ":2222" in line and "ESTAB" in line], peers
    no_agents(rig)


def test_five_ways_to_hang_are_named_in_one_report(hosts_run, stuck, client):
    began = time.monotonic()
    job = hosts_run("-np", 5, "-H", ",".join(f"[hvd{n}]:2222" for n in range(1, 6)), "--verbose",
                    "--stage-timeouts", "connect=2,kex=2,login=2,exec=2", "touch", stuck.folder / "started")
    took = time.monotonic() - began
    assert job.code == 1 and not (stuck.folder / "started").exists()
    report = job.err[job.err.rindex("hosts cannot be used") :]
    lines = re.findall(r"^  (hvd[^:]+): (?:still )?([^:\n]+)", report, re.M)
    found = {name: stage for names, stage in lines for name in names.split(", ")}
    assert sorted(found) == [f"hvd{n}" for n in range(1, 6)], report
    assert "ready" not in found.values(), report
    assert found["hvd1"] == "logging in" and found["hvd2"] == "checking its host key", report
    assert re.search(r"hvd1: logging in: .*password", report) and re.search(r"hvd2: .*known", report), report
    assert found["hvd4"] == "connecting", report
    if client == "auto":  # the ssh program does not say which of the first stages it is in
        assert found["hvd3"] == "agreeing on keys" and found["hvd5"] == "starting the agent", report
    assert took < scaled(20), f"all limits together are 8 s: {took}"
    nothing_left(stuck, job)


@pytest.mark.parametrize("host, stage", [("silent", "resolving its name"), ("hvd4", "connecting"), ("hvd3", "agreeing on keys"),
                                         ("hvd6", "logging in"), ("hvd5", "starting the agent")])
def test_ctrl_c_ends_it_at_every_stage(hosts_start, stuck, client, host, stage):
    """A name server that never answers keeps a thread, or the ssh program, for seconds."""
    if client == "program" and stage in ("agreeing on keys", "logging in", "starting the agent", "resolving its name"):
        stage = "connecting"  # it does not say more
    stuck.write("resolv.conf", f"nameserver {stuck.address(200)}\noptions timeout:30 attempts:5\n")
    subprocess.run(stuck.on_head("mount", "--bind", stuck.folder / "resolv.conf", "/etc/resolv.conf"), check=True)
    try:
        name = "no-answer.example" if host == "silent" else host
        job = hosts_start("-np", 1, "-H", f"[{name}]:2222", "--verbose", "--stage-timeouts",
                          ",".join(f"{s}=300" for s in ("resolve", "connect", "kex", "hostkey", "login", "exec", "hello")), "true")
        said = ""
        while f"{name}: {stage}" not in said:
            line = job.process.stderr.readline().decode()
            assert line or stage == "resolving its name" and client == "auto", said
            said += line
        if client == "program":  # until the program has come as far as it can
            wait_until("the ssh program", lambda: any(read_proc(pid, "comm") == b"ssh\n" for pid in job.processes()))
        began = time.monotonic()
        os.kill(job.pid, signal.SIGINT)
        assert job.finish() == 130, job.err
        took = time.monotonic() - began
    finally:
        subprocess.run(stuck.on_head("umount", "/etc/resolv.conf"), check=True)
    assert took < 2 + 8 * os.getloadavg()[0] / (os.cpu_count() or 1), took
    nothing_left(stuck, job)


# ---- names


@pytest.fixture
def late_names(rig):
    """late1 and late2 are known 10 s after they were first asked for, to a name server that hvdrun asks, and the hosts, too."""
    stub = rig.spawn(sys.executable, STUB, rig.address(0), str(rig.folder), "10",
                     f"late1={rig.address(1)}", f"late2={rig.address(2)}")
    rig.write("resolv.conf", f"nameserver {rig.address(0)}\noptions timeout:2 attempts:1\n")
    for command in (rig.on_head, rig.hosts[0].command, rig.hosts[1].command):
        subprocess.run(command("mount", "--bind", rig.folder / "resolv.conf", "/etc/resolv.conf"), check=True)
    wait_until("the name server", lambda: (rig.folder / "questions").exists())
    rig.ssh_config("Host late1", " HostKeyAlias hvd1", "Host late2", " HostKeyAlias hvd2")
    yield rig
    rig.ssh_config()
    for command in (rig.on_head, rig.hosts[0].command, rig.hosts[1].command):
        subprocess.run(command("umount", "/etc/resolv.conf"), check=True)
    stub.kill()
    stub.wait()
    (rig.folder / "questions").unlink()


def test_names_that_are_known_late_only_delay_the_job(hosts_run, late_names):
    """The hosts call themselves what nobody resolves, with an underscore, and never ask for a name."""
    for host in late_names.hosts[:2]:
        host.run("sh", "-c", f"echo no_body_{host.number}.knows.me >/proc/sys/kernel/hostname")  # hostname refuses "_"
    try:
        began = time.monotonic()
        # Without the limit, a name that nobody knows outside of a pod is given up after 3 s.
        job = hosts_run("-np", 4, "-H", "late1:2,late2:2", "--stage-timeouts", "resolve=20", *worker("init", "sum", "shutdown"))
        took = time.monotonic() - began
    finally:
        for host in late_names.hosts[:2]:
            host.run("hostname", host.name)
    assert job.code == 0 and job.out.count("sum 10") == 4, job.err
    assert took > 9, "else the names were known at once and this shows nothing"
    assert re.search(r"the job has not started yet; late1, late2: no DNS answer yet for 2 s\n|late[12]: no DNS answer yet for 2 s", job.err), job.err
    questions = (late_names.folder / "questions").read_text().splitlines()
    assert {line.split()[0] for line in questions} == {late_names.address(0)}, "agents and ranks ask for no names"
    assert sum(line.split()[1] == "late1" for line in questions) < 100, "with growing pauses"
    no_agents(late_names)


def test_what_can_never_be_a_name_fails_at_once(hosts_run, rig):
    began = time.monotonic()
    for name in ("nobody.invalid", "10.0.0.256", "a" * 64):
        job = hosts_run("-np", 1, "-H", name, "true")
        assert job.code == 1 and re.search(r"resolving its name: .*(cannot be resolved|no address).*; check the spelling", job.err), job.err
        assert "tried again" not in job.err
    assert time.monotonic() - began < scaled(19), "no limit of a stage has passed"


def test_a_name_that_never_comes_is_named_with_its_reason(hosts_run, late_names):
    job = hosts_run("-np", 2, "-H", "hvd1,never", "--stage-timeouts", "resolve=4", "touch", late_names.folder / "started")
    assert job.code == 1 and not (late_names.folder / "started").exists()
    assert re.search(r"never: no DNS answer yet for 2 s", job.err), job.err
    assert re.search(r"^  never: resolving its name: .*(cannot be resolved|no address).*; it was tried again for 4 s, and --stage-timeouts resolve=N", job.err, re.M), job.err
    assert re.search(r"^  hvd1: ready", job.err, re.M), job.err
    no_agents(late_names)


# ---- a driver that is cut off before its first message


@needs_the_build_tree("it knows no faults that tests make")
def test_an_agent_that_hears_nothing_ends():
    """Its sshd does not notice that the connection is dead, and holds it open."""
    environment = dict(os.environ, HVD_TEST_FIRST_MESSAGE_SECONDS="1")
    agent = subprocess.Popen([hvdrun_path(), "agent", "--job", "0123456789abcdef"], env=environment, stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until("its end", lambda: agent.poll() is not None)
    finally:
        agent.kill()
        said = agent.communicate()[1].decode()
    assert "nothing was heard of the driver for 1 s" in said, said


@needs_the_build_tree("it knows no faults that tests make")
def test_a_host_that_waits_for_another_hears_that_its_driver_lives(run, tmp_path):
    rig = HostRig(tmp_path, 2, environment="HVD_TEST_FIRST_MESSAGE_SECONDS=3")
    try:
        os.kill(rig.hosts[1].init, signal.SIGSTOP)
        threading.Timer(8, os.kill, (rig.hosts[1].init, signal.SIGCONT)).start()
        job = run("-np", 2, "-H", "hvd1,hvd2", "--start-timeout", 60, "true", program=rig.on_head(hvdrun_path()))
        assert job.code == 0, job.err
    finally:
        rig.down()
