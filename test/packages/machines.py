"""Machines with nothing but Python, pip and SSH: chroots over a Debian that is made once, each in namespaces of its own. By root, with mmdebstrap."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPO / "test"))
from installed import NO_TOOL  # noqa: E402

CACHE = pathlib.Path.home() / ".cache/hvdrun"
PACKAGES = "python3,python3-venv,ca-certificates,openssh-client,openssh-server"
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

    def join_the_network(self):
        """That of this machine, with its ways to packages."""
        for path in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
            if os.path.exists(path):
                shutil.copy(path, self.root / path[1:])

    def add_user(self):
        self.run(f"useradd --uid 1000 --create-home --home-dir {HOME} --shell /bin/bash ann", user="0")

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
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip(f"it takes root; or mmdebstrap {NO_TOOL}")
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
