"""Ranks on other hosts have the login over there, and get the signals that warn."""

import os
import pathlib
import pwd
import signal
import sys

import pytest
from conftest import read_until
from host_rig import WHY_NOT, rig_of
from test_warning_signals import HANDLES, finish

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaced hosts: {WHY_NOT}")
rig = rig_of(2)
HOSTS = "hvd1:1,hvd2:1"


def test_a_rank_has_the_variables_of_the_login_on_its_host(hosts_run, tmp_path):
    names = ("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR")
    here = {name: f"/nowhere/{name}" for name in names}
    del here["HOME"]  # hvdrun itself needs it
    job = hosts_run("-np", 1, "-H", "hvd2:1", "-x", "LOGNAME", "sh", "-c", "env", env=here)
    assert job.code == 0, job.err
    there = dict(line.split(">:", 1)[1].split("=", 1) for line in job.out.splitlines() if "=" in line)
    user = pwd.getpwuid(os.geteuid())
    assert there["HOME"] == user.pw_dir and there["USER"] == user.pw_name
    assert there["LOGNAME"] == "/nowhere/LOGNAME", "-x wins"
    assert "TMPDIR" not in there and "XDG_RUNTIME_DIR" not in there


def test_ranks_of_other_hosts_get_a_signal_that_warns(hosts_start, tmp_path):
    job = hosts_start("-np", 2, "-H", HOSTS, sys.executable, "-S", "-E", "-c", HANDLES, tmp_path / "go")
    read_until(job.process.stdout, "ready", 2)
    job.process.send_signal(signal.SIGUSR2)
    out = read_until(job.process.stdout, "rank got 12", 2).decode()
    assert finish(job, tmp_path) == 0, job.err
    assert (out + job.out).count("got") == 2


@pytest.fixture
def bob(rig, tmp_path):
    """A user of hvd2, with a home there, who may log in as the others do."""
    home = tmp_path / "bob"
    home.mkdir()
    os.chown(home, 54321, 54321)
    for folder in (rig.folder, home):
        while folder != folder.parent:
            os.chmod(folder, os.stat(folder).st_mode | 0o055)
            folder = folder.parent
    os.chmod(rig.folder / "authorized_keys", 0o644)
    for name, line in (("passwd", f"bob:x:54321:54321::{home}:/bin/sh"), ("group", "bob:x:54321:"), ("shadow", "bob:*:19000::::::")):
        with open(f"/etc/{name}") as file:
            (tmp_path / name).write_text(file.read().rstrip("\n") + "\n" + line + "\n")
        rig.hosts[1].run("mount", "--bind", tmp_path / name, f"/etc/{name}")
    yield home
    for name in ("passwd", "group", "shadow"):
        rig.hosts[1].run("umount", f"/etc/{name}")


def test_a_rank_of_another_user_has_the_login_of_that_user(hosts_run, bob):
    write = 'env; cd && touch "$HOME/mine" && id -un'
    job = hosts_run("-np", 1, "-H", "bob@hvd2:1", "sh", "-c", write, env={"HOME": str(pathlib.Path.home()), "USER": "root", "LOGNAME": "root"})
    assert job.code == 0, job.err
    there = dict(line.split(">:", 1)[1].split("=", 1) for line in job.out.splitlines() if "=" in line)
    assert (there["HOME"], there["USER"], there["LOGNAME"]) == (str(bob), "bob", "bob")
    assert (bob / "mine").exists() and "[0]<stdout>:bob" in job.out
