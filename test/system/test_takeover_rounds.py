"""Detached jobs over two hosts, of fixed size and elastic: one of its processes, its sshd or its link dies at a random moment, and at
times hvdrun, too. The output is complete and once, the end is right, and nothing is left."""

import os
import random
import re
import signal
import time

import pytest
from conftest import kill, read_proc, wait_until
from host_rig import WHY_NOT
from test_detached_hosts import detached, rig  # noqa: F401
from test_takeover import standby

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
ROUNDS = int(os.environ.get("HVD_TEST_DETACHED_ROUNDS", 200 if os.environ.get("HVD_TEST_TIER") == "soak" else 3))
SEED = int(os.environ.get("HVD_SEED", 1))
VICTIMS = ["sshd", "link", "hvdrun", "agent", "warden", "worker", "all links", "standby", "keeper", "none"]
LINES = 300


def is_worker(pid):
    return read_proc(pid, "cmdline").startswith(b"sh\0-c\0me=")


def processes_of(host, who):
    """The first of the two that are agents by their command is the warden, the parent of the agent."""
    if who == "worker":
        return [pid for pid in host.processes() if is_worker(pid)]
    both = sorted(host.agents())
    return both[:1] if who == "warden" else both[1:]


def strike(detached, rig, name, victim, chance):
    """False: there is none any more."""
    host = chance.choice(rig.hosts)
    if victim == "sshd":
        host.kill_sshd()
    elif victim in ("link", "all links"):
        hosts = rig.hosts if victim == "all links" else [host]
        for one in hosts:
            one.cut()
        time.sleep(chance.random() * 1.5)
        for one in hosts:
            one.join()
    elif victim in ("agent", "warden", "worker"):
        found = processes_of(host, victim)
        for pid in found:
            kill(pid)
        return bool(found)
    elif victim != "none":
        pid = {"hvdrun": detached.driver, "keeper": detached.keeper}.get(victim, lambda name: standby(detached, name))(name)
        os.kill(pid, signal.SIGKILL)
    return True


@pytest.fixture(autouse=True)
def joined(rig):  # noqa: F811
    yield
    for host in rig.hosts:
        host.join()


@pytest.mark.parametrize("kind", ["fixed", "elastic"])
@pytest.mark.parametrize("number", range(ROUNDS))
def test_any_death_on_any_host_leaves_each_line_once(detached, rig, tmp_path, number, kind):  # noqa: F811
    print("HVD_SEED =", SEED)
    chance = random.Random(f"{SEED} {number} {kind}")
    victim = VICTIMS[number % len(VICTIMS)]
    with_hvdrun = victim not in ("hvdrun", "standby", "keeper") and chance.random() < 0.3
    code = 6 if kind == "fixed" else 0
    elastic = ["--elastic", "--min-np", 1, "--max-np", 2, "--elastic-restart", "in-job"] if kind == "elastic" else []
    name = detached.begin(*elastic, "-np", 2, "-H", "hvd1:1,hvd2:1", "--driver-grace", 60, "sh", "-c", f"""me=$(uname -n).$$
        i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo $me line $i; sleep 0.003; done
        while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit {code}""")
    time.sleep(chance.random() * 0.8)
    attached = detached.popen("attach", name) if chance.random() < 0.5 else None
    if with_hvdrun and chance.random() < 0.5:
        os.kill(detached.driver(name), signal.SIGKILL)
        with_hvdrun = False
    assert strike(detached, rig, name, victim, chance), victim
    if with_hvdrun:
        os.kill(detached.driver(name), signal.SIGKILL)
    time.sleep(chance.random() * 0.8)
    (tmp_path / "go").write_text("")
    shown = attached.communicate()[0] if attached else ""
    last = detached.run("attach", name)
    text = detached.text(name)
    expected = {"agent": 1, "warden": 1, "worker": 137}.get(victim, code) if kind == "fixed" else 0
    assert last.returncode == expected, (victim, last, text)
    assert text.endswith(shown + last.stdout)
    said = {}
    for me, line in re.findall(r"^\[\d\]<stdout>:(\S+) line (\d+)$", text, re.M):
        said.setdefault(me, []).append(int(line))
    for me, lines in said.items():
        assert lines == list(range(1, len(lines) + 1)), (victim, me)
    if kind == "elastic" or expected == code:
        assert LINES in map(len, said.values()), "those that end have printed all"
    wait_until("nothing left", lambda: not [host.processes() for host in rig.hosts if host.processes()] and not detached.family(name))
    assert detached.run("forget", name).returncode == 0
