"""The wheel on machines with nothing but Python, pip and SSH: Debian 11, the oldest distribution that can be made here (that the wheel needs no more than
glibc 2.28, packaging/wheel/check_wheel.py proves), and Debian 12. `pip install` of the wheel and of PyTorch, digits on two ranks; then two such
machines as hosts, over SSH, without root on either; what each step took is on the screen. Of --soak, by root, who makes the machines: chroots with
networks of their own."""

import os
import re
import shutil
import subprocess
import time

import pytest
from machines import REPO, Machine, base, run

from installed import newest_wheel

TORCH = {"bullseye": "torch==1.12.1", "bookworm": "torch"}  # the last one that brings all it needs, and the newest


@pytest.fixture(scope="session")
def say(request):
    """Writes a line on the screen, also when the test passes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def write(text):
        with capture.global_and_fixture_disabled():
            print(f"\n{text}", flush=True)

    return write


@pytest.fixture(scope="module", params=sorted(TORCH))
def installed(request, tmp_path_factory, say):
    """The layers of a machine on which somebody without root has installed the wheel and PyTorch by pip."""
    wheel = newest_wheel()
    if wheel is None:
        pytest.skip("there is no wheel: scripts/build_wheel.sh makes one")
    suite, folder = request.param, tmp_path_factory.mktemp(request.param)
    root = base(suite)
    machine = Machine(folder / "installing", [root])
    try:
        machine.add_user()
        machine.run("mkdir -p /run/sshd /etc/ssh/ssh_config.d", user="0")
        machine.join_the_network()
        for path in (wheel, REPO / "examples/pytorch_digits.py", REPO / "docker/hvdrun-worker"):
            shutil.copy(path, machine.root / "tmp")
        shutil.copy(REPO / "docker/ssh_config", machine.root / "etc/ssh/ssh_config.d/hvdrun.conf")
        started = time.monotonic()
        machine.run("python3 -m venv env && env/bin/pip install --quiet --no-cache-dir --no-index --no-deps /tmp/hvdrun-*.whl")
        say(f"{suite}: the wheel was installed in {time.monotonic() - started:.1f} s")
        machine.run(f"env/bin/pip install --quiet --no-cache-dir '{TORCH[suite]}' 'numpy{'<2' if suite == 'bullseye' else ''}' scikit-learn")
        say(f"{suite}: with PyTorch of PyPI in {time.monotonic() - started:.1f} s")
        machine.run("mkdir -m 700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && cp .ssh/id_ed25519.pub .ssh/authorized_keys")
    finally:
        machine.remove()
    yield [machine.upper, root]
    shutil.rmtree(folder, ignore_errors=True)


def learned(output):
    found = re.findall(r"test accuracy ([0-9.]+) %", output)
    return bool(found) and float(found[-1]) > 90


def test_two_ranks_train_where_nothing_is_but_python_and_pip(installed, tmp_path, say):
    machine = Machine(tmp_path, installed)
    try:
        assert machine.run("command -v gcc cc cmake || echo none").strip() == "none"  # nothing was compiled
        started = time.monotonic()
        said = machine.run("hvdrun -np 2 python /tmp/pytorch_digits.py --check-hashes")
        assert learned(said), said
        say(f"digits were trained in {time.monotonic() - started:.1f} s")
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
