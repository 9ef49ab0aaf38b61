"""The wheel on machines with nothing but Python, pip and SSH: Debian 11, the oldest distribution that can be made here (that the wheel needs no more than
glibc 2.28, packaging/wheel/check_wheel.py proves), and Debian 12. `pip install` of the wheel and of PyTorch, digits on two ranks; then two such
machines as hosts, over SSH, without root on either. Of --soak, by root, who makes the machines: chroots with networks of their own."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPO / "test"))
from installed import newest_wheel  # noqa: E402

CACHE = pathlib.Path.home() / ".cache/hvdrun"
PACKAGES = "python3,python3-venv,ca-certificates,openssh-client,openssh-server"
TORCH = {"bullseye": "torch==1.12.1", "bookworm": "torch"}  # the last one that brings all it needs, and the newest
HOME = "/home/ann"
PATH = f"{HOME}/env/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **{"timeout": 1800, **options})
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Machine:
    """A chroot over read-only layers, which are left as they are. `network`: the name of a network namespace; None: this machine's."""

    def __init__(self, folder, layers, network=None):
        self.root, self.upper, self.network = folder / "root", folder / "upper", network
        for name in ("root", "upper", "work"):
            (folder / name).mkdir(parents=True)
        lower = ":".join(str(layer) for layer in layers)
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={self.upper},workdir={folder}/work", self.root)

    def remove(self):
        run("umount", "-l", self.root)

    def command(self, script, user="1000"):
        within = ["ip", "netns", "exec", self.network] if self.network else []
        setup = ("mount -t proc proc proc && mount -t tmpfs -o mode=1777 tmpfs dev/shm && "
                 f"exec chroot --userspec={user}:{user} . /bin/sh -c \"cd {HOME if user != '0' else '/'} && exec /bin/sh -ec \\\"\\$0\\\"\" \"$0\"")
        return [*within, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", setup, script]

    def environment(self):
        pip = {name: value for name, value in os.environ.items() if name in ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "PIP_CERT")}
        return {"PATH": PATH, "HOME": HOME, "LC_ALL": "C.UTF-8", **pip}

    def run(self, script, user="1000", timeout=1800):
        return run(*self.command(script, user), cwd=self.root, env=self.environment(), timeout=timeout)

    def start(self, script, log):
        return subprocess.Popen(self.command(script), cwd=self.root, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def base(suite):
    """Made once: a Debian with the packages above."""
    root = CACHE / f"debian-{suite}"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        run("mmdebstrap", "--mode=root", "--variant=minbase", f"--include={PACKAGES}", suite, root)
        for name in ("null", "zero", "urandom", "random", "tty"):
            if not (root / "dev" / name).exists():
                run("cp", "-a", f"/dev/{name}", root / "dev")
        (root / "dev/shm").mkdir(exist_ok=True)
        (root / "complete").touch()
    return root


@pytest.fixture(scope="module", params=sorted(TORCH))
def installed(request, tmp_path_factory):
    """The layers of a machine on which somebody without root has installed the wheel and PyTorch by pip."""
    wheel = newest_wheel()
    if wheel is None:
        pytest.skip("there is no wheel: scripts/build_wheel.sh makes one")
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip("it takes root and mmdebstrap, which scripts/install_deps.sh --cross installs")
    suite, folder = request.param, tmp_path_factory.mktemp(request.param)
    root = base(suite)
    machine = Machine(folder / "installing", [root])
    try:
        machine.run(f"useradd --uid 1000 --create-home --home-dir {HOME} --shell /bin/bash ann && mkdir -p /run/sshd /etc/ssh/ssh_config.d", user="0")
        for path in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):  # the network is this machine's
            if os.path.exists(path):
                shutil.copy(path, machine.root / path[1:])
        for path in (wheel, REPO / "examples/pytorch_digits.py", REPO / "docker/hvdrun-worker"):
            shutil.copy(path, machine.root / "tmp")
        shutil.copy(REPO / "docker/ssh_config", machine.root / "etc/ssh/ssh_config.d/hvdrun.conf")
        started = time.monotonic()
        machine.run("python3 -m venv env && env/bin/pip install --quiet --no-cache-dir --no-index --no-deps /tmp/hvdrun-*.whl")
        print(f"\n{suite}: the wheel was installed in {time.monotonic() - started:.1f} s")
        machine.run(f"env/bin/pip install --quiet --no-cache-dir '{TORCH[suite]}' 'numpy{'<2' if suite == 'bullseye' else ''}' scikit-learn")
        print(f"{suite}: with PyTorch in {time.monotonic() - started:.1f} s")
        machine.run("mkdir -m 700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && cp .ssh/id_ed25519.pub .ssh/authorized_keys")
    finally:
        machine.remove()
    yield [machine.upper, root]
    shutil.rmtree(folder, ignore_errors=True)


def learned(output):
    found = re.findall(r"test accuracy ([0-9.]+) %", output)
    return bool(found) and float(found[-1]) > 90


def test_two_ranks_train_where_nothing_is_but_python_and_pip(installed, tmp_path):
    machine = Machine(tmp_path, installed)
    try:
        assert machine.run("command -v gcc cc cmake || echo none").strip() == "none"  # nothing was compiled
        said = machine.run("hvdrun -np 2 python /tmp/pytorch_digits.py --check-hashes")
        assert learned(said), said
    finally:
        machine.remove()


@pytest.fixture
def pair(installed, tmp_path):
    """Two of them, a and b, joined by a cable."""
    names = [f"hvd-bare-{os.getpid()}-{which}" for which in "ab"]
    machines = []
    try:
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
        for number, name in enumerate(names, 1):
            run("ip", "-n", name, "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                run("ip", "-n", name, "link", "set", device, "up")
            machine = Machine(tmp_path / name, installed, name)
            machines.append(machine)
            (machine.root / "etc/hosts").write_text("127.0.0.1 localhost\n10.77.0.1 a\n10.77.0.2 b\n")
        yield machines
    finally:
        for machine in machines:
            machine.remove()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name])


def test_two_such_machines_are_hosts_without_root(pair, tmp_path):
    a, b = pair
    with open(tmp_path / "sshd.log", "w+") as log:
        server = b.start("exec sh /tmp/hvdrun-worker", log)
        try:
            deadline = time.monotonic() + 60
            while "Server listening" not in (tmp_path / "sshd.log").read_text():
                assert server.poll() is None and time.monotonic() < deadline, (tmp_path / "sshd.log").read_text()
                time.sleep(0.1)
            said = a.run("hvdrun -np 2 -H a:1,b:1 python /tmp/pytorch_digits.py --check-hashes")
            assert learned(said), said
            where = a.run("hvdrun -np 2 -H a:1,b:1 --prefix '' python -c \"import os; print(os.environ['HOROVOD_HOSTNAME'], os.getuid())\"")
            assert sorted(where.splitlines()) == ["a 1000", "b 1000"], where
        finally:
            server.kill()
            server.wait()
