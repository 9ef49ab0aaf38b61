"""Hosts on which no sshd listens yet. In a pod it may start minutes after hvdrun, so hvdrun waits for it and says for which host and
why; elsewhere nobody is waited for. What a server says about keys is final everywhere."""

import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import children_of, hvdrun_path, kill, read_some, wait_until, foreign_worker as worker
from host_rig import SSHD, WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

POD = {"K_MPI_JOB_ROLE": "launcher", "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
LONG = ("--start-timeout", 600)  # longer than any limit of a test
NOT_YET = re.compile(r"the job has not started yet; (\S.*): no sshd yet for 2 s: (.+)\n")
CLOSES = """
import socket, struct, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("", 2222))
listener.listen(100)
while True:
    connection = listener.accept()[0]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    open(sys.argv[1], "a").write("closed\\n")
"""

rig = rig_of(2)


@pytest.fixture
def hosts_run(run, rig, client):
    return lambda *args, **kwargs: run("--ssh-client", client, *args, program=rig.on_head(hvdrun_path()), **kwargs)


@pytest.fixture
def hosts_start(start, rig, client):
    return lambda *args, **kwargs: start("--ssh-client", client, *args, program=rig.on_head(hvdrun_path()), **kwargs)


@pytest.fixture
def hosts_doctor(run, rig, client):
    return lambda *args, **kwargs: run("doctor", "--ssh-client", client, *args, program=rig.on_head(hvdrun_path()), **kwargs)


def stop(child):
    """nsenter waits for a process that it does not take along."""
    for pid in [*children_of(child.pid), child.pid]:
        kill(pid)
    child.wait()


@pytest.fixture
def serve(rig):
    """serve(host, ...): something listens at port 2222 of this host until the test ends, or until it is killed."""
    children = []

    def serve(host, *command):
        children.append(subprocess.Popen(host.command(*command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        probe = rig.on_head("bash", "-c", f"exec 3<>/dev/tcp/{host.address}/2222")
        wait_until("port 2222", lambda: subprocess.run(probe, capture_output=True).returncode == 0)
        return children[-1]

    yield serve
    for child in children:
        stop(child)


@pytest.fixture
def sshd(rig, serve):
    """sshd(host, LINE...): an sshd at port 2222 with these lines of configuration before those of the rig."""
    key = " ".join((rig.folder / "host_key.pub").read_text().split()[:2])
    known = (rig.folder / "known_hosts").read_text()
    rig.write("known_hosts", known + "".join(f"[{name}]:2222 {key}\n" for host in rig.hosts for name in (host.name, host.address)))

    def sshd(host, *lines):
        said = {line.split()[0] for line in lines} | {"Port"}
        usual = [line for line in (rig.folder / "sshd_config").read_text().splitlines() if line.split()[0] not in said]
        rig.write("sshd_config.late", "\n".join([*lines, *usual, "Port 2222"]) + "\n")
        return serve(host, SSHD, "-D", "-f", rig.folder / "sshd_config.late", "-E", rig.folder / "late.log")

    yield sshd
    rig.write("known_hosts", known)


def text_until(job, pattern):
    """What the job has printed to stderr by the time that this pattern is in it."""
    said = ""
    while not re.search(pattern, said):
        more = read_some(job.process.stderr).decode()
        assert more, said
        said += more
    return said


def test_a_job_waits_for_an_sshd_that_starts_later(hosts_start, rig, sshd, tmp_path):
    """The agent of the other host waits, too, and no rank starts before all are there."""
    job = hosts_start("-np", 3, "-H", "hvd1:1,[hvd2]:2222:2", *LONG, "sh", "-c", f"touch {tmp_path}/started; exec {' '.join(worker('init', 'sum', 'shutdown'))}",
                      env=POD)
    said = text_until(job, NOT_YET)
    assert NOT_YET.search(said).groups() == ("hvd2", "the connection was refused"), said
    assert not (tmp_path / "started").exists()
    sshd(rig.hosts[1])
    assert job.finish() == 0, said + job.err
    assert job.out.count("sum 6") == 3, job.out
    assert "cannot be used" not in job.err, "a wait that ends well is no failure"
    rig.nothing_left()


def test_a_server_that_closes_before_it_has_said_a_word_is_waited_for(hosts_start, rig, serve, sshd, tmp_path):
    """As a sidecar does that accepts connections for a program that does not listen yet."""
    before = serve(rig.hosts[1], sys.executable, "-c", CLOSES, tmp_path / "closed")
    job = hosts_start("-np", 1, "-H", "[hvd2]:2222", *LONG, "echo", "here", env=POD)
    wait_until("two tries beside the one of this test", lambda: (tmp_path / "closed").read_text().count("closed") >= 3)
    stop(before)
    sshd(rig.hosts[1])
    assert job.finish() == 0, job.err
    assert job.out.count("here") == 1, job.out


def test_the_name_is_asked_for_again_before_each_try(hosts_start, rig, sshd):
    """A pod that was replaced has another address."""
    hosts = (rig.folder / "hosts").read_text()
    rig.ssh_config("Host pod", " HostKeyAlias hvd2", " Port 2222", " UserKnownHostsFile " + str(rig.folder / "known_pod"))
    rig.write("known_pod", (rig.folder / "known_hosts").read_text() + "hvd2 " + (rig.folder / "host_key.pub").read_text())
    try:
        rig.write("hosts", hosts + f"{rig.address(1)} pod\n")
        sshd(rig.hosts[1])
        job = hosts_start("-np", 1, "-H", "pod", *LONG, "hostname", env=POD)
        said = text_until(job, NOT_YET)
        assert NOT_YET.search(said).groups() == ("pod", "the connection was refused"), said
        rig.write("hosts", hosts + f"{rig.address(2)} pod\n")
        assert job.finish() == 0, said + job.err
        assert job.out == "[0]<stdout>:hvd2\n"
    finally:
        rig.write("hosts", hosts)
        rig.ssh_config()


def test_an_sshd_that_never_comes_is_named_with_its_reason_and_the_limit(hosts_run, rig, tmp_path):
    job = hosts_run("-np", 2, "-H", "hvd1:1,[hvd2]:2222:1", "--stage-timeouts", "connect=4", *LONG, "touch", tmp_path / "started", env=POD)
    assert job.code == 1 and not (tmp_path / "started").exists()
    assert NOT_YET.search(job.err), job.err
    assert re.search(r"^  hvd2: connecting: .*refused.*; it was tried again for 4 s, and --stage-timeouts connect=N", job.err, re.M), job.err
    assert re.search(r"^  hvd1: ready", job.err, re.M), job.err
    rig.nothing_left()


def test_ctrl_c_ends_the_wait(hosts_start, rig):
    job = hosts_start("-np", 2, "-H", "hvd1:1,[hvd2]:2222:1", *LONG, "true", env=POD)
    text_until(job, NOT_YET)
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130, job.err
    job.nothing_left()
    rig.nothing_left()


@pytest.mark.parametrize("fault", ["login", "host key"])
def test_what_a_server_refuses_is_final(hosts_run, rig, sshd, fault):
    if fault == "login":
        sshd(rig.hosts[1], "AuthorizedKeysFile none")
    else:
        if not (rig.folder / "other_key").exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", rig.folder / "other_key"], check=True)
        sshd(rig.hosts[1], f"HostKey {rig.folder}/other_key")
    job = hosts_run("-np", 1, "-H", "[hvd2]:2222", *LONG, "true", env=POD)
    stage = "logging in" if fault == "login" else "checking its host key"
    assert job.code == 1 and f"host hvd2 cannot be used, so nothing was started: {stage}: " in job.err, job.err
    assert "tried again" not in job.err and "no sshd yet" not in job.err, job.err


def test_outside_of_a_pod_a_refused_connection_is_a_failure_at_once(hosts_run, rig):
    job = hosts_run("-np", 1, "-H", "[hvd2]:2222", *LONG, "true")
    assert job.code == 1 and re.search(r"host hvd2 cannot be used, so nothing was started: connecting: .*refused.*; .*sshd", job.err), job.err
    assert "tried again" not in job.err and "no sshd yet" not in job.err, job.err


def test_the_doctor_says_at_once_what_is_wrong_in_a_pod(hosts_doctor, rig):
    job = hosts_doctor("-H", "hvd1:1,[hvd2]:2222:1", *LONG, env=POD)
    assert job.code == 1 and re.search("hvd2.*connecting: .*refused", job.out + job.err), job.out + job.err
    assert "no sshd yet" not in job.err, job.err
