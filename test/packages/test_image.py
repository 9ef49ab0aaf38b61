"""docker/Dockerfile without Docker: each step of the images `runtime` and `torch` runs in a chroot of Debian 12, then its worker and its command do as
its user. Of --soak. The chroot is an overlay of this machine, so nothing outside of it changes; with PyTorch it takes 6 GB, for a while."""

import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
WORLD = "from horovod.common.basics import shared; hvd = shared(); hvd.init(); print(hvd.rank(), hvd.size())"


def steps(text, stage):
    """[(instruction, rest)] of a stage, with lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    found, inside = [], False
    for line in joined:
        word, rest = line.split(" ", 1)
        if word == "FROM":
            inside = rest.endswith(f" AS {stage}")
        elif inside:
            found.append((word, rest))
    return found


class Image:
    def __init__(self, folder):
        self.root, self.env, self.user, self.directory = folder / "root", {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, "0", "/"
        for name in ("upper", "work", "root"):
            (folder / name).mkdir()
        mount = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", mount, self.root], check=True)
        subprocess.run(["mount", "--rbind", "/dev", self.root / "dev"], check=True)
        subprocess.run(["mount", "--make-rslave", self.root / "dev"], check=True)
        for file in ("passwd", "group"):  # id 1000 is free, as in a Debian image
            path = pathlib.Path(f"{self.root}/etc/{file}")
            path.write_text("".join(line for line in path.read_text().splitlines(True) if line.split(":")[2] != "1000"))

    def remove(self):
        subprocess.run(["umount", "-R", "-l", self.root], check=True)

    def run(self, script, network=True, timeout=600):
        """As the present user, in a process namespace of its own: what a step leaves running ends with it."""
        setup = "mount -t proc proc proc && " + ("" if network else "ip link set lo up && ")
        enter = f'{setup}exec chroot --userspec={self.user}:{self.user} . /bin/sh -c "cd {self.directory} && exec /bin/bash -o pipefail -c \\"\\$0\\"" "$0"'
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"]), "sh", "-c", enter, script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env={**self.env, "HOME": self.directory}, cwd=self.root)
        assert done.returncode == 0, f"{script}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def copy(self, words):
        mode = [word for word in words if word.startswith("--chmod=")]
        *sources, target = [word for word in words if not word.startswith("--")]
        place = pathlib.Path(f"{self.root}{target}")
        for source in sources:
            for path in sorted(REPO.glob(source)):
                if path.is_dir():
                    shutil.copytree(path, place)
                    continue
                into = place / path.name if target.endswith("/") else place
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, into)
                into.chmod(int(mode[0].split("=")[1], 8) if mode else 0o644)

    def build(self, stage):
        """Does its steps; returns the words of its CMD."""
        command = []
        for word, rest in steps((REPO / "docker/Dockerfile").read_text(), stage):
            if word == "CMD":
                command = json.loads(rest)
            else:
                self.do(word, rest)
        return command

    def do(self, word, rest):
        if word == "RUN":
            self.run(rest, timeout=1800)
        elif word == "ARG":
            name, value = rest.split("=", 1)
            self.env[name] = value
        elif word == "ENV":
            name, value = rest.split("=", 1)
            self.env[name] = re.sub(r"\$(\w+)", lambda found: self.env[found.group(1)], value)
        elif word == "COPY":
            self.copy(shlex.split(rest))
        elif word == "USER":
            self.user = rest
        elif word == "WORKDIR":
            self.directory = rest
        else:
            assert word in ("SHELL", "EXPOSE"), word


@pytest.fixture
def image(tmp_path):
    if not list((REPO / "dist").glob("hvdrun-*-manylinux_2_28_x86_64.whl")):
        pytest.skip("there is no wheel: scripts/build_wheel.sh makes one")
    if os.geteuid() != 0 or platform.freedesktop_os_release().get("VERSION_CODENAME") != "bookworm":
        pytest.skip("the chroot is made by root on Debian 12")
    try:
        made = Image(tmp_path)
    except subprocess.CalledProcessError:
        pytest.skip("no overlay can be mounted here")
    yield made
    made.remove()
    shutil.rmtree(tmp_path / "upper")


def test_the_steps_of_the_dockerfile_make_an_image_that_works(image):
    image.build("runtime")
    assert (image.user, image.directory) == ("1000", "/home/hvdrun")
    assert image.run("command -v hvdrun").strip() == "/opt/hvdrun/bin/hvdrun"
    assert sorted(image.run(f"hvdrun -np 2 --prefix '' python3 -c {shlex.quote(WORLD)}").splitlines()) == ["0 2", "1 2"]
    left = [str(path) for path in pathlib.Path(f"{image.root}/etc/ssh").glob("ssh_host_*")]
    assert left == [] and not pathlib.Path(f"{image.root}/home/hvdrun/.ssh").exists()  # no key in a layer
    # A pod mounts its keys; its worker listens on 2222 without root, and a rank there has the PATH of the image.
    said = image.run("mkdir -m 700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && cp .ssh/id_ed25519.pub .ssh/authorized_keys\n"
                     "hvdrun-worker 2>worker.log &\n"
                     "for i in $(seq 300); do grep -q 'Server listening' worker.log && break; sleep 0.1; done\n"
                     "ssh 127.0.0.1 hvdrun --version", network=False)
    assert said.startswith("hvdrun "), said


def test_the_command_of_the_image_with_pytorch_trains(image):
    """PyTorch is that of PyPI, as in the image."""
    image.build("runtime")
    command = image.build("torch")
    assert image.user == "1000"
    said = image.run(shlex.join(command), network=False)
    found = re.findall(r"test accuracy ([0-9.]+) %", said)
    assert found and float(found[-1]) > 90, said
    assert image.run("python3 -c 'import torch; print(torch.__file__)'").startswith("/opt/hvdrun/"), "of the image, not of this machine"
