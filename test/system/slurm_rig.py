"""A Slurm of our own on this machine: one controller and several nodes that are all here. Runs where the packages
slurmd, slurmctld, slurm-client and munge are installed and we are root; leaves nothing behind."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from slowness import scaled  # noqa: E402

DAEMONS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc")
START_S = 60

CONFIGURATION = """
ClusterName=hvdtest
SlurmctldHost={machine}({address})
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=permit_job_expansion
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9
"""


def why_not():
    """None when a Slurm can be started here."""
    missing = [name for name in DAEMONS if shutil.which(name) is None]
    if missing:
        return "there is no " + ", ".join(missing)
    return None if os.geteuid() == 0 else "only root can start slurmctld"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextlib.contextmanager
def an_address_beside_loopback():
    """glibc finds no name, not even in /etc/hosts, for Slurm's daemons where the loopback device is the only one that has an
    address, as in a network namespace of a test's own."""
    devices = json.loads(subprocess.run(["ip", "-j", "addr"], check=True, capture_output=True, text=True).stdout)
    if any(one["scope"] == "global" for device in devices for one in device["addr_info"]):
        yield
        return
    for words in ("link add hvds0 type veth peer name hvds1", "addr add 198.51.100.1/24 dev hvds0", "link set hvds0 up", "link set hvds1 up"):
        subprocess.run(["ip", *words.split()], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "del", "hvds0"], check=True)


class Slurm:
    """`hosts`: a HostRig whose hosts are the nodes; without one, this machine plays so many nodes."""

    def __init__(self, folder, nodes, hosts=None):
        self.folder = pathlib.Path(folder)
        self.hosts = hosts
        controller, *ports = free_ports(1 + nodes)
        machine, address = ("head", hosts.address(0)) if hosts else (socket.gethostname(), "127.0.0.1")
        node = "NodeName={} NodeHostname={} NodeAddr={} Port={} CPUs=4 State=UNKNOWN"
        lines = [node.format(self.name(i), self.name(i) if hosts else machine, hosts.address(i) if hosts else address, port)
                 for i, port in enumerate(ports, 1)]
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        for name in ("munge", "state"):
            (self.folder / name).mkdir(mode=0o700)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            machine=machine, address=address, controller=controller, folder=self.folder, nodes="\n".join(lines)))
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.start(nodes)

    def name(self, number):
        return self.hosts.hosts[number - 1].name if self.hosts else f"node{number}"

    def on_head(self, *command):
        """The words that run a command where salloc, srun and the controller run."""
        return self.hosts.on_head(*command) if self.hosts else list(command)

    def on_node(self, number, *command):
        return self.hosts.hosts[number - 1].command(*command) if self.hosts else list(command)

    def call(self, *command):
        subprocess.run(command, env=dict(os.environ, **self.environment), check=True, timeout=START_S,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self, nodes):
        munge = self.folder / "munge"
        self.call("munged", "--force", f"--socket={munge}/socket", f"--key-file={munge}/key", f"--pid-file={munge}/pid",
                  f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.call(*self.on_head("slurmctld"))
        for i in range(1, nodes + 1):
            (self.folder / f"spool-{self.name(i)}").mkdir()
            self.call(*self.on_node(i, "slurmd", "-N", self.name(i)))
        end = time.monotonic() + scaled(START_S)
        while self.idle_nodes() < nodes:
            if time.monotonic() > end:
                raise TimeoutError("the nodes of Slurm did not come up; see " + str(self.folder))
            time.sleep(0.1)

    def ask(self, *command):
        return subprocess.run(self.on_head(*command), env=dict(os.environ, **self.environment),
                              capture_output=True, text=True, timeout=START_S,
                              cwd=self.folder).stdout

    def idle_nodes(self):
        return sum(int(word) for word in self.ask("sinfo", "-h", "-t", "idle", "-o", "%D").split() if word.isdigit())

    def stop(self):
        # The slurmd of a host ends with it, and its number is one of its own processes.
        daemons = self.folder.glob("slurmctld.pid" if self.hosts else "slurm*.pid")
        for path in [*daemons, self.folder / "munge" / "pid"]:
            try:
                os.kill(int(path.read_text()), signal.SIGTERM)
            except (OSError, ValueError):
                pass  # it did not start
