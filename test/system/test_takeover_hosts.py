"""hvdrun of a detached job over several hosts is killed, and another one reaches their agents over sshd and goes on."""

import os
import re
import signal
import sys

import pytest
from conftest import WORKERS, kill, read_proc, wait_until
from host_rig import WHY_NOT
from test_detached_hosts import detached, rig  # noqa: F401
from test_detached_jobs import counting, lines_of
from test_takeover import TAKEN, kill_driver

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(params=["auto", "program"])
def client(request):
    return ["--ssh-client", request.param]


def test_output_of_all_hosts_is_complete_and_once(detached, rig, client):  # noqa: F811
    name = detached.begin(*client, "-np", 4, "-H", "head:1,hvd1:1,hvd2:2", *counting(6000, "case $i in *00) sleep 0.05;; esac"))
    for number in range(3):
        kill_driver(detached, name)
        wait_until("the takeover", lambda: detached.text(name).count(TAKEN) == number + 1)
    attached = detached.run("attach", name)
    text = detached.text(name)
    assert attached.returncode == 0, text[-2000:]
    for rank in range(4):
        assert lines_of(text, rank) == list(range(1, 6001))
    wait_until("nothing left", lambda: not [host.processes() for host in rig.hosts if host.processes()])


def test_worlds_over_hosts_begin_after_takeovers(detached, rig, tmp_path):  # noqa: F811
    name = detached.begin("-np", 3, "-H", "head:1,hvd1:1,hvd2:1", sys.executable, WORKERS / "generations_worker.py", tmp_path, 2)
    for place in "init.0", "sum.0", "init.1", "sum.1":
        wait_until(place, lambda: f"at {place}\n" in detached.text(name), told=lambda: detached.text(name))
        kill_driver(detached, name)
        (tmp_path / place).write_text("")
    assert detached.run("attach", name).returncode == 0, detached.text(name)
    assert len(re.findall(r"^\[\d\]<stdout>:done$", detached.text(name), re.M)) == 3, detached.text(name)


@pytest.mark.parametrize("who", ["sshd", "agent", "worker"])
def test_a_host_loses_something_together_with_hvdrun(detached, rig, who):  # noqa: F811
    """A connection comes back; a worker or an agent that was killed is the first cause."""
    name = detached.begin("-np", 2, "-H", "hvd1:1,hvd2:1", *counting(300, "sleep 0.01"))
    os.kill(detached.driver(name), signal.SIGSTOP)  # or it would have ended the job before it is killed
    if who == "sshd":
        rig.hosts[1].kill_sshd()
    else:
        victims = rig.hosts[1].agents() if who == "agent" else [pid for pid in rig.hosts[1].processes() if is_worker(pid)]
        for pid in victims:
            kill(pid)
    kill_driver(detached, name)
    attached = detached.run("attach", name)
    text = detached.text(name)
    if who == "sshd":
        assert attached.returncode == 0, text
        assert lines_of(text, 0) == lines_of(text, 1) == list(range(1, 301))
    else:
        assert attached.returncode != 0 and ("rank 1" in text if who == "worker" else "hvd2" in text), text
    wait_until("nothing left", lambda: not [host.processes() for host in rig.hosts if host.processes()])


def is_worker(pid):
    return read_proc(pid, "cmdline").startswith(b"sh\0")


def test_a_job_is_stopped_on_all_hosts_after_a_takeover(detached, rig):  # noqa: F811
    name = detached.begin("-np", 2, "-H", "hvd1:1,hvd2:1", "sleep", 600)
    kill_driver(detached, name)
    assert detached.run("stop", name).returncode == 0
    assert detached.run("attach", name).returncode == 130, detached.text(name)
    wait_until("nothing left", lambda: not [host.processes() for host in rig.hosts if host.processes()])
