"""worlds.py: what a worker does in a shared world stays in its test, and a broken world is followed by a fresh one."""

import os

import pytest

import tiers
import worlds

pytestmark = [pytest.mark.world(2), pytest.mark.below_torch]


@pytest.fixture
def worker(in_world, tmp_path, monkeypatch):
    """worker(code): the result of this code on both ranks."""
    monkeypatch.setattr(worlds, 'GRACE_S', 2)

    def run(code, **kwargs):
        path = tmp_path / 'worker.py'
        path.write_text('import os, signal, sys, time\nfrom horovod.common import basics\nhvd = basics.HorovodBasics()\nhvd.init()\n' + code)
        return worlds.run(2, 1, str(path), **kwargs)

    return run


def pids():
    return {rank: pid for world in worlds.current.values() for rank, pid in world.pids.items()}


def test_workers_share_processes_and_nothing_else(worker, monkeypatch):
    first = worker('basics.MPI = 1\nbasics._join = None\nos.environ["X"] = "1"\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nprint(hvd.size(), "ok")')
    processes = pids()
    second = worker('assert basics._join and "X" not in os.environ and os.environ["Y"] == "2" and sys.argv[1:] == []\n'
                    'assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL\nprint(os.getpid(), "ok")', Y='2')
    assert first.returncode == second.returncode == 0, str(second)
    assert '[0] 2 ok' in first.output and '[1] 2 ok' in first.output
    assert all('[{}] {} ok'.format(rank, pid) in second.output for rank, pid in processes.items()), str(second)


@pytest.mark.parametrize('failure, shown', [
    ('raise RuntimeError("of mine")', 'RuntimeError: of mine'),
    ('sys.exit("of mine")', 'exit: of mine'),
    ('os.kill(os.getpid(), signal.SIGKILL)', 'the process ended'),
    ('time.sleep(600)', 'no outcome'),
])
def test_a_failure_names_its_rank_and_the_next_worker_has_a_fresh_world(worker, failure, shown):
    worker('print("ok")')
    before = set(pids().values())
    result = worker('if hvd.rank() == 1:\n    {}\nprint("ok")'.format(failure), timeout_s=1)
    assert result.returncode == 1 and '[0] ok' in result.output, str(result)
    assert any(line.startswith('[1] ') and shown in line for line in result.output.splitlines()), str(result)
    assert worker('print("ok")').returncode == 0
    assert before.isdisjoint(pids().values())


def test_a_rank_that_hangs_shows_where(worker):
    result = worker('def wait_for_ever():\n    time.sleep(600)\nif hvd.rank() == 1:\n    wait_for_ever()', timeout_s=1)
    assert 'in wait_for_ever' in result.output, str(result)


def test_a_child_that_is_forked_is_no_rank(worker):
    assert worker('if os.fork() == 0:\n    sys.exit(3)\nos.wait()\nprint("ok")').output.count('ok') == 2


def test_the_world_of_a_test_is_said_by_its_parameters_or_its_marker(request):
    assert tiers.world_of(request.node) == (2, None, False)
    assert tiers.group_of(request.node) is None
    assert os.path.exists(worlds.jobs.worker('shared_world.py'))
