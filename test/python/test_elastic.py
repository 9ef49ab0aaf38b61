"""Elastic worlds as a worker sees them: the test plays the agent (elastic_rig.py) and ends, makes and breaks worlds."""

import copy
import os
import re

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
            if not self.rig.has(slot):
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


def test_survivors_of_a_death_go_on_in_their_processes(tmp_path):
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


def test_process_sets_are_rebuilt_after_a_death(tmp_path):
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


@pytest.mark.parametrize('options', [(), ('buckets',)], ids=['', 'buckets'])
def test_growth_stops_nobody_and_new_ranks_get_the_state(tmp_path, options):
    with Training(tmp_path, *options) as job:
        job.begin(0, 1)
        job.await_steps()
        job.rig.start(2)
        job.rig.await_join(2)
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


def test_removal_needs_no_sync_and_the_removed_rank_leaves_with_success(tmp_path):
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
    with Training(tmp_path, 'pause') as job:
        job.begin(0, 1)
        job.await_steps()
        job.say('pause')
        job.await_text(0, 'is stopped before')
        job.await_text(1, 'is stopped before')
        os.remove(str(tmp_path / 'pause'))
        job.rig.act(REMOVED)
        job.rig.go_on(0)
        job.rig.await_join(0)
        job.rig.break_('rank 2 died')
        job.rig.go_on(1)
        job.begin(0, 1)
        job.await_steps()
        assert len(set(job.finish(0, 1))) == 1
        assert [world[3] for world in begins(job.rig.output(0))] == [1, 2], 'its removal needed no sync by itself'


def test_a_new_rank_restores_what_it_was_given(tmp_path):
    """The old rank dies before the first commit of the new one, which has had nothing but the sync."""
    with Training(tmp_path, 'pause') as job:
        job.begin(0)
        job.await_steps()
        job.rig.start(1)
        job.say('hang')
        acted = job.rig.act(ADDED)
        job.begin(0, 1)
        job.await_text(1, 'trains as rank 1 of 2')
        job.rig.kill(0)
        job.begin(1)
        job.await_steps()
        job.finish(1)
        assert [world[2] for world in begins(job.rig.output(1))] == [acted, acted]


def test_an_init_without_a_world_to_come_ends_with_the_reason(tmp_path):
    with Training(tmp_path) as job:
        job.begin(0, 1)
        job.await_steps()
        job.rig.kill(1)
        job.rig.refuse_world(0, 'the job ends: 1 of 2 slots are left')
        assert job.rig.wait(0) == 1
        assert 'the job ends: 1 of 2 slots are left' in job.rig.output(0).strip().splitlines()[-1]


def test_a_world_that_breaks_during_init_is_followed_by_the_next(tmp_path):
    with Training(tmp_path, 'sets') as job:
        job.rig.start(0, 3)
        job.rig.start(1, 3)
        job.rig.start(2, 3)
        job.rig.await_join(2)
        job.rig.stop(2)  # never comes to the process sets
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


@pytest.mark.below_torch
def test_collectives_of_other_threads_fail_with_the_rest(tmp_path):
    with Training(tmp_path, 'thread') as job:
        job.begin(0, 1)
        job.await_steps()
        job.rig.kill(1)
        job.begin(0)
        job.await_text(0, 'thread failed')
        job.finish(0)


def test_each_item_once_in_an_epoch_of_4_2_and_5_ranks(tmp_path):
    """Hosts leave and come in the middle of the epoch."""
    with Rig(tmp_path, jobs.worker('elastic_sampler.py'), tmp_path) as rig:
        def batches(first, last):
            for number in range(first, last + 1):
                (tmp_path / 'batch.{}'.format(number)).write_text('')

        for slot in range(4):
            rig.start(slot, 4)
        rig.begin(0, 1, 2, 3)
        batches(1, 6)
        rig.pump(lambda: rig.commits() == [6] * 4, '6 commits of each rank')
        rig.act(REMOVED)
        batches(7, 7)
        rig.dismiss(2, 'host b has left')
        rig.dismiss(3, 'host b has left')
        rig.begin(0, 1)
        batches(8, 14)
        rig.pump(lambda: rig.commits() == [7] * 2, '7 commits of each rank')
        for slot in (4, 5, 6):
            rig.start(slot)
        rig.act(ADDED)
        batches(15, 15)
        rig.begin(0, 1, 4, 5, 6)
        batches(16, 200)
        assert [rig.wait(slot) for slot in range(7)] == [0] * 7, ''.join(rig.output(slot) for slot in range(7))
        taken = re.findall(r'batch (\d+) of rank (\d+) of (\d+) took ([\d,]+)', ''.join(rig.output(s) for s in range(7)))
        assert len({entry[:2] for entry in taken}) == len(taken), 'no batch was repeated'
        assert {entry[2] for entry in taken} == {'4', '2', '5'}
        items = [int(item) for entry in taken for item in entry[3].split(',')]
        assert set(items) == set(range(1003)) and len(items) - 1003 < 5, 'padded to equal shares at the end only'


def test_an_update_that_the_program_puts_in_reaches_all_ranks(tmp_path):
    with Training(tmp_path, 'update') as job:
        job.begin(0, 1)
        job.await_steps()
        job.say('update')
        job.begin(0, 1)  # rank 0 asks for another world, and rank 1 follows
        job.await_steps()
        assert len(set(job.finish(0, 1))) == 1
        assert [world[1] for world in begins(job.rig.output(1))] == [2, 2]


def test_a_rank_that_gives_up_waits_for_nothing_more(tmp_path):
    with Rig(tmp_path, jobs.worker('elastic_give_up.py'), tmp_path / 'given_up') as rig:
        rig.start(0, 2)
        rig.start(1, 2)
        rig.begin(0, 1)
        rig.begin(0, 1)
        assert [rig.wait(0), rig.wait(1)] == [0, 0], rig.output(0) + rig.output(1)


@pytest.mark.below_torch
def test_a_commit_sends_nothing_while_nothing_happens(tmp_path):
    """One rank commits a hundred times while the other does nothing, which no collective could."""
    with Rig(tmp_path, jobs.worker('elastic_commits.py')) as rig:
        rig.start(0, 2)
        rig.start(1, 2)
        rig.begin(0, 1)
        rig.pump(lambda: 'committed' in rig.output(0), 'commits')
        assert rig.commits() == [101, 0]
        rig.go_on(1)
        assert [rig.wait(0), rig.wait(1)] == [0, 0], rig.output(0) + rig.output(1)
        print(rig.output(0))


# ---- without a world


@pytest.fixture
def told(monkeypatch):
    """A state in an elastic world that answers each commit with the number in the list."""
    from horovod.common import _library, _native, elastic
    answers = {'elastic': 1, 'update_pending': 0}
    monkeypatch.setattr(_native, 'handle', object())
    monkeypatch.setattr(_native, 'call', lambda name, *unused: answers[name])
    monkeypatch.setattr(_library, 'commit', lambda: answers['commit'])
    state = elastic.ObjectState(bcast_object=None, get_rank=lambda: 0, step=0)
    return state, answers


@pytest.mark.parametrize('update, skip_sync', [(REMOVED, True), (ADDED, False), (REMOVED | ADDED, False)])
def test_only_a_removal_skips_the_sync(told, update, skip_sync):
    from horovod.common.exceptions import HostsUpdatedInterrupt
    state, answers = told
    answers['commit'] = 0
    state.commit()
    answers['commit'] = update
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.commit()
    assert caught.value.skip_sync is skip_sync


def test_a_script_that_waits_for_host_messages_sees_what_the_launcher_is_about_to_do(told):
    state, answers = told
    assert state._host_messages.empty()
    answers['update_pending'] = 1
    assert not state._host_messages.empty()
    answers['commit'] = 0
    state.check_host_updates()  # the commit at which all ranks act is still to come
    assert state._host_messages.empty(), 'said once'
    state.on_reset()
    assert not state._host_messages.empty(), 'another world, another change'


def test_ranks_that_disagree_do_not_try_again_for_ever(told, monkeypatch):
    from horovod.common import elastic
    from horovod.common.exceptions import HorovodInternalError
    monkeypatch.setattr(elastic._Synchronizer, 'run', lambda self, skip: None)
    runs = []

    def train(state):
        runs.append(1)
        error = HorovodInternalError('rank 1 has another shape')
        error.is_disagreement = True
        raise error

    with pytest.raises(HorovodInternalError, match='another shape'):
        elastic.run_fn(train, reset=None)(told[0])
    assert runs == [1]


def test_a_failure_on_the_way_to_the_next_world_is_one_more(told, monkeypatch):
    """A rank dies while the others run their reset callbacks."""
    from horovod.common import _library, elastic
    from horovod.common.exceptions import HorovodInternalError
    monkeypatch.setattr(elastic._Synchronizer, 'run', lambda self, skip: None)
    monkeypatch.setattr(_library, 'give_up', lambda: None)
    state, _ = told
    worlds = []

    def train(state):
        if len(worlds) < 3:
            raise HorovodInternalError('rank 1 died')
        return len(worlds)

    def callback():
        if len(worlds) < 2:
            raise HorovodInternalError('rank 2 died')

    state.register_reset_callbacks([callback])
    assert elastic.run_fn(train, reset=lambda: worlds.append(1))(state) == 3


def test_a_new_rank_0_is_refused(told, monkeypatch):
    from horovod.common import elastic, objects
    monkeypatch.setattr(objects, 'allgather_object', lambda *unused: [(False, False, None), (True, True, None)])
    with pytest.raises(RuntimeError, match='Rank 0 is new in this world'):
        elastic._Synchronizer(told[0]).run(False)


@pytest.mark.parametrize('rank', [0, 1])
def test_a_rank_0_whose_first_sync_failed_is_not_new_to_those_that_have_it(told, monkeypatch, rank):
    """A rank dies right after it, and rank 1 has got all of it by then."""
    from horovod.common import basics, elastic, objects
    from horovod.common.exceptions import HorovodInternalError
    said = []
    monkeypatch.setattr(objects, 'allgather_object', lambda words, *unused: said.append(words) or [words])
    monkeypatch.setattr(basics.shared(), 'rank', lambda: rank)

    def sync():
        raise HorovodInternalError('rank 2 died')

    monkeypatch.setattr(told[0], 'sync', sync)
    synchronizer = elastic._Synchronizer(told[0])
    for _ in range(2):
        with pytest.raises(HorovodInternalError):
            synchronizer.run(False)
    assert said == [(False, False, None), (False, rank == 0, None)]


def test_process_sets_of_other_sizes(told, monkeypatch):
    import horovod.common.process_sets as sets
    _, answers = told
    pair, tail, same = sets.ProcessSet([1, 0]), sets.ProcessSet([3, 2]), sets.ProcessSet([0, 1, 3])
    given, _, _, _ = sets._check_arguments(None, [pair, tail, same])
    worlds = {4: {0: [0, 1, 2, 3], 1: [0, 1], 2: [2, 3], 3: [0, 1, 3]}, 3: {0: [0, 1, 2], 1: [0, 1], 2: [2]},
              2: {0: [0, 1]}}
    for size, expected in ((4, (1, 2, 3)), (3, (1, 2, 1)), (2, (0, None, 0)), (4, (1, 2, 3))):
        answers['size'] = size
        monkeypatch.setattr(sets, '_ids_and_ranks', lambda size=size: worlds[size])
        sets._init_process_sets(given)
        assert (pair.process_set_id, tail.process_set_id, same.process_set_id) == expected, size
        assert sets.given_to_init() is given
    assert tail.ranks == [2, 3]
    for process_set in given:
        process_set._invalidate()
    monkeypatch.setattr(sets, '_given', None)


def test_saved_tensors_stay_where_they_are_and_are_nobody_elses(torch):
    from horovod.torch.elastic.state import ModelStateHandler, OptimizerStateHandler
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        model(torch.ones(4, 2) * torch.arange(4.0).reshape(4, 1)).square().sum().backward()
        optimizer.step()

    def moments():
        return [entry['exp_avg'].clone() for entry in optimizer.state_dict()['state'].values()]

    step()
    kept, weights = OptimizerStateHandler(optimizer), ModelStateHandler(model)
    assert weights._saved_state._metadata == model.state_dict()._metadata
    places = [entry['exp_avg'].data_ptr() for entry in kept._saved_state['state'].values()]
    step()
    kept.save()
    assert [entry['exp_avg'].data_ptr() for entry in kept._saved_state['state'].values()] == places
    saved = moments()
    for _ in range(2):  # the second time from the same copy
        step()
        assert not all(torch.equal(a, b) for a, b in zip(moments(), saved))
        kept.restore()
        assert all(torch.equal(a, b) for a, b in zip(moments(), saved))


def _changes(torch, model, optimizer):
    """The changes that a script may make to its model and optimizer between two commits, by name."""
    def shrink():
        model[0].weight.data = torch.zeros(1, 2)

    def give_buffer():
        model[1].empty = torch.ones(3)

    def add_group():
        optimizer.add_param_group({'params': [torch.nn.Parameter(torch.ones(2))], 'lr': 0.5})

    def hook():
        model[0]._register_state_dict_hook(lambda module, state, prefix, _: state.update(more=torch.ones(1)))

    return {
        'values': lambda: model[0].weight.data.add_(1), 'shape': shrink, 'type': model.half, 'buffer': give_buffer,
        'child': lambda: model.__setitem__(0, torch.nn.Linear(3, 2)), 'layer': lambda: model.append(torch.nn.Linear(2, 2)),
        'parameter': lambda: setattr(model[1], 'weight', torch.nn.Parameter(torch.zeros(2))), 'group': add_group,
        'rate': lambda: optimizer.param_groups[0].update(lr=0.25), 'entry': lambda: optimizer.param_groups[0].update(more=[1]),
        'state': lambda: optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict())),
        'cleared': optimizer.state.clear, 'hook': hook, 'nothing': lambda: None}


def _assert_same(torch, a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            _assert_same(torch, a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            _assert_same(torch, one, other)
    else:
        assert a == b


@pytest.mark.parametrize('change', [
    'values', 'shape', 'type', 'buffer', 'child', 'layer', 'parameter', 'group', 'rate', 'entry', 'state', 'cleared', 'hook',
    'nothing'])
def test_a_commit_keeps_what_state_dict_says_whatever_has_changed(torch, change):
    from horovod.torch.elastic.state import ModelStateHandler, OptimizerStateHandler
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    model[1].register_buffer('empty', None)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(4, 2)).square().sum().backward()
    optimizer.step()
    handlers = [ModelStateHandler(model), OptimizerStateHandler(optimizer)]
    for handler in handlers:
        handler.save()  # by the plan that the first one has made
    _changes(torch, model, optimizer)[change]()
    for _ in range(2):
        for handler in handlers:
            handler.save()
            _assert_same(torch, handler._saved_state, handler.value.state_dict())
            assert not any(tensor.requires_grad for tensor in handler._saved_state.values() if isinstance(tensor, torch.Tensor))


@pytest.mark.below_torch
def test_worlds_that_break_leave_nothing_behind(tmp_path):
    """In each world an allreduce of 1 MiB is in flight when it breaks."""
    with Rig(tmp_path, jobs.worker('elastic_memory.py')) as rig:
        rig.start(0, 2)
        rig.start(1, 2)
        for world in range(1, 25):
            rig.begin(0, 1)
            rig.pump(lambda: 'world {}:'.format(world) in rig.output(0), 'world {}'.format(world))
            rig.break_('the test breaks world {}'.format(world))
        found = re.findall(r'world \d+: (\d+) bytes, (\d+) descriptors', rig.output(0))
        memory, descriptors = [int(entry[0]) for entry in found], [int(entry[1]) for entry in found]
        print('bytes of shared memory: {}\ndescriptors: {}'.format(memory, descriptors))
        assert len(found) == 24
        # One or two allreduces are in flight in each; a leak of one of them in each world would be 12 MiB.
        assert max(memory[12:]) <= max(memory[:12]) + (2 << 20), memory
        assert max(descriptors[12:]) <= max(descriptors[:12]) + 2, descriptors
