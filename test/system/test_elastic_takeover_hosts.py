"""hvdrun of a detached elastic job over several hosts is killed: the next one reaches their agents over sshd, and hosts go on to come
and go."""

import sys

import pytest
from conftest import kill, read_proc, wait_until
from elastic_job import SCRIPT
from host_rig import WHY_NOT
from test_detached_hosts import detached, rig  # noqa: F401
from test_takeover import TAKEN, kill_driver

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def test_a_host_is_lost_and_another_one_joins_after_takeovers(detached, rig, tmp_path):  # noqa: F811
    name = detached.begin("--elastic", "-np", 2, "--min-np", 1, "--max-np", 2, "-H", "hvd1:1,hvd2:1", sys.executable, SCRIPT, tmp_path)

    def await_world(size, count):
        said = f"trains as rank 0 of {size} from step"
        wait_until(f"a world of {size}", lambda: detached.text(name).count(said) >= count, told=lambda: detached.text(name))

    await_world(2, 1)
    kill_driver(detached, name)
    wait_until("the takeover", lambda: TAKEN in detached.text(name))
    for pid in rig.hosts[1].agents():  # and its warden
        kill(pid)
    await_world(1, 1)
    kill_driver(detached, name)
    await_world(2, 2)
    assert "hvd2" in detached.run("status", name).stdout
    kill_driver(detached, name)
    wait_until("the takeover", lambda: detached.text(name).count(TAKEN) == 3)
    assert "next commit" in detached.run("drain", name, "hvd1").stdout
    await_world(1, 2)
    wait_until("hvd1 without ranks", lambda: not [pid for pid in rig.hosts[0].processes() if bytes(SCRIPT) in read_proc(pid, "cmdline")])
    (tmp_path / "finish").write_text("")
    attached = detached.run("attach", name)
    assert attached.returncode == 0, detached.text(name)
    wait_until("nothing left", lambda: not [host.processes() for host in rig.hosts if host.processes()])
