"""The facts about hosts, as agents report them: identity, slots, the command and its Python, the working directory."""

import os
import pty
import re
import signal
import subprocess
import sys

import pytest
from conftest import DEADLINE, children_of, hvdrun_path, read_some, wait_until, foreign_worker as worker
from host_rig import SSHD, WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

PLACES = ["sh", "-c", "echo $HOROVOD_RANK $(hostname) local $HOROVOD_LOCAL_RANK/$HOROVOD_LOCAL_SIZE "
                      "cross $HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE"]


rig = rig_of(3)


@pytest.fixture
def gpus(rig):
    """gpus(n): every host has so many."""
    yield rig.have_gpus
    rig.have_gpus(1)


def places(job):
    assert job.code == 0, job.err
    return sorted(line.partition(":")[2] for line in job.out.splitlines())


# ---- identity


def test_a_host_under_two_names_is_one(hosts_run, rig):
    """Another name in /etc/hosts, which leads to its address of the other family, and an alias of ssh."""
    rig.ssh_config("Host other", " HostName hvd1", " HostKeyAlias hvd1")
    try:
        job = hosts_run("-np", 4, "-H", "hvd1:1,hvd2:1,hvd1-v6:1,other:1", *PLACES)
    finally:
        rig.ssh_config()
    assert places(job) == ["0 hvd1 local 0/3 cross 0/2", "1 hvd1 local 1/3 cross 0/1",
                           "2 hvd1 local 2/3 cross 0/1", "3 hvd2 local 0/1 cross 1/2"]
    assert "hvdrun: hvd1-v6, other are the host hvd1 under another name: one host with 3 slots\n" in job.err
    rig.nothing_left()


def test_the_merged_host_has_one_agent_and_forms_one_world(hosts_start, rig):
    job = hosts_start("-np", 3, "-H", "hvd1:1,hvd1-v6:1,hvd2:1", *worker("init", "sum", "sums"))
    for _ in range(3):
        assert job.process.stdout.readline().endswith(b":sum 6\n")
    wait_until("the end of the other agent", lambda: len(rig.hosts[0].agents()) == 2)
    assert len(rig.hosts[0].processes()) == 2 + 2, "an agent, its warden and two ranks"
    os.kill(job.pid, signal.SIGTERM)
    assert job.finish() == 143
    rig.nothing_left()


def test_this_machine_reached_over_ssh_is_this_machine(hosts_run, rig):
    """The name "myself" is known to ssh alone, so only what the agents say tells that it is localhost."""
    sshd = subprocess.Popen(rig.on_head(SSHD, "-D", "-f", rig.folder / "sshd_config", "-E", rig.folder / "head.log"))
    rig.ssh_config("Host myself", " HostName head", " HostKeyAlias head")
    try:
        probe = rig.on_head("bash", "-c", f"exec 3<>/dev/tcp/{rig.address(0)}/22")
        wait_until("the sshd of head", lambda: subprocess.run(probe, capture_output=True).returncode == 0)
        job = hosts_run("-np", 3, "-H", "localhost:1,myself:1,hvd1:1", *PLACES)
    finally:
        rig.ssh_config()
        sshd.kill()
        sshd.wait()
    assert places(job) == ["0 head local 0/2 cross 0/2", "1 head local 1/2 cross 0/1", "2 hvd1 local 0/1 cross 1/2"]
    rig.nothing_left()


def test_two_containers_behind_one_name_are_two_hosts(hosts_run, rig):
    """A container that shares the network of hvd1 and has an sshd at another port."""
    host = rig.hosts[0]
    container = subprocess.Popen(host.command("unshare", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc",
                                              SSHD, "-D", "-f", rig.folder / "sshd_config", "-p", 2222,
                                              "-o", f"PidFile={rig.folder}/container"))
    try:
        probe = rig.on_head("bash", "-c", f"exec 3<>/dev/tcp/{host.address}/2222")
        wait_until("the sshd of the container", lambda: subprocess.run(probe, capture_output=True).returncode == 0)
        hosts = "[hvd1]:22:1,[hvd1]:2222:1"
        job = hosts_run("-np", 2, "-H", hosts, *PLACES)
        assert places(job) == ["0 hvd1 local 0/1 cross 0/2", "1 hvd1 local 0/1 cross 1/2"]
        job = hosts_run("-np", 2, "-H", hosts, "--prefix", "{host} ", *worker("init", "sum", "shutdown"))
        assert job.code == 0, job.err
        assert sorted(job.out.split("\n")) == ["", "[hvd1]:22 sum 3", "[hvd1]:2222 sum 3"]
    finally:
        for pid in children_of(container.pid):  # nsenter waits for it
            os.kill(pid, signal.SIGKILL)
        container.wait()
    rig.nothing_left()


def test_what_hosts_call_themselves_does_no_harm(hosts_run, rig):
    """Each thinks of itself as 127.0.1.1 with a full name, as Debian sets it up, and knows no other host."""
    for host in rig.hosts[:2]:
        full = f"{host.name}.cluster.example"
        (rig.folder / f"hosts.{host.number}").write_text(f"127.0.0.1 localhost\n127.0.1.1 {full} {host.name}\n")
        host.run("mount", "--bind", rig.folder / f"hosts.{host.number}", "/etc/hosts")
        host.run("hostname", full)
    try:
        job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:2", *worker("init", "world", "sum", "shutdown"))
    finally:
        for host in rig.hosts[:2]:
            host.run("hostname", host.name)
            host.run("umount", "/etc/hosts")
    assert job.code == 0 and job.out.count("sum 10") == 4, job.err
    rig.nothing_left()


# ---- slots


def test_hosts_without_a_number_have_what_their_agents_say(hosts_run, rig, gpus):
    gpus(3)
    job = hosts_run("-np", 5, "-H", "hvd1,hvd2", *PLACES)
    assert [place.split(" cross")[0] for place in places(job)] == [
        "0 hvd1 local 0/3", "1 hvd1 local 1/3", "2 hvd1 local 2/3", "3 hvd2 local 0/2", "4 hvd2 local 1/2"]
    rig.nothing_left()


def test_without_gpus_cores_count_that_the_agent_may_use(hosts_run, rig, gpus):
    gpus(0)
    cores = os.sched_getaffinity(0)
    host = rig.hosts[0]
    os.sched_setaffinity(host.init, {min(cores)})
    try:
        job = hosts_run("-np", 1 + len(cores), "-H", "hvd1,hvd2", "hostname")
        assert job.code == 0, job.err
        assert job.out.count("hvd1\n") == 1 and job.out.count("hvd2\n") == len(cores)
    finally:
        os.sched_setaffinity(host.init, cores)
    rig.nothing_left()


def test_too_few_slots_are_said_before_anything_starts(hosts_run, rig, gpus):
    gpus(2)
    job = hosts_run("-np", 5, "-H", "hvd1,hvd2", "touch", rig.folder / "started")
    assert job.code == 2 and not (rig.folder / "started").exists()
    assert job.err == ("hvdrun: 5 processes were asked for, but the hosts have 4 slots; try -np 4 or list more slots "
                       "(-H host:N, --slots-per-host N). Nothing was started.\n")
    rig.nothing_left()


def test_a_host_that_is_not_needed_is_left_alone(hosts_start, rig, gpus):
    gpus(2)
    job = hosts_start("-np", 2, "-H", "hvd1,hvd2", "--stdin", "all", "sh", "-c", "wc -c; echo over; sleep 1000",
                      stdin=subprocess.PIPE)
    size = 3 << 20  # more than is read ahead: a host without ranks holds up nobody
    job.process.stdin.write(b"x" * size)
    job.process.stdin.close()
    lines = sorted(job.process.stdout.readline() for _ in range(4))
    assert lines == sorted(f"[{rank}]<stdout>:{text}\n".encode() for rank in range(2) for text in (size, "over"))
    wait_until("the end of its agent", lambda: not rig.hosts[1].processes())
    job.process.stdin = None
    os.kill(job.pid, signal.SIGTERM)
    assert job.finish() == 143
    assert "hvdrun: hvd2 gets no rank: the hosts named before have slots for all 2; --slots-per-host 1 " in job.err
    rig.nothing_left()


def test_a_host_that_is_not_needed_may_be_lost(hosts_start, rig, gpus):
    gpus(2)
    job = hosts_start("-np", 2, "-H", "hvd1,hvd2", "sh", "-c", "echo on; sleep 1; echo over")
    assert job.process.stdout.readline().endswith(b":on\n")
    rig.hosts[1].cut()
    try:
        assert job.finish() == 0, job.err
        assert job.out.count(":over\n") == 2
    finally:
        rig.hosts[1].join()
    rig.nothing_left()


# ---- how far the hosts are


def test_hosts_that_take_their_time_are_counted_on_a_terminal(start, tmp_path):
    """The second of two hosts comes once the first was shown as ready."""
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\nif [ $1 = late ]; then while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; fi\nexec sh -c "$2"\n')
    agent.chmod(0o755)
    master, slave = pty.openpty()
    job = start("-np", 2, "-H", "early:1,late:1", "--rsh-agent", agent, "echo", "over", env={"TERM": "xterm"},
                stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while data := read_some(master):
        seen += data
        if b"\r\x1b[Khvdrun: hosts: 1 ready, 1 connecting" in seen:
            (tmp_path / "go").touch()
    os.close(master)
    assert job.process.wait(DEADLINE) == 0, seen
    assert seen.count(b"over\r\n") == 2
    assert b"late is the host early under another name" in seen, "both are this machine"


# ---- the command and its Python


@pytest.fixture
def own_folder(rig):
    """A folder that hvd2 has as a place of its own, and the others share."""
    folder = rig.folder / "own"
    folder.mkdir(exist_ok=True)
    rig.hosts[1].run("mount", "-t", "tmpfs", "none", folder)
    yield folder
    rig.hosts[1].run("umount", folder)


def put_python(folder, host=None):
    script = f'mkdir -p "$0" && cd "$0" && printf "#!/bin/sh\\nexec {sys.executable} \\"\\$@\\"\\n" > "$1" && chmod 755 "$1" && ln -sf "$1" python'
    for where, version in ((None, "python3.11"), (host, "python3.9")):
        words = ["sh", "-c", script, str(folder), version]
        subprocess.run(where.command(*words) if where else words, check=True)


def test_python_that_is_another_one_somewhere_is_named(hosts_run, rig, own_folder):
    put_python(own_folder, rig.hosts[1])
    env = {"PATH": f"{own_folder}:{os.environ['PATH']}"}
    job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", "python", "-S", "-c", "print('trained')", env=env)
    assert job.code == 0 and job.out.count("trained") == 3, job.err
    assert job.err == (f"hvdrun: 'python' is not the same on all hosts: hvd1, hvd3 have Python 3.11 at {own_folder}/python "
                       f"({own_folder}/python3.11); hvd2 has Python 3.9 at {own_folder}/python ({own_folder}/python3.9); "
                       "a path that is the same everywhere avoids surprises\n")
    job = hosts_run("-np", 2, "-H", "hvd1,hvd3", "python", "-S", "-c", "print('trained')", env=env)
    assert job.code == 0 and job.err == ""
    rig.nothing_left()


def test_python_that_some_hosts_lack_is_named_before_anything_starts(hosts_run, rig, own_folder):
    python = own_folder / "only-here" / "python"
    put_python(python.parent, rig.hosts[0])
    job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", python, "-c", f"open('{rig.folder}/started', 'w')")
    assert job.code == 127 and not (rig.folder / "started").exists()
    assert job.err == (f"hvdrun: the command '{python}' cannot be started on every host: hvd2: not found; hvd1, hvd3 have "
                       f"{python}; install it there, or give a path that leads to it on all hosts. Nothing was started.\n")
    rig.nothing_left()


def test_a_working_directory_that_some_hosts_lack_is_named(run, rig, own_folder):
    here = own_folder / "here"
    here.mkdir()
    there = ["sh", "-c", 'cd "$0" && exec "$@"', here, hvdrun_path()]
    job = run("-np", 2, "-H", "hvd1,hvd2", "true", program=rig.on_head(*there))
    assert job.code == 126
    assert job.err.startswith(f"hvdrun: the working directory {here} cannot be entered on hvd2: No such file or directory; "
                              "workers start where hvdrun was started: "), job.err
    job = run("-np", 1, "-H", "hvd2", "true", program=rig.on_head(*there))
    assert job.code == 126 and re.search(rf"working directory {here} cannot be entered: No such file .*hvd2", job.err), job.err
    rig.nothing_left()
