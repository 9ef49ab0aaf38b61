"""Detached jobs over several hosts, and the verbs over a real sshd, whose connections are cut meanwhile."""

import os
import re
import subprocess
import sys

import pytest
from conftest import DEADLINE, hvdrun_path, kill, read_proc, wait_until
from elastic_job import SCRIPT
from host_rig import WHY_NOT, HostRig
from test_detached_jobs import Detached, counting, lines_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rig")
    rig = HostRig(folder, 2, environment=f"XDG_STATE_HOME={folder}/state")
    yield rig
    rig.down()


@pytest.fixture
def detached(rig):
    """Jobs whose hvdrun runs on the head or, by ssh, on a host: they share a home directory."""
    jobs = Detached(rig.folder)
    jobs.run = lambda *args, **more: subprocess.run(rig.on_head(hvdrun_path(), *map(str, args)), capture_output=True, text=True,
                                                    env=jobs.env, timeout=DEADLINE, **more)
    jobs.popen = lambda *args, **more: subprocess.Popen(rig.on_head(hvdrun_path(), *map(str, args)), text=True, env=jobs.env,
                                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    yield jobs
    for host in rig.hosts:
        for pid in host.processes():
            kill(pid)


def test_a_connection_that_drops_while_nobody_is_attached(detached, rig):
    name = detached.begin("-np", 2, "-H", "hvd1:1,hvd2:1", "--driver-grace", 60, *counting(400, "sleep 0.01"))
    rig.hosts[1].kill_sshd()
    attached = detached.run("attach", name)
    text = detached.text(name)
    assert attached.returncode == 0, attached
    assert "host hvd2 is back" in text and "to leave it on hvd1" in text
    assert lines_of(text, 0) == lines_of(text, 1) == list(range(1, 401))


def test_a_host_is_drained_and_comes_back(detached, rig, tmp_path):
    name = detached.begin("--elastic", "-np", 2, "--min-np", 1, "--max-np", 2, "-H", "hvd1:1,hvd2:1", sys.executable, SCRIPT, tmp_path)

    def await_world(size, count):
        said = f"trains as rank 0 of {size} from step"
        wait_until(f"a world of {size}", lambda: detached.text(name).count(said) >= count, told=lambda: detached.text(name))

    await_world(2, 1)
    assert "hvd2" in detached.run("status", name).stdout
    assert "next commit" in detached.run("drain", name, "hvd2").stdout
    await_world(1, 1)
    wait_until("hvd2 without ranks", lambda: not [p for p in rig.hosts[1].processes() if bytes(SCRIPT) in read_proc(p, "cmdline")])
    assert detached.run("drain", "--undo", name, "hvd2").returncode == 0
    await_world(2, 2)
    (tmp_path / "finish").write_text("")
    attached = detached.run("attach", name)
    assert attached.returncode == 0 and "failed" not in detached.text(name), attached


def test_a_job_of_another_host_is_found_there(detached, rig, tmp_path):
    """It is started and attached over sshd; the session of the second is killed."""
    go = tmp_path / "go"
    script = f"i=0; while [ ! -e {go} ]; do i=$((i+1)); echo line $i; sleep 0.01; done; echo last $i; exit 3"
    started = rig.hosts[0].run("env", f"XDG_STATE_HOME={detached.state}", f"PATH={os.environ['PATH']}", hvdrun_path(), "--detach",
                               "-np", "1", "sh", "-c", script)
    name = started.strip().splitlines()[-1]
    assert "started on hvd1" in detached.run("status", name).stderr, "the folder is shared, its processes are not"
    assert detached.run("status", name, "-H", "hvd1").returncode == 0
    attached = detached.popen("attach", name, "-H", "hvd1")
    first = attached.stdout.readline()
    rig.hosts[0].kill_sshd()
    assert attached.wait(timeout=DEADLINE) == 255
    first += attached.stdout.read()
    go.write_text("")
    wait_until("the end", lambda: (detached.folder(name) / "end").exists())
    rest = detached.run("attach", name, "-H", "hvd1")
    assert rest.returncode == 3 and "last" in rest.stdout, rest
    text = rig.hosts[0].run("env", f"XDG_STATE_HOME={detached.state}", hvdrun_path(), "logs", name)
    lines = lines_of(text)
    assert lines == list(range(1, int(re.search(r"last (\d+)", text).group(1)) + 1))
    assert detached.run("forget", name, "-H", "hvd1").returncode == 0
