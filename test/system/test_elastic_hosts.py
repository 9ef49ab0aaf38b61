"""Elastic jobs over hosts with an sshd each: one is lost, the other trains on, and the job grows when it comes back."""

import re
import shutil
import sys

import pytest
from conftest import hvdrun_path, kill, skip_without, wait_until
from elastic_job import Training
from host_rig import WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaced hosts: {WHY_NOT}")
skip_without("numpy")
rig = rig_of(2)
FLAGS = ["-np", 4, "--min-np", 2, "--elastic-timeout", 50]


@pytest.fixture(params=["ssh", pytest.param("no sshd", marks=pytest.mark.soak)])
def way(request, rig, tmp_path):
    """The flags by which hvdrun gets to the hosts: without an sshd, a command that enters them, as `kubectl exec` does."""
    if request.param == "ssh":
        yield []
        return
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\nhost=$1; shift\n" + "".join(
        f'[ $host = {host.name} ] && exec {" ".join(host.command())} /bin/sh -c "$*"\n' for host in rig.hosts))
    agent.chmod(0o755)
    for host in rig.hosts:
        host.filter("tcp dport 22 reject with tcp reset")
    yield ["--rsh-agent", agent]
    for host in rig.hosts:
        host.filter()


@pytest.fixture
def train(start, rig, way, tmp_path):
    """A job of two hosts with two ranks each; its discovery script prints what is in the file `hosts`."""
    (tmp_path / "hosts").write_text("hvd1:2\nhvd2:2\n")

    def begin(*flags, script=f"cat {tmp_path / 'hosts'}"):
        return Training(start, tmp_path, *FLAGS, *way, "--host-discovery-script", script, *flags,
                        options=["host"], program=rig.on_head(hvdrun_path()))

    yield begin
    for host in rig.hosts:
        host.join()


def ranks_of(training, size, host):
    """The processes that have trained on this host, as the host numbers them, in worlds of this size."""
    said = re.findall(rf"is one of {size} on {host.name} pid (\d+)\n", training.text())
    return set(map(int, said))


def await_ranks(training, size, count, host):
    wait_until(f"{count} ranks of {host.name} in a world of {size}",
               lambda: len(ranks_of(training, size, host)) >= count, told=training.text)
    return ranks_of(training, size, host)


def on_both(training, rig):
    return [await_ranks(training, 4, 2, host) for host in rig.hosts]


def finish(training, rig):
    training.finish()
    rig.nothing_left()


@pytest.mark.parametrize("lost", [0, 1])
def test_the_agent_and_warden_of_a_host_die_and_the_job_grows_again(train, rig, lost):
    training = train()
    first = on_both(training, rig)
    for pid in rig.hosts[lost].agents():  # and its warden
        kill(pid)
    stayed = await_ranks(training, 2, 2, rig.hosts[1 - lost])
    assert stayed == first[1 - lost], "the ranks of the other host are the same processes"
    await_ranks(training, 4, 4, rig.hosts[lost])
    assert ranks_of(training, 4, rig.hosts[1 - lost]) == stayed
    finish(training, rig)


@pytest.mark.long
def test_a_host_is_cut_off_and_comes_back(train, rig, way):
    if way:
        pytest.skip("the stream of this agent is a pipe, which no cable carries")
    training = train("--driver-grace", 2)
    first = on_both(training, rig)
    rig.hosts[1].cut()
    assert await_ranks(training, 2, 2, rig.hosts[0]) == first[0]
    rig.hosts[1].join()
    await_ranks(training, 4, 4, rig.hosts[1])
    finish(training, rig)


def test_a_host_leaves_the_list_and_another_takes_its_place(train, rig, tmp_path):
    hosts = tmp_path / "hosts"
    training = train()
    first = on_both(training, rig)
    hosts.write_text("hvd2:2\n")
    assert await_ranks(training, 2, 2, rig.hosts[1]) == first[1]
    wait_until("nothing left on the host that left", lambda: not rig.hosts[0].processes())
    hosts.write_text("hvd1:2\nhvd2:2\n")
    await_ranks(training, 4, 4, rig.hosts[0])
    finish(training, rig)
    assert "Traceback" not in training.text()


class ConfigMap:
    """The operator's script as a volume of Kubernetes has it: behind two links, and a new version is a new folder."""

    def __init__(self, folder):
        self.folder, self.versions = folder, 0
        folder.mkdir()

    def script(self, *pods):
        self.versions += 1
        version = self.folder / f"..{self.versions}"
        version.mkdir()
        (version / "discover_hosts.sh").write_text("#!/bin/sh\n" + "".join(f"echo {pod}\n" for pod in pods))
        (version / "discover_hosts.sh").chmod(0o555)
        (self.folder / "..data_tmp").symlink_to(version.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        if self.versions == 1:
            (self.folder / "discover_hosts.sh").symlink_to("..data/discover_hosts.sh")
        else:
            shutil.rmtree(self.folder / f"..{self.versions - 1}")
        return self.folder / "discover_hosts.sh"


def test_a_pod_whose_sshd_comes_late_joins_a_job_that_has_begun_without_it(train, rig, monkeypatch):
    """It is no failed host, which would count against it."""
    monkeypatch.setenv("K_MPI_JOB_ROLE", "launcher")
    rig.hosts[1].filter("tcp dport 22 reject with tcp reset")
    try:
        training = train("-np", 2, "--max-np", 4, "--start-timeout", 600)
        first = await_ranks(training, 2, 2, rig.hosts[0])
        wait_until("the line that names it", lambda: "waiting for hosts: hvd2: no sshd yet for 2 s" in training.text(), told=training.text)
    finally:
        rig.hosts[1].filter()
    await_ranks(training, 4, 2, rig.hosts[1])
    assert first <= await_ranks(training, 4, 2, rig.hosts[0]), "the ranks that began go on"
    finish(training, rig)
    assert "cannot be used" not in training.text(), training.text()


@pytest.mark.soak
def test_pods_come_and_go_as_the_script_of_the_operator_says(train, rig, tmp_path, monkeypatch):
    monkeypatch.setenv("K_MPI_JOB_ROLE", "launcher")
    monkeypatch.setenv("OMPI_MCA_orte_set_default_slots", "2")  # the script prints names alone
    mounted = ConfigMap(tmp_path / "mpi")
    training = train(script=mounted.script("hvd1", "hvd2"))
    first = on_both(training, rig)
    mounted.script("hvd2")
    assert await_ranks(training, 2, 2, rig.hosts[1]) == first[1]
    mounted.script("hvd1", "hvd2")
    assert await_ranks(training, 4, 4, rig.hosts[0]) > first[0], "new processes, beside those that left"
    finish(training, rig)


@pytest.mark.long
def test_a_script_of_torch_distributed_goes_on_with_the_hosts_that_are_left(run, rig, tmp_path):
    """The new rank 0 is on another host: MASTER_ADDR says which."""
    skip_without("torch")
    script = tmp_path / "gloo.py"
    script.write_text(
        "import os, signal, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "total = torch.ones(1)\n"
        "dist.all_reduce(total)\n"
        "count = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "print('start', count, 'sum', int(total), 'master', os.environ['MASTER_ADDR'], flush=True)\n"
        "if count == '0':\n"
        "    dist.barrier()\n"
        "    if dist.get_rank() == 0:\n"
        f"        open('{tmp_path / 'hosts'}', 'w').write('hvd2:2\\n')\n"
        "        os._exit(3)\n"
        "    signal.pause()\n")
    (tmp_path / "hosts").write_text("hvd1:1\nhvd2:2\n")
    job = run("-np", 3, "--min-np", 2, "--elastic-timeout", 50, "--host-discovery-script", f"cat {tmp_path / 'hosts'}",
              sys.executable, script, program=rig.on_head(hvdrun_path()))
    assert job.code == 0, job.out + job.err
    assert re.findall(r"start 0 sum 3 master (\S+)", job.out) == ["hvd1"] * 3, job.out + job.err
    last = re.findall(r"start (\d) sum (\d) master (\S+)", job.out)[3:]
    assert last and all(sum_ in ("2", "3") for _, sum_, _ in last), job.out + job.err
    rig.nothing_left()


def test_an_interface_with_the_same_address_everywhere_is_in_nobodys_way(train, rig):
    """docker0 has 172.17.0.1 on every host: it leads to oneself."""
    for host in rig.hosts:
        host.ip("link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up")
    try:
        training = train()
        on_both(training, rig)
        finish(training, rig)
    finally:
        for host in rig.hosts:
            host.ip("link del docker0")
    assert "Traceback" not in training.text()


def test_all_processes_of_a_host_die_at_once(train, rig):
    training = train()
    first = on_both(training, rig)
    for pid in rig.hosts[1].processes():
        kill(pid)
    assert await_ranks(training, 2, 2, rig.hosts[0]) == first[0]
    await_ranks(training, 4, 4, rig.hosts[1])
    finish(training, rig)


def test_ranks_know_the_name_of_their_host_and_are_not_given_up_while_they_are_quiet(run, rig):
    """Hosts that come after hvdrun began get its heartbeats: an agent that hears nothing for some seconds gives up."""
    job = run("-np", 2, "--min-np", 2, "--host-discovery-script", "echo hvd1:1; echo hvd2:1",
              "sh", "-c", "echo $HOROVOD_HOSTNAME is $(hostname); sleep 8", program=rig.on_head(hvdrun_path()))
    assert job.code == 0 and "lost" not in job.err, job.err
    assert sorted(re.findall(r"hvd\d is hvd\d", job.out)) == ["hvd1 is hvd1", "hvd2 is hvd2"], job.out
