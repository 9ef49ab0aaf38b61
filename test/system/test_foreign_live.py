"""`hvdrun top` and `hvdrun dump` of ranks that hvdrun did not start: their agent answers, without any driver."""

import json
import os
import re

import pytest
from conftest import WORKERS, has_modules, read_proc, wait_until
from test_foreign import Ranks, clean_environment, job_name  # noqa: F401
from test_hangs import py_spy
from test_live import asked
from test_played_hosts import PYTHON
from test_timeline import trace_of

pytestmark = pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")


@pytest.fixture
def stacks_reader(tmp_path, monkeypatch):
    """A stand-in for py-spy, which the agent of the ranks finds on its PATH."""
    line = f"{WORKERS / 'live_worker.py'}:7"
    return py_spy(tmp_path, monkeypatch, f"printf 'Process %s: python\n\nThread %s (idle): \"MainThread\"\n    step ({line})\n' $5 $5")


@pytest.fixture
def ranks(start, tmp_path, job_name):  # noqa: F811
    """Three ranks at work, of which rank 1 is late in each step."""
    marks = tmp_path / "marks"
    marks.mkdir()
    world = Ranks(start, 3, job=job_name, command=[PYTHON, str(WORKERS / "live_worker.py"), str(marks), "1", "0.02"])
    wait_until("all ranks at work", lambda: len(list(marks.iterdir())) == 3)
    world.id = world_of(job_name)
    yield world
    for job in world.jobs:
        job.process.kill()
    world.finish()


def world_of(name):
    """The name that the agent of these ranks gives to their world."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        words = read_proc(pid, "cmdline").decode(errors="replace").split("\0")
        if "--adopt" in words and f"HVD_JOB={name}".encode() in read_proc(pid, "environ").split(b"\0"):
            return words[words.index("--adopt") + 1]
    return None


def view_of(world):
    done = asked("top", world, "--once", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_top_shows_ranks_that_others_started(ranks):
    view = view_of(ranks.id)
    assert view["job"] == ranks.id and view["generation"] == 1 and view["size"] == 3
    assert [rank["rank"] for rank in view["ranks"]] == [0, 1, 2]
    assert [rank["pid"] for rank in view["ranks"]] == [job.process.pid for job in ranks.jobs]
    for rank in view["ranks"]:
        assert rank["operations"] > 20 and rank["state"] in ("computing", "waiting")
        assert rank["last_collective"] == {"type": "ALLREDUCE", "name": "allreduce.grad"}
    wait_until("rank 1 as the one that is waited for", lambda: (view_of(ranks.id)["straggler"] or {}).get("rank") == 1)
    table = asked("top", ranks.id[:20], "--once").stdout
    assert "3 ranks" in table and "allreduce.grad" in table, table


def test_a_dump_has_the_ranks_that_others_started(ranks, tmp_path):
    path = tmp_path / "dump.json"
    done = asked("dump", ranks.id, "-o", path)
    assert done.returncode == 0, done.stderr
    trace = trace_of(path)
    assert {e["pid"] for e in trace.named("ALLREDUCE")} == {0, 1, 2}
    assert "of 3 ranks" in done.stdout


def test_the_stacks_of_ranks_that_others_started_are_shown(stacks_reader, ranks):
    done = asked("dump", ranks.id, "--stacks")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r'ranks 0-2 on host \S+:\n  Thread \(idle\): "MainThread"\n      step \(\S+live_worker.py:7\)\n', done.stdout), done.stdout
    asked_for = {int(line.split()[-1]) for line in stacks_reader.read_text().splitlines()}
    assert asked_for == {job.process.pid for job in ranks.jobs}


def test_the_agent_of_foreign_ranks_is_no_job(ranks):
    """hvdrun neither lists nor stops what somebody else started."""
    assert ranks.id not in asked("ps").stdout
    stop = asked("stop", ranks.id)
    assert stop.returncode == 2 and "no job" in stop.stderr, stop.stderr
    assert all(job.process.poll() is None for job in ranks.jobs)


def test_a_world_whose_ranks_have_ended_is_not_there_any_more(ranks):
    for job in ranks.jobs:
        job.process.kill()
    wait_until("no such world", lambda: asked("top", ranks.id, "--once").returncode == 2)
