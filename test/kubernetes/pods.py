"""Pods of one machine, for what a chart starts in them: each has its own network, names, processes, /tmp and /dev/shm, and /etc of the
cluster with its ConfigMap, its Secret and the names of all pods. Containers run as their securityContext says: user 1000, without
any capability. Needs root and a network of its own (test/isolated.sh)."""

import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from chart import REPO, of_kind, pod_of

sys.path.append(str(REPO / "test"))
from slowness import scaled  # noqa: E402

USER = 1000
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--"]
HOME = "/tmp/home"
NUMBERS = itertools.count(2)  # not those of the test before: the network of a pod goes some time after its processes


def hvdrun():
    path = os.environ.get("HVDRUN") or REPO / "build/bin/hvdrun"
    if not os.path.exists(path):
        pytest.skip("hvdrun is not built; HVDRUN names another one")
    return pathlib.Path(path)


def alone():
    """Whether this network is the test's own (test/isolated.sh): rigs appear in no other."""
    devices = set(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else set()
    interfaces = {line.split(":")[0].strip() for line in open("/proc/self/net/dev").read().splitlines()[2:]}
    return os.getuid() == 0 and (interfaces == {"lo"} or devices == {"lo"})


def why_not():
    if not os.path.exists("/usr/sbin/sshd"):
        return "there is no openssh-server"
    if not alone():
        return "it needs a network of its own: test/isolated.sh python3 -m pytest ..."
    if subprocess.run([*AS_USER, "test", "-r", __file__, "-a", "-x", hvdrun()]).returncode != 0:
        return f"user {USER} may not read {REPO} or {hvdrun()}"
    return ""


def wait_until(what, condition, told=lambda: "", limit=60):
    end = time.monotonic() + scaled(limit)
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}\n{told()}"
        time.sleep(0.05)


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


class Pod:
    """One container of a pod: its command runs as the first process."""

    SCRIPT = """set -e
        until ip link set eth0 up 2>/dev/null; do sleep 0.05; done
        ip link set lo up && hostname "$1" && mount --bind "$2/etc" /etc
        mount --bind "$3" /mnt && mount -t tmpfs -o mode=1777 none /tmp && mkdir -p "$3" && mount --bind /mnt "$3"
        mount -t tmpfs -o mode=1777 none /dev/shm
        echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start  # as containerd does
        mkdir "$HOME" && chown "$4:$4" "$HOME" && cd "$HOME"
        shift 4 && exec "$@" """

    def __init__(self, cluster, name, pod):
        container = pod["containers"][0]
        self.container, self.number = container, next(NUMBERS)
        self.address = f"10.99.0.{self.number}"
        self.output = cluster.folder / f"{name}.{self.number}.log"
        self.environment = {"PATH": f"{hvdrun().parent}:/usr/local/bin:/usr/bin:/bin", "HOME": HOME,
                            **{variable["name"]: variable["value"] for variable in container.get("env", [])}}
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                ["unshare", "--net", "--uts", "--mount", "--ipc", "--fork", "--kill-child", *([] if pod["hostPID"] else ["--pid", "--mount-proc"]),
                 "sh", "-c", self.SCRIPT, "sh", name, cluster.folder, cluster.shared, str(USER), *AS_USER, *container["command"], *container.get("args", [])],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        wait_until(f"the first process of {name}", lambda: children.read_text().split(), self.text)
        self.first = int(children.read_text().split()[0])
        wait_until(f"the network of {name}", lambda: os.readlink(f"/proc/{self.first}/ns/net") != os.readlink("/proc/self/ns/net"))
        self.mounts = os.readlink(f"/proc/{self.first}/ns/mnt")
        ip("link", "add", f"pod{self.number}", "type", "veth", "peer", "name", "eth0", "netns", self.first)
        ip("link", "set", f"pod{self.number}", "master", "pods", "up")
        subprocess.run(["nsenter", "-t", str(self.first), "-n", "ip", "addr", "add", f"{self.address}/16", "dev", "eth0"], check=True)

    def text(self):
        return self.output.read_text(errors="replace")

    def run(self, command):
        """As `kubectl exec` and preStop do; its exit code and what it says."""
        done = subprocess.run(["nsenter", "-t", str(self.first), "-a", "--", *AS_USER, *command], env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=scaled(120))
        return done.returncode, done.stdout + done.stderr

    def pre_stop(self):
        return self.run(self.container["lifecycle"]["preStop"]["exec"]["command"])

    def end(self):
        """As kubelet ends a pod: preStop, SIGTERM for the first process, and all others go with it."""
        said = self.pre_stop()
        if self.process.poll() is None:
            os.kill(self.first, signal.SIGTERM)
        self.wait()
        return said

    def wait(self, limit=60):
        try:
            return self.process.wait(scaled(limit))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end\n{self.text()}") from None
        finally:
            self.kill()

    def kill(self):
        """All its processes, also where they have no namespace that goes with the first."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(folder / "ns/mnt") == self.mounts:
                    os.kill(int(folder.name), signal.SIGKILL)
            except OSError:
                pass  # it has ended
        self.process.kill()
        self.process.wait()


class Cluster:
    """Of the objects that a chart made, those that pods mount; pods are started by name."""

    def __init__(self, folder, objects):
        self.folder, self.shared, self.pods, self.versions = folder, folder / "shared", [], 0
        self.shared.mkdir()
        self.shared.chmod(0o777)
        etc = folder / "etc"
        shutil.copytree("/etc", etc, symlinks=True, ignore=lambda path, names: names if path == "/etc/ssh" else [])
        shutil.copy(REPO / "docker/ssh_config", etc / "ssh/ssh_config")
        others = [line for line in (etc / "passwd").read_text().splitlines() if line.split(":")[2] != str(USER)]
        (etc / "passwd").write_text("\n".join([*others, f"hvdrun:x:{USER}:{USER}::{HOME}:/bin/bash"]) + "\n")
        for name in ("hvdrun", "hvdrun-ssh"):
            (etc / name).mkdir()
        key = etc / "hvdrun-ssh/key"
        key.write_text(of_kind(objects, "Secret")["stringData"]["key"])
        os.chown(key, 0, USER)
        key.chmod(0o440)
        self.names = {}
        self.name_pods()
        self.upgrade(objects)
        ip("link", "add", "pods", "type", "bridge", "forward_delay", "0")
        ip("link", "set", "pods", "up")

    def name_pods(self):
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self.names.items())]
        (self.folder / "etc/hosts").write_text("\n".join(lines) + "\n")

    def upgrade(self, objects):
        """The files of the ConfigMap are links to a folder that is another one after each change."""
        self.objects, self.versions = objects, self.versions + 1
        mounted = self.folder / "etc/hvdrun"
        version = mounted / f"..{self.versions}"
        version.mkdir()
        for name, text in of_kind(objects, "ConfigMap")["data"].items():
            (version / name).write_text(text)
            (version / name).chmod(0o555)
            if self.versions == 1:
                (mounted / name).symlink_to(f"..data/{name}")
        (mounted / "..data_tmp").symlink_to(version.name)
        (mounted / "..data_tmp").rename(mounted / "..data")

    def begin(self, name, kind):
        pod = Pod(self, name, pod_of(self.objects, kind))
        self.pods.append(pod)
        return pod

    def worker(self, number):
        service = of_kind(self.objects, "Service")["metadata"]["name"]
        pod = self.begin(f"{service}-{number}", "StatefulSet")
        self.names[f"{service}-{number}.{service}"] = pod.address
        self.name_pods()
        return pod

    def launcher(self):
        return self.begin("launcher", "Job")

    def down(self):
        for pod in self.pods:
            pod.kill()
        ip("link", "del", "pods")
