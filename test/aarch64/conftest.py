"""A Debian for aarch64 that QEMU emulates: root on another processor makes it once, and its programs run in namespaces of their own."""

import os
import pathlib
import platform
import shutil
import subprocess

import pytest

ROOT = pathlib.Path.home() / ".cache/hvdrun/aarch64-debian"
PACKAGES = "python3,python3-pip,python3-numpy,python3-torch,python3-sklearn,openmpi-bin"
BINFMT = pathlib.Path("/proc/sys/fs/binfmt_misc")
NAME = "hvdrun-aarch64"
# ELF for 64 bits, little-endian, a program or a library (the lowest bit of the type is not looked at), for machine 183.
MAGIC = "7f454c460201010000000000000000000200b700"
MASK = "ffffffffffffff00fffffffffffffffffeffffff"


def escaped(digits):
    return "".join(f"\\x{digits[i:i + 2]}" for i in range(0, len(digits), 2))


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **{"timeout": 1200, **options})
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def emulator():
    """The kernel runs programs for aarch64 by QEMU, also where a chroot lacks it (flag F)."""
    if platform.machine() == "aarch64" or os.geteuid() != 0:
        pytest.skip("it takes root, on another processor than aarch64")
    if not shutil.which("qemu-aarch64-static") or not shutil.which("mmdebstrap"):
        pytest.skip("qemu-user-static or mmdebstrap is missing: scripts/install_deps.sh --cross")
    if not (BINFMT / "register").exists() and subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT]).returncode != 0:
        pytest.skip("this kernel has no binfmt_misc")
    present = any("enabled" in path.read_text() for path in BINFMT.glob("*aarch64*") if "_be" not in path.name)
    if not present:
        (BINFMT / "register").write_text(f":{NAME}:M::{escaped(MAGIC)}:{escaped(MASK)}:{shutil.which('qemu-aarch64-static')}:FO")
    yield
    if not present:
        (BINFMT / NAME).write_text("-1")


class Debian:
    """Commands in it, each in namespaces of its own with a /proc, a /sys, a /dev/shm and a network that is only a loopback."""

    def __init__(self, root):
        self.root = root

    def command(self, *words, shown=None):
        """`shown`: a folder of this machine that is there at the same path. The words' parent is in their namespaces then."""
        setup = "mount -t proc proc $0/proc && mount -t sysfs sysfs $0/sys && mount -t tmpfs -o mode=1777 tmpfs $0/dev/shm && ip link set lo up && "
        if shown is not None:
            setup += f"mkdir -p $0{shown} && mount --bind {shown} $0{shown} && cd {shown} && chroot $0 /usr/bin/env --chdir={shown} \"$@\"; exit $?"
        else:
            setup += "exec chroot $0 \"$@\""
        return ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "sh", "-c", setup, str(self.root), *map(str, words)]

    def start(self, *words, shown=None, env=None, **options):
        """As subprocess.run()."""
        own = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
        return subprocess.run(self.command(*words, shown=shown), text=True, errors="replace", env={**own, **(env or {})}, **options)

    def run(self, *words, code=0, timeout=600):
        done = self.start(*words, capture_output=True, timeout=timeout)
        assert done.returncode == code, f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        return done


@pytest.fixture(scope="session")
def bare_debian(emulator):
    if not (ROOT / "complete").exists():
        shutil.rmtree(ROOT, ignore_errors=True)
        ROOT.parent.mkdir(parents=True, exist_ok=True)
        run("mmdebstrap", "--mode=root", "--architectures=arm64", "--variant=apt", f"--include={PACKAGES}", "bookworm", ROOT, timeout=3600)
        (ROOT / "complete").touch()
    (ROOT / "dev/shm").mkdir(exist_ok=True)
    return Debian(ROOT)
