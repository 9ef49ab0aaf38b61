"""Slow, lossy and broken ways between hosts, and ranks that stop in the middle of what crosses them."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import WORKERS, has_modules, read_proc, wait_until
from host_rig import WHY_NOT, rig_of
from test_played_hosts import GLOO, PYTHON, Busy, hosts_worker, lines_with

pytestmark = [
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
    pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so"),
    pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy"),
]
SOAK = bool(os.environ.get("HVD_SOAK"))
STRIPES = ("--inter-host-stripes", "4")
CONNECT_S = 2  # HOROVOD_GLOO_TIMEOUT_SECONDS, where it must not matter how long data take

rig = rig_of(3)


@contextlib.contextmanager
def slow(rig, rate):
    for host in rig.hosts:
        host.slow_down(rate)
    try:
        yield
    finally:
        for host in rig.hosts:
            host.slow_down(None)


def crossed(job):
    return [float(seconds) for seconds in re.findall(r"crossed in ([\d.]+) s", job.out)]


@pytest.mark.parametrize("collective", ["allreduce", "broadcast"])  # our own way, and one of Gloo's
def test_a_slow_link_ends_nothing(hosts_run, rig, collective):
    """Three times as long as the connection limit at the least, with bytes flowing all the time."""
    rate, megabytes = ("20mbit", 128) if SOAK else ("24mbit", 20)
    limits = {} if SOAK else {"HOROVOD_GLOO_TIMEOUT_SECONDS": str(CONNECT_S)}
    with slow(rig, rate):
        job = hosts_run("-np", 2, "-H", "hvd1,hvd2", *hosts_worker("slowly", collective, megabytes), env=limits)
    assert job.code == 0, job.out + job.err
    assert len(crossed(job)) == 2 and max(crossed(job)) > (30 if SOAK else 3 * CONNECT_S), job.out
    rig.nothing_left()


def rank_on(host):
    """Its pid outside of the host."""
    return next(pid for pid in host.processes() if b"\0HOROVOD_RANK=" in read_proc(pid, "environ"))


def bytes_from(rig, victim):
    """That the host of this rank has sent."""
    device = f"vh{rig.hosts[victim].number}"
    shown = subprocess.run(rig.on_head("ip", "-j", "-s", "link", "show", device), check=True, capture_output=True, text=True)
    return json.loads(shown.stdout)[0]["stats64"]["rx"]["bytes"]


def last_block(job):
    """The final words of hvdrun: its last line that begins with its name, and the indented ones below."""
    return re.findall(r"^hvdrun: .*\n(?:  .*\n)*", job.err, re.M)[-1]


@contextlib.contextmanager
def hit_in_mid_transfer(hosts_start, rig, ranks, victim, by, flags=(), **env):
    """A job of one rank a host whose data cross slowly, and whose rank `victim` gets a signal while they do."""
    hosts = ",".join(host.name for host in rig.hosts[:ranks])
    limits = {"HOROVOD_GLOO_TIMEOUT_SECONDS": str(CONNECT_S), "HOROVOD_STALL_CHECK_TIME_SECONDS": "1", **env}
    with slow(rig, "100mbit"):
        start = hosts_start("-np", ranks, "-H", hosts, *flags, *hosts_worker("slowly", "allreduce", 25), env=limits)
        job = Busy(start, ranks)
        before = bytes_from(rig, victim)
        wait_until("some of its data to be on their way", lambda: bytes_from(rig, victim) > before + 2e6)
        pid = rank_on(rig.hosts[victim])
        os.kill(pid, by)
        yield job, pid


@pytest.mark.parametrize("victim", [0, 1])
def test_a_leader_that_is_killed_with_several_connections_is_named(hosts_start, rig, victim):
    with hit_in_mid_transfer(hosts_start, rig, 2, victim, signal.SIGKILL, STRIPES) as (job, pid):
        assert job.end() == 137, job.out + job.err
    assert re.search(rf"^hvdrun: rank {victim} on host hvd{victim + 1} \(pid \d+\) failed: signal 9 \(SIGKILL\)", job.err, re.M), job.err
    rig.nothing_left()


@pytest.mark.parametrize("victim, flags", [(0, ()), (1, STRIPES)])
def test_a_leader_that_is_stopped_in_mid_transfer_is_reported_and_goes_on(hosts_start, rig, victim, flags):
    """However long: with HVD_SOAK=1 for longer than any time-out of the kernel's that we set, or set once."""
    with hit_in_mid_transfer(hosts_start, rig, 2, victim, signal.SIGSTOP, flags) as (job, pid):
        sentence = r"rank %d has waited \d+ s in '[a-z.]*gradient' .*rank %d\b" % (1 - victim, victim)
        wait_until("a sentence about rank %d" % victim, lambda: re.search(sentence, job.err) or job.read(),
                   told=lambda: job.err)
        time.sleep(75 if SOAK else 2 * CONNECT_S + 1)
        assert job.job.process.poll() is None, job.err
        os.kill(pid, signal.SIGCONT)
        assert job.end() == 0, job.out + job.err
    assert len(crossed(job)) == 2, job.out
    rig.nothing_left()


@pytest.mark.parametrize("ranks, victim, flags", [(2, 0, ()), (2, 1, STRIPES), (3, 2, ())])
def test_a_leader_that_stays_stopped_is_named_where_the_user_set_a_limit(hosts_start, rig, ranks, victim, flags):
    limit = {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "3"}
    with hit_in_mid_transfer(hosts_start, rig, ranks, victim, signal.SIGSTOP, flags, **limit) as (job, pid):
        assert job.end() != 0, job.out + job.err
    assert re.match(r"hvdrun: rank [012] has waited \d+ s in '[a-z.]*gradient' .*, longer than "
                    r"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS allows\.\n(?:  .*\n)*"
                    r"  rank %d on host hvd%d \(pid \d+\) is stopped: by a signal .*\n(?:  .*\n)*"
                    r"  All ranks were ended\.\n$" % (victim, victim + 1), last_block(job)), job.err
    rig.nothing_left()


@pytest.fixture
def filtered():
    """filtered(host, *rules): until the end of the test."""
    hosts = []

    def begin(host, *rules):
        hosts.append(host)
        host.filter(*rules)

    yield begin
    for host in hosts:
        host.filter()


ALL_BUT_SSH = "tcp dport != 22 tcp sport != 22 drop"


# Small sums travel by the leader of rank 0; the other leaders need no way to each other for them.
@pytest.mark.parametrize("collective, one, other", [("allreduce", 1, 2), ("small", 0, 2)])
def test_data_that_are_dropped_end_the_job_and_the_way_is_named(
        hosts_start, rig, filtered, collective, one, other):
    """hvdrun reaches both hosts, so neither is lost; and no rank failed of itself."""
    job = Busy(hosts_start("-np", 3, "-H", "hvd1,hvd2,hvd3", *hosts_worker("break", collective)), 3)
    for here, there in ((one, other), (other, one)):
        number = rig.hosts[there].number
        filtered(rig.hosts[here], f"ip saddr {rig.address(number)} {ALL_BUT_SSH}",
                 f"ip6 saddr {rig.address6(number)} {ALL_BUT_SSH}")
    begin = time.monotonic()
    code = job.end()
    took = time.monotonic() - begin
    assert code == 3, job.out + job.err
    said = re.match(r"hvdrun: the connection between the hosts (hvd\d) and (hvd\d) is broken: "
                    r"rank \d on hvd\d has heard nothing from rank \d on hvd\d for \d+ s, though hvdrun reaches both hosts; .*\n  All ranks were ended\.\n$",
                    last_block(job))
    assert said and {said[1], said[2]} == {rig.hosts[one].name, rig.hosts[other].name}, job.err
    assert len(job.told()) == 3 and all("the connection between the hosts" in line for line in job.told()), job.out
    assert took < (7 if SOAK else 20), "7 s on a machine that does nothing else"
    rig.nothing_left()


def test_a_way_that_heals_in_time_ends_nothing(hosts_start, rig, filtered, tmp_path):
    enough = tmp_path / "enough"
    job = Busy(hosts_start("-np", 2, "-H", "hvd1,hvd2", "--heartbeat-timeout", "20",
                           *hosts_worker("steady", "allreduce", enough)), 2)
    rig.hosts[1].filter(ALL_BUT_SSH)
    try:
        time.sleep(6)
    finally:
        rig.hosts[1].filter()
    enough.touch()
    wait_until("both ranks to come through", lambda: job.read() or len(lines_with("through", job.out)) == 2,
               told=lambda: job.out + job.err)
    assert not lines_with("hvdrun:", job.err), job.err


@pytest.mark.long
def test_a_lossy_link_raises_no_alarm(hosts_start, rig, filtered, tmp_path):
    """3 % of all packets are lost on each host, in each direction that comes in; 10 minutes with HVD_SOAK=1."""
    enough = tmp_path / "enough"
    for host in rig.hosts[:2]:
        filtered(host, "numgen random mod 100 < 3 drop")
    job = Busy(hosts_start("-np", 2, "-H", "hvd1,hvd2", *hosts_worker("steady", "allreduce", enough)), 2)
    time.sleep(600 if SOAK else 15)
    assert job.job.process.poll() is None, job.err
    enough.touch()
    assert job.end() == 0, job.out + job.err
    assert not lines_with("hvdrun:", job.err), job.err
    rig.nothing_left()


def test_survivors_of_a_killed_rank_are_told_at_once(hosts_start, rig):
    """On its own host and on the other one; the times are looked at on a quiet machine only."""
    job = Busy(hosts_start("-np", 4, "-H", "hvd1:2,hvd2:2", *hosts_worker("break", "allreduce")), 4)
    victim = next(pid for pid in rig.hosts[1].processes() if b"\0HOROVOD_RANK=3\0" in b"\0" + read_proc(pid, "environ"))
    os.kill(victim, signal.SIGKILL)
    assert job.end() == 137, job.out + job.err
    told = job.told()
    assert len(told) == 3 and all("rank 3 on host" in line for line in told), job.out
    if SOAK:
        assert all(float(re.search(r"told after ([\d.]+) s", line)[1]) <= 0.3 for line in told), told
    rig.nothing_left()
