"""What DistributedOptimizer() makes of the optimizer that a script holds, against one process with plain PyTorch.

Each case trains on all ranks, each with its own batches, and compares with one optimizer that gets the averages.
"""

import contextlib
import copy
import functools
import gc
import io
import pickle
import traceback
import warnings
import weakref

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
size, rank = hvd.size(), hvd.rank()
cases = []


def case(function):
    cases.append(function)
    return function


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)).double()


def sgd(model, lr=0.25):
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


def loss_of(model, r, step):
    torch.manual_seed(100 * step + r)
    return model(torch.randn(6, 5, dtype=torch.float64)).pow(2).mean()


class Run(object):
    """A model that all ranks train together, or, alone, the one with which it is compared."""

    def __init__(self, alone, make=sgd):
        self.alone = alone
        self.model = make_model()
        self.optimizer = make(self.model)
        self.schedulers = []
        self.steps = 0

    def wrap(self, **kwargs):
        if not self.alone:
            self.optimizer = hvd.DistributedOptimizer(self.optimizer, named_parameters=self.model.named_parameters(),
                                                      **kwargs)

    def schedule(self, gamma):
        self.schedulers.append(torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=1, gamma=gamma))

    def backward(self, local=False):
        loss = loss_of(self.model, rank, self.steps)
        if self.alone:
            loss = sum(loss_of(self.model, r, self.steps) for r in range(size)) / size
        if local:
            loss = loss_of(self.model, 0, self.steps)
        loss.backward()

    def train(self, steps, optimizer=None, local=False, call=lambda optimizer: optimizer.step()):
        for _ in range(steps):
            optimizer_now = optimizer or self.optimizer
            optimizer_now.zero_grad()
            self.backward(local)
            call(optimizer_now)
            for scheduler in self.schedulers:
                scheduler.step()
            self.steps += 1

    def rates(self):
        return [group['lr'] for group in self.optimizer.param_groups]


def same_numbers(script, make=sgd):
    """Runs script(run) on all ranks together and in one process; gives both runs."""
    runs = []
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.filterwarnings('ignore', message='.*epoch parameter in `scheduler.step')
        for alone in (True, False):
            run = Run(alone, make)
            script(run)
            runs.append(run)
    one, all_ranks = runs
    for p, q in zip(one.model.parameters(), all_ranks.model.parameters()):
        assert torch.allclose(p, q, rtol=1e-12, atol=1e-12), (p, q)
    assert one.rates() == all_ranks.rates(), (one.rates(), all_ranks.rates())
    weights = sum(float(p.detach().sum()) for p in all_ranks.model.parameters())
    assert hvd.allgather_object(weights) == [weights] * size
    return runs


# ---- one object


@case
def wrapper_and_original_are_one_object():
    model = make_model()
    original = sgd(model)
    wrapped = hvd.DistributedOptimizer(original, named_parameters=model.named_parameters())
    assert wrapped is original
    assert isinstance(wrapped, torch.optim.SGD) and type(wrapped).__name__ == 'SGD'
    assert type(wrapped).__module__ == torch.optim.SGD.__module__ and type(wrapped) is not torch.optim.SGD
    assert repr(wrapped).startswith('SGD (')


@case
def step_of_the_original():
    def script(run):
        original = run.optimizer
        run.wrap()
        run.train(4, optimizer=original)

    same_numbers(script)


@case
def result_that_nobody_keeps():
    def script(run):
        if not run.alone:
            hvd.DistributedOptimizer(run.optimizer, named_parameters=run.model.named_parameters())
        run.train(4)

    same_numbers(script)


@case
def state_that_was_there():
    def script(run):
        run.train(3, local=True)  # as from a checkpoint that all ranks load
        before = len(run.optimizer.state)
        run.wrap()
        assert len(run.optimizer.state) == before == 4
        run.train(3)

    same_numbers(script, lambda model: torch.optim.Adam(model.parameters(), lr=0.01))


@case
def attributes_that_were_there():
    class Scaled(torch.optim.SGD):
        scale = 1.0

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group['params']:
                    p.grad.mul_(self.scale)
            return super(Scaled, self).step(closure)

    def script(run):
        run.optimizer.scale = 0.5
        run.wrap()
        assert run.optimizer.scale == 0.5
        run.train(3)

    same_numbers(script, lambda model: Scaled(model.parameters(), lr=0.25))


@case
def the_optimizer_is_held_weakly():
    model = make_model()
    optimizer = sgd(model)
    torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    gone = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert gone() is None
    loss_of(model, rank, 0).backward()  # exchanges nothing


@case
def wrapping_that_fails_changes_nothing():
    model = make_model()
    optimizer = sgd(model)
    before = dict(vars(optimizer))
    for kwargs in ({'named_parameters': list(model.parameters())}, {'groups': 'all'}, {'op': 99},
                   {'named_parameters': list(model.named_parameters())[1:]}):
        try:
            hvd.DistributedOptimizer(optimizer, **kwargs)
            raise SystemExit('no error for {}'.format(kwargs))
        except ValueError:
            pass
    assert type(optimizer) is torch.optim.SGD and vars(optimizer) == before


# ---- schedulers


@case
def scheduler_made_before():
    def script(run):
        run.schedule(0.5)
        run.wrap()
        run.train(4)

    same_numbers(script)


@case
def scheduler_made_after():
    def script(run):
        run.wrap()
        run.schedule(0.5)
        run.train(4)

    same_numbers(script)


@case
def schedulers_made_before_and_after():
    def script(run):
        run.schedule(0.5)
        run.wrap()
        run.schedule(0.75)
        run.train(4)

    same_numbers(script)


@case
def two_schedulers_made_before():
    def script(run):
        run.schedule(0.5)
        run.schedule(0.75)
        run.wrap()
        run.train(4)

    same_numbers(script)


@case
def two_schedulers_made_after():
    def script(run):
        run.wrap()
        run.schedule(0.5)
        run.schedule(0.75)
        run.train(4)

    same_numbers(script)


@case
def scheduler_after_a_resume():
    """The scheduler holds the object from before the wrapping, and load_state_dict() makes new groups."""
    def script(run):
        run.schedule(0.5)
        run.wrap()
        run.train(2)
        saved = copy.deepcopy(run.optimizer.state_dict())
        run.train(1)
        run.optimizer.load_state_dict(saved)
        run.train(3)

    one, _ = same_numbers(script)
    assert one.rates() == [0.25 * 0.5 ** 5]


@case
def a_scheduler_counts_steps():
    """Its warning that the optimizer has not made a step is for those who have not."""
    for before in (True, False):
        run = Run(False)
        if before:
            run.schedule(0.5)
        run.wrap()
        if not before:
            run.schedule(0.5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            run.schedulers[0].step()
        assert any('before `optimizer.step()`' in str(w.message) for w in caught), caught


@case
def state_dict_of_a_scheduler_can_be_saved():
    run = Run(False)
    run.wrap()
    scheduler = torch.optim.lr_scheduler.OneCycleLR(run.optimizer, max_lr=0.5, total_steps=10)
    run.schedulers.append(scheduler)
    run.train(2)
    torch.save(scheduler.state_dict(), io.BytesIO())


# ---- steps of other forms


@case
def step_that_an_instance_has():
    """As profilers leave it behind, before and after the wrapping."""
    for when in ('before', 'after', 'both'):
        def script(run):
            run.calls = []

            def patch():
                inner = run.optimizer.step
                run.optimizer.step = functools.wraps(inner)(
                    lambda *args, **kwargs: (run.calls.append('call'), inner(*args, **kwargs))[1])

            if when != 'after':
                patch()
            run.wrap()
            if when != 'before':
                patch()
            run.train(3)

        for run in same_numbers(script):
            assert len(run.calls) == (6 if when == 'both' else 3), (when, run.calls)


@case
def closures():
    def call(run, optimizer):
        def evaluate():
            optimizer.zero_grad()
            run.backward()
            return torch.tensor(7.0)

        assert optimizer.step(evaluate) == 7 and optimizer.step(closure=evaluate) == 7

    for scheduled in (False, True):
        def script(run):
            if scheduled:
                run.schedule(0.5)
            run.wrap()
            for _ in range(3):
                call(run, run.optimizer)
                run.steps += 1

        same_numbers(script)


class WithFactor(torch.optim.SGD):
    def step(self, closure=None, factor=1.0):
        return self._scaled(closure, factor)

    def _scaled(self, closure, factor):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group['params']:
                p.data.add_(p.grad, alpha=-0.1 * factor)
        return loss


class FactorFirst(WithFactor):
    def step(self, factor, closure=None):
        return self._scaled(closure, factor)


class FactorByName(WithFactor):
    def step(self, closure=None, *, factor):
        return self._scaled(closure, factor)


class FactorAlone(WithFactor):
    def step(self, factor):
        return self._scaled(None, factor)


@case
def steps_with_other_arguments():
    def closure(run):
        def evaluate():
            run.optimizer.zero_grad()
            run.backward()
            return 7

        return evaluate

    forms = [(WithFactor, lambda run, o: o.step(None, 0.5)), (WithFactor, lambda run, o: o.step(factor=0.5)),
             (WithFactor, lambda run, o: o.step(closure(run), 0.5)), (FactorFirst, lambda run, o: o.step(0.5)),
             (FactorFirst, lambda run, o: o.step(0.5, closure(run))),
             (FactorFirst, lambda run, o: o.step(closure=closure(run), factor=0.5)),
             (FactorByName, lambda run, o: o.step(factor=0.5)),
             (FactorByName, lambda run, o: o.step(closure(run), factor=0.5)), (FactorAlone, lambda run, o: o.step(0.5))]
    for cls, call in forms:
        def script(run):
            run.wrap()
            run.train(2, call=functools.partial(call, run))

        same_numbers(script, lambda model: cls(model.parameters(), lr=0.1))


@case
def constructors_that_are_odd():
    class Odd(torch.optim.SGD):
        __slots__ = ('note',)

        def __new__(cls, *, secret):
            return super(Odd, cls).__new__(cls)

        def __init__(self, *, secret):
            super(Odd, self).__init__(secret.parameters(), lr=0.25, momentum=0.9)
            self.note = 'kept'

    def script(run):
        run.wrap()
        assert run.optimizer.note == 'kept' and isinstance(run.optimizer, Odd)
        run.train(3)

    same_numbers(script, lambda model: Odd(secret=model))


@case
def a_class_without_a_step_of_its_own():
    class Below(torch.optim.AdamW):
        pass

    def script(run):
        run.wrap()
        run.train(3)

    same_numbers(script, lambda model: Below(model.parameters(), lr=0.01))


@case
def classes_of_torch():
    makers = [lambda m: torch.optim.Adam(m.parameters(), lr=0.01), lambda m: torch.optim.RMSprop(m.parameters(), lr=0.01),
              lambda m: torch.optim.Adam(m.parameters(), lr=0.01, foreach=True),
              lambda m: torch.optim.LBFGS(m.parameters(), lr=0.1, max_iter=1)]
    if hasattr(torch, 'compile'):
        makers.append(lambda m: torch.optim.Adam(m.parameters(), lr=0.01, fused=True))
    for make in makers:
        def script(run):
            run.schedule(0.9)
            run.wrap()

            def call(optimizer):
                if isinstance(optimizer, torch.optim.LBFGS):
                    optimizer.step(lambda: 1.0)
                else:
                    optimizer.step()

            run.train(3, call=call)

        same_numbers(script, make)


# ---- step hooks of PyTorch 2


@case
def step_hooks_run_once_and_see_what_is_exchanged():
    if not hasattr(torch.optim.Optimizer, 'register_step_post_hook'):
        return
    for scheduled in (False, True):
        def script(run):
            run.calls = []
            run.optimizer.register_step_pre_hook(
                lambda o, *unused: run.calls.append(('pre', float(run.model[0].weight.grad.sum()))))
            if scheduled:
                run.schedule(1.0)
            run.wrap()
            run.optimizer.register_step_post_hook(lambda o, *unused: run.calls.append(('post', o is run.optimizer)))
            run.train(2)

        one, all_ranks = same_numbers(script)
        assert [name for name, _ in all_ranks.calls] == ['pre', 'post'] * 2
        for (_, a), (_, b) in zip(one.calls, all_ranks.calls):
            assert abs(a - b) < 1e-12


@case
def making_state_runs_no_hooks():
    if not hasattr(torch.optim.Optimizer, 'register_step_post_hook'):
        return
    run = Run(False, lambda model: torch.optim.Adam(model.parameters()))
    run.optimizer.register_step_post_hook(lambda *unused: calls.append(1))
    calls = []
    run.wrap()
    hvd.broadcast_optimizer_state(run.optimizer, root_rank=0)
    assert run.optimizer.state and not calls


# ---- copies


@case
def copies_are_of_the_plain_class():
    class OwnState(torch.optim.SGD):
        def __getstate__(self):
            return dict(vars(self))

    globals()['OwnState'] = OwnState
    OwnState.__qualname__ = 'OwnState'
    for cls in (torch.optim.SGD, OwnState):
        run = Run(False, lambda model: cls(model.parameters(), lr=0.25, momentum=0.9))
        run.wrap()
        run.train(2)
        file = io.BytesIO()
        torch.save(run.optimizer, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False) if hasattr(torch, 'compile') else torch.load(file)
        for copied in (copy.deepcopy(run.optimizer), copy.copy(run.optimizer), pickle.loads(pickle.dumps(run.optimizer)),
                       pickle.loads(pickle.dumps(run.optimizer, protocol=2)), loaded):
            assert type(copied) is cls, type(copied)
            assert str(copied.state_dict()) == str(run.optimizer.state_dict())
            assert not [name for name in vars(copied) if name in ('_gradients', 'process_set', '_hooks')], vars(copied)
        run.train(1)


@case
def a_copy_steps_alone():
    model = make_model()
    holder = torch.nn.Module()
    holder.model, holder.optimizer = model, hvd.DistributedOptimizer(sgd(model), model.named_parameters())
    copied = copy.deepcopy(holder)
    if rank == 0:  # the others would have to take part if it were not alone
        loss_of(copied.model, rank, 0).backward()
        copied.optimizer.step()


# ---- twice


@case
def wrapped_twice():
    """The later arguments count, and each gradient is exchanged once."""
    def script(run):
        run.wrap(op=hvd.Sum)
        run.wrap(op=hvd.Sum, groups=1)
        run.wrap()
        run.train(3)

    _, run = same_numbers(script)
    assert run.optimizer.op == hvd.Average
    assert type(run.optimizer).__mro__.count(torch.optim.SGD) == 1


@case
def wrapped_twice_with_schedulers():
    def script(run):
        run.schedule(0.5)
        run.wrap()
        run.schedule(0.75)
        run.train(1)
        run.wrap()
        run.train(2)

    same_numbers(script)

    def after(run):
        run.wrap()
        run.schedule(0.75)
        run.train(1)
        run.wrap(groups=1)
        run.train(2)

    same_numbers(after)


@case
def wrapped_twice_while_gradients_travel():
    run = Run(False)
    run.wrap()
    run.backward()
    try:
        run.wrap()
        raise SystemExit('gradients were forgotten without a word')
    except ValueError as error:
        assert 'step()' in str(error), error
    run.optimizer.step()
    run.optimizer.zero_grad()
    run.wrap()


# ---- Adasum: of equal gradients it is each of them


@contextlib.contextmanager
def _equal_batches():
    saved = Run.backward
    Run.backward = lambda self, local=False: saved(self, local=True)
    try:
        yield
    finally:
        Run.backward = saved


@case
def adasum():
    calls = []

    def script(run):
        run.train(1)
        run.optimizer.note = 'kept'
        run.schedule(0.5)
        if hasattr(run.optimizer, 'register_step_post_hook'):
            run.optimizer.register_step_pre_hook(lambda *unused: calls.append(run.alone))
            run.optimizer.register_step_post_hook(lambda *unused: calls.append(run.alone))
        run.wrap(op=hvd.Adasum)
        assert run.optimizer.note == 'kept' and run.optimizer.state
        run.schedule(0.75)
        run.train(3)
        run.wrap(op=hvd.Adasum)
        run.train(1)

    with _equal_batches():
        _, run = same_numbers(script)
        assert type(pickle.loads(pickle.dumps(run.optimizer))) is torch.optim.SGD
        if hasattr(run.optimizer, 'register_step_post_hook'):
            assert calls.count(True) == calls.count(False) == 8, calls

        def other_order(run):
            run.wrap(op=hvd.Adasum)
            run.schedule(0.5)
            run.train(3)

        same_numbers(other_order)


@case
def from_adasum_and_back():
    with _equal_batches():
        def script(run):
            run.schedule(0.5)
            run.wrap()
            run.train(1)
            run.wrap(op=hvd.Adasum)
            run.train(1)
            run.wrap()
            run.train(1)

        same_numbers(script)


@case
def adasum_with_a_step_of_the_instance():
    run = Run(False)
    inner = run.optimizer.step
    run.optimizer.step = lambda: inner()
    try:
        run.wrap(op=hvd.Adasum)
        raise SystemExit('Adasum steps each parameter alone, which this step does not')
    except ValueError as error:
        assert 'optimizer.step' in str(error), error
    assert type(run.optimizer) is torch.optim.SGD


# ---- elastic states


@case
def restore_brings_back_what_the_script_holds():
    model = make_model()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    wrapped = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    state = hvd.elastic.TorchState(model=model, optimizer=wrapped, scheduler=scheduler, epoch=0)

    def train(steps):
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model, rank, step).backward()
            optimizer.step()
            scheduler.step()
        return optimizer.param_groups[0]['lr'], scheduler.last_epoch, [p.tolist() for p in model.parameters()]

    train(2)
    state.commit()
    first = train(2)
    state.restore()
    assert (optimizer.param_groups[0]['lr'], scheduler.last_epoch) == (0.0625, 2)
    assert train(2) == first


@case
def schedulers_and_scalers_get_the_state_of_rank_0():
    lr_scheduler = torch.optim.lr_scheduler
    makers = [lambda o: lr_scheduler.StepLR(o, 1), lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.5, total_steps=20),
              lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.5, cycle_momentum=False),
              lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
              lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0)]
    for make in makers:
        optimizer = hvd.DistributedOptimizer(sgd(make_model()))
        scheduler = make(optimizer)
        plateau = [1.0] if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau) else []

        def go(steps):
            for _ in range(steps):
                optimizer.step()
                scheduler.step(*plateau)
            return optimizer.param_groups[0]['lr']

        go(1)
        for _ in range(rank):
            scheduler.step(*plateau)
        state = hvd.elastic.TorchState(optimizer=optimizer, scheduler=scheduler)
        state.sync()
        assert scheduler.last_epoch == 1, scheduler.last_epoch
        state.commit()
        rates = [go(3)]
        state.restore()
        rates.append(go(3))
        assert hvd.allgather_object(rates) == [[rates[0]] * 2] * size, (type(scheduler), rates)
        assert scheduler.optimizer is optimizer


class Meter(object):
    def __init__(self):
        self.total = rank

    def state_dict(self):
        return {'total': self.total, 'list': [self.total]}

    def load_state_dict(self, state):
        self.total = state['total']


@case
def anything_with_a_state_dict():
    meter = Meter()
    state = hvd.elastic.TorchState(meter=meter, scaler=torch.cuda.amp.GradScaler(enabled=False), kind=Meter)
    assert state.meter is meter and state.kind is Meter
    state.sync()
    assert meter.total == 0
    meter.total = 5
    state.commit()
    meter.total = 7
    state.restore()
    assert meter.total == 5 and state.meter is meter
    state.meter = other = Meter()
    other.total = 9
    state.restore()
    assert other.total == rank


@case
def what_a_commit_has_kept_does_not_change():
    own = object()
    losses, seen = [1.0], {'a': [1], 'deep': {'set': {1}}, 'own': own}
    tensor, pair = torch.zeros(2), ([1], {'b': 2})
    graph = torch.ones(1, requires_grad=True) * 3
    cyclic = []
    cyclic.append(cyclic)
    state = hvd.elastic.TorchState(losses=losses, seen=seen, tensor=tensor, pair=pair, graph=[graph], cyclic=cyclic)
    assert state.losses is losses
    for first in (True, False):  # as constructed, and as committed
        if not first:
            losses, seen, tensor, pair = state.losses, state.seen, state.tensor, state.pair
            state.save()
        for _ in range(2):
            state.losses.append(2.0)
            state.seen['a'].append(2)
            state.seen['deep']['set'].add(2)
            state.seen['new'] = 1
            state.tensor += 1
            state.pair[0].append(2)
            state.restore()
            assert state.losses == [1.0] and state.pair == ([1], {'b': 2})
            assert state.seen == {'a': [1], 'deep': {'set': {1}}, 'own': own} and state.tensor.tolist() == [0, 0]
            assert state.cyclic[0] is state.cyclic and state.graph[0].item() == 3
    state = hvd.elastic.TorchState(losses=[rank])
    state.sync()
    state.losses.append(5)
    state.restore()
    assert state.losses == [0]


failed = []
for each in cases:
    try:
        each()
    except BaseException:
        failed.append(each.__name__)
        print('FAILED {} on rank {}:\n{}'.format(each.__name__, rank, traceback.format_exc()), flush=True)
    hvd.barrier()
if failed:
    raise SystemExit('failed: {}'.format(', '.join(failed)))
print('ok', flush=True)
