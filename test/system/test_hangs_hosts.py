"""Collectives that take too long, with 4 ranks on 3 hosts: the text about the ranks that are missing."""

import os
import re
import time

import pytest
from conftest import has_modules, wait_until
from host_rig import WHY_NOT, rig_of
from test_hangs import LIMIT, STALLED, WARNING, finished, hang_worker, last_block, line_of, prompt, watched
from test_played_hosts import GLOO

pytestmark = [
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
    pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so"),
    pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy"),
]
HOSTS = "hvd1:2,hvd2,hvd3"
rig = rig_of(3)


def begin(hosts_start, folder, how, *args, limit=0):
    return hosts_start(*watched("-np", 4, "-H", HOSTS, "--error-file", folder / "error.json", limit=limit),
                       *hang_worker(how, *args))


HANGS = [
    ("stopped", 1, "stopped", r"is stopped: by a signal"),
    ("stopped", 2, "stopped", r"is stopped: by a signal"),
    ("sleep", 3, "blocked", r"is blocked in the system call \w*nanosleep at %s in sleep"),
    ("loop", 0, "busy", r"is busy in user code at %s in loop"),
]


@pytest.mark.parametrize("how, victim, class_name, words", HANGS)
def test_a_rank_of_any_host_that_hangs_is_explained_and_ended_at_the_limit(hosts_start, rig, tmp_path, how, victim, class_name,
                                                                                  words):
    job = finished(begin(hosts_start, tmp_path, how, victim, limit=LIMIT), tmp_path)
    assert job.code == STALLED, job.out + job.err
    words = words % line_of(how) if "%s" in words else words
    host = [1, 1, 2, 3][victim]
    assert re.search(rf"  rank {victim} on host hvd{host} \(pid \d+\) {words}", last_block(job)), job.err
    assert {"rank": victim, "class": class_name} in job.error["missing"], job.error
    assert job.took < LIMIT + prompt(), job.took
    rig.nothing_left()


@pytest.mark.parametrize("how", ["name", "two_sets"])
def test_ranks_of_several_hosts_that_wait_for_each_other_end_at_the_warning_time(hosts_start, rig, tmp_path, how):
    job = finished(begin(hosts_start, tmp_path, how), tmp_path)
    assert job.code == STALLED, job.out + job.err
    assert "it can never end" in last_block(job), job.err
    assert "is in another collective: it has waited" in last_block(job), job.err
    assert job.took < WARNING + prompt(), job.took
    rig.nothing_left()


@pytest.mark.parametrize("how", ["orders", "halves"])
def test_orders_that_differ_between_hosts_are_no_deadlock(hosts_run, rig, how):
    job = hosts_run(*watched("-np", 4, "-H", HOSTS), *hang_worker(how, 3))
    assert job.code == 0, job.out + job.err
    assert job.out.count("through") == 4 and "never end" not in job.err, job.err
    rig.nothing_left()


def test_ranks_of_a_host_that_is_cut_off_are_unreachable(hosts_start, rig, tmp_path):
    job = hosts_start(*watched("-np", 4, "-H", HOSTS, "--heartbeat-timeout", 12), *hang_worker("sleep", 3))
    said = b""
    while said.count(b"hangs") < 4:
        said += os.read(job.process.stdout.fileno(), 65536)
    err = ""
    rig.hosts[2].cut()
    try:
        os.set_blocking(job.process.stderr.fileno(), False)

        def unreachable():
            nonlocal err
            try:
                err += (os.read(job.process.stderr.fileno(), 65536) or b"").decode()
            except BlockingIOError:
                time.sleep(0.1)
            return "rank 3 on host hvd3 is unreachable: the agent of its host does not answer" in err

        wait_until("a word about the host that is cut off", unreachable, told=lambda: err)
        os.set_blocking(job.process.stderr.fileno(), True)
        job.finish()
    finally:
        rig.hosts[2].join()
    assert job.process.returncode == 1, err + job.err
    assert "host hvd3 was lost" in job.err, err + job.err
    rig.nothing_left()
