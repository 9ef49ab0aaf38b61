"""Elastic worlds as a worker sees them: the test plays the agent (elastic_rig.py) and ends, makes and breaks worlds."""

import os
import re
import signal

import pytest

import jobs
from elastic_rig import ADDED, REMOVED, STOP, Rig

TRAINING = jobs.worker('elastic_training.py')


@pytest.fixture(autouse=True)
def needs(runtime, torch):
    pass


class Training(object):
    """The rig with its training script."""

    def __init__(self, folder, *options):
        self.folder = folder
        self.rig = Rig(folder, TRAINING, folder, *options)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.rig.__exit__()

    def begin(self, *slots):
        for slot in slots:
            if slot not in self.rig._workers:
                self.rig.start(slot, len(slots))
        self.rig.begin(*slots)

    def say(self, name):
        (self.folder / name).write_text('')

    def await_steps(self, count=3):
        """Until each rank has made so many commits in this world."""
        self.rig.pump(lambda: min(self.rig.commits()) >= count, '{} commits of each rank'.format(count))

    def await_text(self, slot, text):
        self.rig.pump(lambda: text in self.rig.output(slot), '"{}" from slot {}'.format(text, slot))

    def finish(self, *slots):
        """All slots end well; gives their steps."""
        self.say('finish')
        assert [self.rig.wait(slot) for slot in slots] == [0] * len(slots), self.outputs(slots)
        return [int(re.search(r'finished after step (\d+)', self.rig.output(slot)).group(1)) for slot in slots]

    def outputs(self, slots):
        return '\n'.join(self.rig.output(slot) for slot in slots)


def begins(output):
    """(rank, size, step, syncs, pid) of each world that the training function saw."""
    return [tuple(map(int, found)) for found in re.findall(
        r'trains as rank (\d+) of (\d+) from step (\d+) after (\d+) syncs pid (\d+)', output)]


def test_P23_survivors_of_a_death_go_on_in_their_processes(tmp_path):
    with Training(tmp_path) as job:
        job.begin(0, 1, 2)
        job.await_steps()
        job.rig.kill(1)
        job.begin(0, 2)
        job.await_steps()
        steps = job.finish(0, 2)
        for slot in (0, 2):
            output = job.rig.output(slot)
            first, second = begins(output)
            assert first[4] == second[4], 'another process'
            assert second[:2] == ((0, 2) if slot == 0 else (1, 2))
            assert len(re.findall('repeats step', output)) <= 1, output
            assert 'reset to rank' in output
        assert len(set(steps)) == 1


def test_E8_process_sets_are_rebuilt_after_a_death(tmp_path):
    with Training(tmp_path, 'sets') as job:
        job.begin(0, 1, 2)
        job.await_steps()
        job.rig.kill(2)
        job.begin(0, 1)  # the pair is the whole world now
        job.await_steps()
        job.rig.kill(1)
        job.begin(0)
        job.await_steps()
        job.rig.start(3)
        job.rig.start(4)
        job.rig.act(ADDED)
        job.begin(0, 3, 4)
        job.await_steps()
        assert len(set(job.finish(0, 3, 4))) == 1
        assert [world[1] for world in begins(job.rig.output(0))] == [3, 2, 1, 3]


def test_E4_growth_stops_nobody_and_new_ranks_get_the_state(tmp_path):
    with Training(tmp_path) as job:
        job.begin(0, 1)
        job.await_steps()
        job.rig.start(2)
        job.rig.pump(lambda: job.rig._workers[2].joined, 'hvd.init() of the new rank')
        commits = min(job.rig.commits())
        job.await_steps(commits + 3)  # the old ranks train meanwhile
        acted = job.rig.act(ADDED)
        job.begin(0, 1, 2)
        job.await_steps()
        assert len(set(job.finish(0, 1, 2))) == 1
        for slot in (0, 1):
            first, second = begins(job.rig.output(slot))
            assert second[2] == first[2] + acted, 'both left at the commit that was chosen'
            assert 'repeats step' not in job.rig.output(slot)
        (new,) = begins(job.rig.output(2))
        assert new[:3] == (2, 3, acted)


def test_E4_removal_needs_no_sync_and_the_removed_rank_leaves_with_success(tmp_path):
    with Training(tmp_path) as job:
        job.begin(0, 1)
        job.await_steps()
        job.rig.act(REMOVED)
        job.rig.dismiss(1, 'host b has left the list of hosts')
        job.begin(0)
        assert job.rig.wait(1) == 0, job.rig.output(1)
        job.await_steps()
        job.finish(0)
        first, second = begins(job.rig.output(0))
        assert (first[3], second[3]) == (1, 1), 'nothing was sent again'
        assert 'Traceback' not in job.rig.output(1)


def test_ranks_that_come_for_different_reasons_synchronize(tmp_path):
    """Rank 0 left for a removal; rank 1 heard of a death before it came to that commit."""
    with Training(tmp_path, 'slow') as job:
        job.begin(0, 1)
        job.await_steps()
        job.say('slow')
        job.await_text(1, 'is stopped before')
        job.rig.pump(lambda: job.rig.commits()[0] > job.rig.commits()[1], 'the commit of rank 0')
        # Rank 0 has passed the commit at which rank 1 is stopped, and waits for it in the collective after that.
        commit = job.rig.commits()[0]
        job.rig._page.hold()
        job.rig._page.act_at(commit + 1, REMOVED, 0)
        job.rig.break_('rank 2 died')
        os.kill(job.rig._workers[1].process.pid, signal.SIGCONT)
        job.begin(0, 1)
        job.await_steps()
        assert len(set(job.finish(0, 1))) == 1
        assert [world[3] for world in begins(job.rig.output(0))] == [1, 2]


def test_a_new_rank_restores_what_it_was_given(tmp_path):
    """All old ranks die before the first commit of a new one, which has had nothing but the sync."""
    with Training(tmp_path) as job:
        job.begin(0)
        job.await_steps()
        job.rig.start(1)
        acted = job.rig.act(ADDED)
        job.rig.pump(lambda: job.rig._workers[0].joined and job.rig._workers[1].joined, 'both ranks')
        os.kill(job.rig._workers[0].process.pid, 0)
        job.begin(0, 1)
        job.await_text(1, 'trains as rank 1 of 2')
        job.rig.kill(0)
        job.begin(1)
        job.await_steps()
        job.finish(1)
        first, second = begins(job.rig.output(1))
        assert first[2] == acted and second[2] >= acted
        assert len(re.findall('repeats step', job.rig.output(1))) <= 1


def test_E7_an_init_without_a_world_to_come_ends_with_the_reason(tmp_path):
    with Training(tmp_path) as job:
        job.begin(0, 1)
        job.await_steps()
        job.rig.kill(1)
        job.rig.refuse_world(0, 'the job ends: 1 of 2 slots are left')
        assert job.rig.wait(0) == 1
        assert 'the job ends: 1 of 2 slots are left' in job.rig.output(0).strip().splitlines()[-1]


def test_E7_a_world_that_breaks_during_init_is_followed_by_the_next(tmp_path):
    with Training(tmp_path, 'sets') as job:
        job.rig.start(0, 3)
        job.rig.start(1, 3)
        job.rig.start(2, 3)
        job.rig.pump(lambda: job.rig._workers[2].joined, 'hvd.init() in slot 2')
        os.kill(job.rig._workers[2].process.pid, signal.SIGSTOP)  # never comes to the process sets
        job.begin(0, 1, 2)
        job.rig.kill(2)
        job.begin(0, 1)
        job.await_steps()
        job.finish(0, 1)
        assert [world[1] for world in begins(job.rig.output(0))] == [2], 'the program saw the second world only'


def test_all_ranks_stop_at_the_same_commit(tmp_path):
    with Training(tmp_path, 'stop') as job:
        job.begin(0, 1)
        job.await_steps()
        acted = job.rig.act(STOP | ADDED, grace_ms=30000)
        assert [job.rig.wait(0), job.rig.wait(1)] == [75, 75], job.outputs((0, 1))
        for slot in (0, 1):
            assert 'stops at step {0} of [{0}, {0}] with grace 30.0'.format(acted) in job.rig.output(slot)
            assert 'finished' not in job.rig.output(slot) and 'Traceback' not in job.rig.output(slot)


def test_P23_collectives_of_other_threads_fail_with_the_rest(tmp_path):
    with Training(tmp_path, 'thread') as job:
        job.begin(0, 1)
        job.await_steps()
        job.rig.kill(1)
        job.begin(0)
        job.await_text(0, 'thread failed')
        job.finish(0)


def test_an_update_that_the_program_puts_in_reaches_all_ranks(tmp_path):
    with Training(tmp_path, 'update') as job:
        job.begin(0, 1)
        job.await_steps()
        job.say('update')
        job.begin(0, 1)  # rank 0 asks for another world, and rank 1 follows
        job.await_steps()
        assert len(set(job.finish(0, 1))) == 1
        assert [world[1] for world in begins(job.rig.output(1))] == [2, 2]
