"""Commits that outlive all workers: what is kept of a state, which of several kept commits is restored, and what is refused."""

import os
import subprocess
import sys

import pytest

from horovod.common import _native, basics, elastic, kept_commits, objects

SIZE = 64 << 20


def text_of(descriptor):
    found = os.fstat(descriptor)
    return '{},{},{}'.format(descriptor, found.st_dev, found.st_ino)


class World:
    """One rank of an elastic world; the test says what the others have."""

    def __init__(self, monkeypatch, memory):
        self._monkeypatch, self._memory = monkeypatch, memory
        self.rank, self.local_rank, self.generation, self.others = 0, 0, 1, []
        monkeypatch.setattr(_native, 'handle', object())
        monkeypatch.setattr(_native, 'call', lambda name, *unused: {
            'elastic': 1, 'update_pending': 0, 'generation': self.generation, 'rank': self.rank}[name])
        monkeypatch.setattr('horovod.common._library.commit', lambda: 0)
        monkeypatch.setattr(basics.shared(), 'rank', lambda: self.rank)
        monkeypatch.setattr(basics.shared(), 'local_rank', lambda: self.local_rank)
        monkeypatch.setattr(objects, 'allgather_object', lambda word, *unused: [word] + self.others)
        monkeypatch.setattr(objects, 'broadcast_object', lambda value, root, *unused: self.of_others if root != self.rank else value)
        self.start_process()

    def start_process(self):
        """As if this were the first call of a new process with the same memory."""
        if self._memory is not None:
            self._monkeypatch.setenv('HVD_COMMITS', text_of(self._memory))
        keeper = kept_commits._shared
        if keeper is not None and keeper[1]._store is not None:
            keeper[1]._store.release()
        self._monkeypatch.setattr(kept_commits, '_shared', None)

    def state(self, cls=elastic.ObjectState, **values):
        return cls(bcast_object=lambda value, *unused, **more: value, get_rank=lambda: self.rank, **values)

    def begin(self, state, call=0):
        elastic._Synchronizer(state, call).run(False)
        return state


@pytest.fixture
def torch_states(runtime, torch):
    """What loads the runtime, before a test says that there is another."""
    import horovod.torch.elastic
    return horovod.torch.elastic


@pytest.fixture
def world(monkeypatch, memory):
    return World(monkeypatch, memory)


def train(world, steps, **values):
    state = world.begin(world.state(step=0, **values))
    for _ in range(steps):
        state.step += 1
        state.commit()
    return state


def test_a_new_process_goes_on_from_the_newest_commit_of_its_host(world, capfd):
    train(world, 3)
    world.start_process()
    world.generation = 2
    assert world.begin(world.state(step=0)).step == 3
    assert 'goes on from commit 3 of generation 1' in capfd.readouterr().err


def test_without_keep_commits_a_new_process_begins_anew(monkeypatch):
    monkeypatch.delenv('HVD_COMMITS', raising=False)
    world = World(monkeypatch, None)
    train(world, 3)
    world.start_process()
    assert world.begin(world.state(step=0)).step == 0


def test_what_was_not_committed_is_not_restored(world):
    state = train(world, 3)
    state.step = 99
    state.save()
    world.start_process()
    assert world.begin(world.state(step=0)).step == 3


@pytest.mark.parametrize('other, step', [((1, 2), 3), ((1, 3), 3), ((1, 4), 40), ((2, 1), 40)])
def test_the_greatest_commit_of_all_hosts_is_restored(world, other, step):
    """A commit of a later generation is newer than any of an earlier one."""
    train(world, 3)
    world.start_process()
    world.others = [(False, False, None), (False, False, other)]
    world.of_others = bytearray(b''.join(kept_commits.packed({'values': {'step': 40}}, lambda value: NotImplemented)))
    assert world.begin(world.state(step=0)).step == step


def test_another_rank_gives_its_commit_and_restores_nothing_itself(world):
    train(world, 3)
    world.start_process()
    world.rank = 1
    world.others = [(False, False, (1, 2))]
    given = []
    objects.broadcast_object, real = lambda value, *unused: given.append(value) or value, objects.broadcast_object
    try:
        # The list of the others is behind this rank's own: it counts as rank 0 there.
        state = world.state(step=0)
        synchronizer = elastic._Synchronizer(state)
        synchronizer._all_skip(False)
        synchronizer._kept = synchronizer._kept[0], -1
        synchronizer._restore_kept()
    finally:
        objects.broadcast_object = real
    assert kept_commits.unpacked(bytearray(given[0])) == {'values': {'step': 3}} and state.step == 0


def test_nothing_is_restored_while_a_rank_has_the_state(world):
    train(world, 3)
    world.start_process()
    state = world.state(step=7)
    synchronizer = elastic._Synchronizer(state)
    synchronizer._synchronized = True
    synchronizer.run(False)
    assert state.step == 7


def test_a_rank_that_is_not_the_first_of_its_host_keeps_nothing(world):
    world.local_rank = 1
    train(world, 3)
    world.start_process()
    world.local_rank = 0
    assert world.begin(world.state(step=0)).step == 0


def test_ranks_count_commits_alike_whether_they_keep_them_or_not(world):
    """The first rank of the host is lost, and the next one keeps the commits from then on."""
    world.local_rank = 1
    state = train(world, 3)
    world.local_rank, world.generation = 0, 2
    world.begin(state)
    state.step += 1
    state.commit()
    assert kept_commits.shared().newest(state._keeper_name) == (2, 1)


@pytest.mark.parametrize('call, values', [(1, {}), (0, {'more': 1})])
def test_the_commit_of_another_state_is_not_restored_and_is_named(world, capfd, call, values):
    train(world, 3)
    world.start_process()
    assert world.begin(world.state(step=0, **values), call).step == 0
    assert 'commit 3 of generation 1 is not restored, because it is not of the state' in capfd.readouterr().err


def test_a_state_with_a_save_of_its_own_is_refused_with_one_sentence(world, capfd):
    class Own(elastic.ObjectState):
        def save(self):
            super().save()
    state = world.begin(world.state(Own, step=0))
    state.commit()
    state.commit()
    said = capfd.readouterr().err
    assert said.count('hvdrun') == 1
    assert 'commit 1 of generation 1 is not kept, because Own has a method save() of its own' in said


def test_a_value_that_cannot_be_pickled_is_refused_with_one_sentence(world, capfd):
    state = train(world, 2, function=lambda: 0)
    said = capfd.readouterr().err
    assert said.count('hvdrun') == 1 and 'a value of the state cannot be pickled' in said and state.step == 2


def test_a_state_without_room_is_refused_and_the_commit_before_is_restored(world, capfd):
    state = train(world, 2, data=b'')
    state.data = bytes(SIZE)
    state.step = 3
    state.commit()
    state.commit()
    said = capfd.readouterr().err
    assert said.count('hvdrun') == 1 and 'does not fit' in said
    world.start_process()
    assert world.begin(world.state(step=0, data=b'')).step == 2


def test_short_memory_is_refused_with_one_sentence(world, capfd, monkeypatch):
    state = train(world, 2, data=b'')
    monkeypatch.setattr('horovod.common.commit_store.available_memory', lambda: 3 << 20)
    state.data = bytes(2 << 20)
    state.commit()
    assert 'because it needs 2 MiB more of shared memory, and half of the 3 MiB that are available is the most' in capfd.readouterr().err
    monkeypatch.setattr('horovod.common.commit_store.available_memory', lambda: 1 << 30)
    state.step = 3
    state.commit()
    world.start_process()
    assert world.begin(world.state(step=0, data=b'')).step == 3


def test_memory_that_is_there_already_is_not_asked_for_again(world, monkeypatch):
    train(world, 2, data=bytes(2 << 20))
    world.start_process()
    monkeypatch.setattr('horovod.common.commit_store.available_memory', lambda: 0)
    world.generation = 2
    state = world.begin(world.state(step=0, data=b''))
    state.step = 9
    state.commit()
    assert kept_commits.shared().newest(state._keeper_name) == (2, 1)


@pytest.mark.parametrize('there', [False, True])
def test_a_descriptor_that_is_not_the_memory_is_named(world, monkeypatch, capfd, there):
    """What starts the script has closed it, or has a file of its own there."""
    read, write = os.pipe()
    monkeypatch.setenv('HVD_COMMITS', '{},1,1'.format(read))
    if not there:
        os.close(read)
    train(world, 2)
    assert 'did not reach this process; let what starts the script hand it down' in capfd.readouterr().err
    os.close(write)
    if there:
        os.close(read)


def test_programs_that_the_script_starts_do_not_hold_the_memory(world, memory):
    os.set_inheritable(memory, True)
    train(world, 1)
    code = 'import os, sys; os.fstat({})'.format(memory)
    assert subprocess.run([sys.executable, '-c', code], close_fds=False, stderr=subprocess.DEVNULL).returncode != 0


def test_arrays_are_kept_whole(world):
    numpy = pytest.importorskip('numpy')
    kept = numpy.arange(1 << 20, dtype=numpy.float64).reshape(1024, -1)
    state = train(world, 1, data=kept, turned=kept.T)
    state.data[:] = 0
    world.start_process()
    restored = world.begin(world.state(step=0, data=None, turned=None))
    assert (restored.data == kept).all() and (restored.turned == kept.T).all()
    restored.data += 1  # it may be changed


def test_a_torch_state_is_kept_whole(torch_states, world, torch, monkeypatch):
    from horovod.torch.elastic import state as module
    for name in ('broadcast_parameters', 'broadcast_optimizer_state'):
        monkeypatch.setattr(module, name, lambda *unused, **more: None)
    monkeypatch.setattr(module, 'broadcast_object', lambda value, **more: value)

    def make(seed):
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.BatchNorm1d(3))
        optimizer = torch.optim.Adam(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        state = torch_states.TorchState(model=model, optimizer=optimizer, scheduler=scheduler, step=0, kinds=[])
        state._bcast_object = lambda value: value
        return world.begin(state)

    def learn(state):
        torch.manual_seed(state.step)
        state.optimizer.zero_grad()
        state.model(torch.rand(4, 5)).sum().backward()
        state.optimizer.step()
        state.scheduler.step()
        state.step += 1

    def same(one, other):
        if isinstance(one, torch.Tensor):
            return one.dtype == other.dtype and torch.equal(one, other)
        if isinstance(one, dict):
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        return all(map(same, one, other)) if isinstance(one, (list, tuple)) else one == other

    first = make(1)
    kinds = [torch.arange(3, dtype=torch.bfloat16), torch.tensor(True), torch.empty(0), torch.tensor([1 + 2j]),
             torch.nn.Parameter(torch.ones(2), requires_grad=False), torch.ones(3, requires_grad=True), torch.eye(3).t()[1:]]
    first.kinds = kinds
    for _ in range(3):
        learn(first)
        first.commit()
    world.start_process()
    world.generation = 2
    second = make(2)
    assert second.step == 3
    for one, other in zip(kinds, second.kinds):
        assert type(one) is type(other) and same(one.detach(), other.detach()) and one.requires_grad == other.requires_grad
    for _ in range(2):  # what follows is the same, too
        for name in ('model', 'optimizer', 'scheduler'):
            one, other = (getattr(state, name).state_dict() for state in (first, second))
            keys = one.keys() if name != 'scheduler' else ('last_epoch', '_last_lr')
            assert all(same(one[key], other[key]) for key in keys), name
        for state in (first, second):
            learn(state)
        first.commit()
        second.commit()
