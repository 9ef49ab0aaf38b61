"""Hosts of one machine: each has its own network, names, processes, memory and clocks, and an sshd; all hang at one bridge.

The bridge and the place where hvdrun runs ("head") are in a network namespace of their own, so no address of the rig is
seen outside. The file system is shared, as with a home directory on NFS. Needs root.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from conftest import INSTALLED, children_of, is_alive, kill, pids, read_proc, wait_until

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
MISSING = [name for name in ("ip", "nsenter", "unshare", "ssh", "ssh-keygen") if not shutil.which(name)]
WHY_NOT = ("it needs root" if os.geteuid() != 0
           else "there is no " + ", ".join(MISSING) if MISSING
           else "" if os.path.exists(SSHD) else "there is no sshd")


OWN_CLOCKS = os.path.exists("/proc/self/ns/time")  # else all hosts have the clock of this machine


def clock_offset(number):
    """By how many seconds the steady clocks of a host are ahead: as of hosts that booted long before this machine, or,
    every other one, after it (no clock can be made to show less than 0)."""
    if number % 2 == 1:
        return 1_000_000 * number
    return -int(time.monotonic() * (0.5 + 0.4 / number))


def run(*command, **kwargs):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **kwargs).stdout


class Host:
    def __init__(self, rig, number):
        self.rig = rig
        self.number = number
        self.name = f"hvd{number}"
        self.address = rig.address(number)
        self.log = rig.folder / f"{self.name}.log"
        script = (
            f"hostname {self.name} && mount --bind {rig.folder}/hosts /etc/hosts && mount -t tmpfs none /dev/shm && "
            "mkdir -p /run/sshd && ip link set lo up && "
            # The veth comes from outside; sshd listens on all addresses, whenever they come.
            f"exec {self.one_core()}{SSHD} -D -f {rig.folder}/sshd_config -E {self.log}"
        )
        self.process = rig.spawn(
            "unshare", *self.own_clocks(), "--net", "--uts", "--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc",
            "setsid", "sh", "-c", script)
        wait_until(f"the first process of {self.name}", lambda: children_of(self.process.pid))
        self.init = children_of(self.process.pid)[0]

    def own_clocks(self):
        offset = clock_offset(self.number)
        return ["--time", "--monotonic", str(offset), "--boottime", str(offset)] if OWN_CLOCKS else []

    def one_core(self):
        """Of an installed hvdrun, which sees no GPUs that tests make (have_gpus): one slot, as with one GPU."""
        cores = sorted(os.sched_getaffinity(0))
        return f"taskset --cpu-list {cores[self.number % len(cores)]} " if INSTALLED else ""

    def plug_in(self):
        rig = self.rig
        # The namespace is the process's own only once unshare is done.
        wait_until(f"the network of {self.name}",
                   lambda: os.readlink(f"/proc/{self.init}/ns/net") != os.readlink(f"/proc/{rig.head.pid}/ns/net"))
        rig.ip(f"link add vh{self.number} type veth peer name eth0 netns {self.init}",
               f"link set vh{self.number} master hvdbr up")
        self.ip(f"addr add {self.address}/16 dev eth0", f"addr add {rig.address6(self.number)}/64 dev eth0 nodad",
                "link set eth0 up")

    def command(self, *command):
        """The words that run a command on this host."""
        return ["nsenter", "-t", str(self.init), "-a", "--", *map(str, command)]

    def run(self, *command, **kwargs):
        return run(*self.command(*command), **kwargs)

    def ip(self, *lines):
        run("nsenter", "-t", self.init, "-n", "ip", "-b", "-", input="\n".join(lines) + "\n")

    def processes(self):
        """Those that run on this host, without its sshd."""
        if not is_alive(self.init):
            return []
        mine = os.readlink(f"/proc/{self.init}/ns/pid")
        found = []
        for pid in pids():
            try:
                if os.readlink(f"/proc/{pid}/ns/pid") == mine and pid != self.init and is_alive(pid):
                    found.append(pid)
            except OSError:
                pass  # it has ended
        return [pid for pid in found if not read_proc(pid, "comm").startswith(b"sshd")]

    def agents(self):
        return [pid for pid in self.processes() if b"\0agent\0" in read_proc(pid, "cmdline")]

    def cut(self):
        """Nothing goes in or out any more; nobody is told."""
        self.rig.ip(f"link set vh{self.number} down")

    def join(self):
        self.rig.ip(f"link set vh{self.number} up")

    def slow_down(self, rate):
        """Data to this host and from it passes at so much ("20mbit"); as it was with None."""
        for device, namespace in ((f"vh{self.number}", self.rig.head.pid), ("eth0", self.init)):
            tc = ["nsenter", "-t", namespace, "-n", "tc", "qdisc"]
            if rate is None:
                run(*tc, "del", "dev", device, "root")
            else:
                run(*tc, "add", "dev", device, "root", "tbf", "rate", rate, "burst", "64kb", "latency", "100ms")

    def filter(self, *rules):
        """Rules of nft for what comes to this host over its network; none: as it was."""
        if rules:
            text = " iif lo accept\n " + "\n ".join(rules)
            self.run("nft", "-f", "-", input="table inet rig {\n chain i {\n type filter hook input priority 0;\n" + text + "\n }\n}\n")
        else:
            self.run("nft", "delete", "table", "inet", "rig")

    def switch_off(self):
        os.kill(self.init, signal.SIGKILL)

    def sessions(self):
        """Processes of its sshd, without the one that listens."""
        mine = []
        for pid in pids():
            try:
                same = os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{self.init}/ns/pid")
            except OSError:
                continue
            if same and read_proc(pid, "comm").startswith(b"sshd") and pid != self.init:
                mine.append(pid)
        return mine

    def kill_sshd(self):
        for pid in self.sessions():
            kill(pid)


class HostRig:
    def __init__(self, folder, count, sshd_options=(), environment=""):
        self.folder = pathlib.Path(folder)
        self.environment = environment  # NAME=value ..., for what sshd starts
        self.processes = []
        try:
            self.write_files(count, sshd_options)
            self.begin_head()
            self.hosts = [Host(self, i) for i in range(1, count + 1)]
            for host in self.hosts:
                host.plug_in()
            for host in self.hosts:
                self.wait_for_sshd(host)
        except BaseException:
            self.down()
            raise

    @staticmethod
    def address(number):
        return f"10.99.{number // 250}.{number % 250 + 1}"

    @staticmethod
    def address6(number):
        return f"fd99::{number + 1:x}"

    def write_files(self, count, sshd_options):
        for kind in ("host_key", "id"):
            if not (self.folder / kind).exists():
                run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / kind)
        shutil.copy(self.folder / "id.pub", self.folder / "authorized_keys")
        names = [(f"hvd{i}" if i else "head", self.address(i), self.address6(i)) for i in range(count + 1)]
        self.write("hosts", "127.0.0.1 localhost\n::1 localhost\n" +
                   "".join(f"{four} {name}\n{six} {name}-v6\n" for name, four, six in names))
        key = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        self.write("known_hosts", "".join(f"{name},{name}-v6,{four},{six} {key}\n" for name, four, six in names))
        self.have_gpus(1)
        usual = [
            "Port 22", f"HostKey {self.folder}/host_key", f"AuthorizedKeysFile {self.folder}/authorized_keys",
            "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PidFile none",
            "UseDNS no", "MaxStartups 1000", f"SetEnv SHLVL=1 HVD_TEST_DEV={self.folder}/dev {self.environment}", "PermitRootLogin prohibit-password"]
        said = {line.split()[0] for line in sshd_options}
        self.write("sshd_config", "\n".join([*sshd_options, *(line for line in usual if line.split()[0] not in said)]) + "\n")
        self.ssh_config()

    def have_gpus(self, count):
        """Every host has so many, and thus as many slots by itself; with 0, as many as it has cores."""
        if INSTALLED and count != 1:
            pytest.skip("an installed hvdrun sees no GPUs that tests make")
        devices = self.folder / "dev"
        shutil.rmtree(devices, ignore_errors=True)
        devices.mkdir()
        for number in range(count):
            (devices / f"nvidia{number}").touch()

    def ssh_config(self, *more):
        """The user's configuration, as hvdrun and ssh find it; `more` comes first and so wins."""
        self.write("ssh_config", "\n".join([
            *more, "Host *", f" IdentityFile {self.folder}/id", " IdentitiesOnly yes", " User root",
            f" UserKnownHostsFile {self.folder}/known_hosts", " GlobalKnownHostsFile none",
            " KexAlgorithms curve25519-sha256"]) + "\n")

    def write(self, name, text):
        # In place: a mount of it shows the new text.
        with open(self.folder / name, "w") as file:
            file.write(text)

    def begin_head(self):
        script = (f"mount --bind {self.folder}/hosts /etc/hosts && "
                  f"mount --bind {self.folder}/ssh_config /etc/ssh/ssh_config && "
                  "hostname head && ip link set lo up && echo up && exec sleep 100000")
        self.head = self.spawn("unshare", "--net", "--mount", "--uts", "sh", "-c", script, outside=True,
                               stdout=subprocess.PIPE)
        assert self.head.stdout.readline() == b"up\n"
        self.ip("link add hvdbr type bridge forward_delay 0", f"addr add {self.address(0)}/16 dev hvdbr",
                f"addr add {self.address6(0)}/64 dev hvdbr nodad", "link set hvdbr up")

    def spawn(self, *command, outside=False, **kwargs):
        words = [] if outside else ["nsenter", "-t", str(self.head.pid), "-n", "--"]
        kwargs.setdefault("stdout", subprocess.DEVNULL)
        process = subprocess.Popen(words + list(command), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kwargs)
        self.processes.append(process)
        return process

    def ip(self, *lines):
        run("nsenter", "-t", self.head.pid, "-n", "ip", "-b", "-", input="\n".join(lines) + "\n")

    def on_head(self, *command):
        """The words that run a command where hvdrun runs."""
        return ["nsenter", "-t", str(self.head.pid), "-n", "-m", "-u", f"--wd={os.getcwd()}", "--", *map(str, command)]

    def wait_for_sshd(self, host):
        probe = self.on_head("bash", "-c", f"exec 3<>/dev/tcp/{host.address}/22")
        wait_until(f"the sshd of {host.name}", lambda: subprocess.run(probe, capture_output=True).returncode == 0)

    def nothing_left(self):
        wait_until("nothing left on any host", lambda: not any(host.processes() for host in self.hosts), limit=30)

    def down(self):
        for process in reversed(self.processes):
            process.kill()  # unshare blocks SIGTERM; its host goes with it
        for process in self.processes:
            process.wait()


def rig_of(count):
    """A fixture: so many hosts, the same for all tests of a file."""

    @pytest.fixture(scope="module", name="rig")
    def rig(tmp_path_factory):
        rig = HostRig(tmp_path_factory.mktemp("rig"), count)
        yield rig
        rig.down()

    return rig
