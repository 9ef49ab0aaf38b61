"""Scripts that do something between backward() and step(), or something else than step(), each against one process.

    gradients_after_backward.py [CASE...]      all of them without a name

A case runs on all ranks of one world. Ranks have batches of their own, one process has the mean of their losses.
"""

import copy
import math
import sys
import time
import warnings

import torch

import horovod.torch as hvd
from torch.utils.checkpoint import checkpoint

LR = 0.5


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)).double()


def batch(rank, step=0):
    torch.manual_seed(100 * step + rank)
    return torch.randn(6, 5, dtype=torch.float64) * (rank + 1)


def loss_of(model, x):
    return model(x).pow(2).mean()


def mean_loss(model, step, loss=loss_of):
    return sum([loss(model, batch(rank, step)) for rank in range(hvd.size())]) / hvd.size()


def sgd(parameters, **kwargs):
    kwargs.setdefault('lr', LR)
    return torch.optim.SGD(parameters, momentum=0.9, **kwargs)


def wrap(model, optimizer=None, **kwargs):
    return hvd.DistributedOptimizer(optimizer or sgd(model.parameters()), named_parameters=model.named_parameters(), **kwargs)


def near(these, those, what=''):
    for p, q in zip(these, those):
        assert (p is None) == (q is None), (what, p, q)
        assert p is None or torch.allclose(p, q, rtol=1e-9, atol=1e-11), (what, p, q)


def same_weights(model, reference, what=''):
    near(model.parameters(), reference.parameters(), what)
    mine = [p.tolist() for p in model.parameters()]
    assert all(each == mine for each in hvd.allgather_object(mine)), (what, 'ranks differ')


def grads(model):
    return [p.grad for p in model.parameters()]


def compare(before_step, set_to_none=True, steps=4, **kwargs):
    """Trains with something between backward() and step()."""
    model, reference = make_model(), make_model()
    optimizer, plain = wrap(model, **kwargs), sgd(reference.parameters())
    for step in range(steps):
        optimizer.zero_grad(set_to_none=set_to_none)
        loss_of(model, batch(hvd.rank(), step)).backward()
        plain.zero_grad(set_to_none=set_to_none)
        mean_loss(reference, step).backward()
        near(grads(model), grads(reference), 'gradients after backward()')
        before_step(model.parameters())
        before_step(reference.parameters())
        near(grads(model), grads(reference))
        optimizer.step()
        plain.step()
        near(grads(model), grads(reference), 'step() left the gradients alone')
    same_weights(model, reference)
    return optimizer


def clip_by_norm():
    for set_to_none in (True, False):
        compare(lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 0.01), set_to_none)
    compare(lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 0.01), gradient_predivide_factor=2.0)


def clip_by_value():
    compare(lambda parameters: torch.nn.utils.clip_grad_value_(parameters, 0.001))


def noise():
    def add(parameters):
        torch.manual_seed(5)
        for p in parameters:
            p.grad = p.grad + torch.randn_like(p)

    compare(add)


def groups_and_buckets():
    clip = lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 0.01)
    for groups in (1, 2, 3):
        compare(clip, groups=groups)
        compare(clip, groups=groups, gradient_as_bucket_view=True)
    for set_to_none in (True, False):
        compare(clip, set_to_none, gradient_as_bucket_view=True)


def one_exchange_a_step():
    """Where all gradients are there, step() sends nothing."""
    model = make_model()
    optimizer = wrap(model)
    loss_of(model, batch(hvd.rank())).backward()
    assert not optimizer._handles and optimizer._agreement.is_complete
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        optimizer.step()
    assert len(caught) == 1 and str(caught[0].message).startswith(
        'optimizer.step() called without optimizer.skip_synchronize() context'), caught


def other_operations():
    for kwargs, factor in (({'op': hvd.Sum}, hvd.size()), ({'compression': hvd.Compression.fp16}, 1)):
        model, reference = make_model(), make_model()
        optimizer = wrap(model, **kwargs)
        for step in range(3):
            optimizer.zero_grad()
            reference.zero_grad()
            loss_of(model, batch(hvd.rank(), step)).backward()
            mean_loss(reference, step).backward()
            for p, q in zip(model.parameters(), reference.parameters()):
                assert torch.allclose(p.grad, q.grad * factor, rtol=1e-2, atol=1e-3), (kwargs, p.grad, q.grad)
    model = make_model()
    optimizer = wrap(model, op=hvd.Sum)
    loss_of(model, batch(hvd.rank())).backward()
    try:
        loss_of(model, batch(hvd.rank())).backward()
    except AssertionError as error:
        assert 'hvd.Average' in str(error), error
    else:
        raise AssertionError('a sum of sums')


class Scaler(object):
    """torch.cuda.amp.GradScaler, which this PyTorch may not have for the CPU: unscales through .data, so that no version is
    raised, skips a step that has inf or nan, and makes the scale smaller then."""

    def __init__(self):
        self.value, self.found, self.unscaled = 1024.0, False, False

    def scale(self, loss):
        return loss * self.value

    def unscale_(self, optimizer):
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    p.grad.data.div_(self.value)
                    self.found = self.found or not bool(torch.isfinite(p.grad).all())

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.found:
            optimizer.step()

    def update(self):
        self.value *= 0.5 if self.found else 2.0
        self.found = self.unscaled = False


def scalers():
    made = [Scaler]
    if hasattr(torch, 'amp') and hasattr(torch.amp, 'GradScaler'):
        made.append(lambda: torch.amp.GradScaler('cpu', init_scale=1024.0, growth_interval=1))
    return made


def amp():
    for make_scaler in scalers():
        for clip in (False, True):
            for overflow in ((), (1, 2)):
                model, reference = make_model(), make_model()
                optimizer, plain = wrap(model), sgd(reference.parameters())
                scaler, scale = make_scaler(), 1024.0
                for step in range(5):
                    optimizer.zero_grad()
                    plain.zero_grad()
                    loss = loss_of(model, batch(hvd.rank(), step))
                    if step in overflow and hvd.rank() == hvd.size() - 1:
                        loss = loss * math.inf
                    scaler.scale(loss).backward()
                    if clip:
                        scaler.unscale_(optimizer)
                        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                    scaler.step(optimizer)
                    scaler.update()
                    if step in overflow:
                        assert all([not torch.isfinite(grad).any() for grad in grads(model)]), 'inf on all ranks'
                    else:
                        mean_loss(reference, step).backward()
                        if clip:
                            torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
                        plain.step()
                same_weights(model, reference, (make_scaler, clip, overflow))


class Heads(torch.nn.Module):
    """A trunk, and a head for each rank."""

    def __init__(self, bias=True):
        super(Heads, self).__init__()
        torch.manual_seed(2)
        self.trunk = torch.nn.Linear(5, 4, bias)
        self.heads = torch.nn.ModuleList([torch.nn.Linear(4, 2, bias) for _ in range(hvd.size())])
        self.double()

    def loss(self, rank, step):
        return self.heads[rank](torch.tanh(self.trunk(batch(rank, step)))).pow(2).mean()

    def mean(self, step):
        return sum([self.loss(rank, step) for rank in range(hvd.size())]) / hvd.size()


def heads_that_depend_on_the_rank():
    """With and without another call of all ranks before step()."""
    for between in (lambda: None, lambda: hvd.allreduce(torch.ones(2), name='loss'), hvd.barrier,
                    lambda: hvd.synchronize(hvd.allreduce_async(torch.ones(1), name='later'))):
        for kwargs in ({}, {'groups': [[]]}, {'gradient_as_bucket_view': True}, {'groups': 2}):
            model, reference = Heads(), Heads()
            if kwargs == {'groups': [[]]}:  # the trunk by itself
                kwargs = {'groups': [list(model.trunk.parameters())] + [[p] for p in model.heads.parameters()]}
            optimizer, plain = wrap(model, **kwargs), sgd(reference.parameters())
            for step in range(3):
                optimizer.zero_grad()
                plain.zero_grad()
                model.loss(hvd.rank(), step).backward()
                reference.mean(step).backward()
                if 'groups' in kwargs and kwargs['groups'] != 2:
                    near(grads(model.trunk), grads(reference.trunk), 'the trunk is combined')
                between()
                optimizer.step()
                plain.step()
                near(grads(model), grads(reference))
            same_weights(model, reference)


def what_is_not_combined_is_guarded():
    model = Heads()
    optimizer = wrap(model)
    for change in (lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01), lambda: Scaler().unscale_(optimizer),
                   lambda: [p.grad.neg_() for p in model.parameters() if p.grad is not None],  # which keeps their norms
                   lambda: model.zero_grad(set_to_none=True)):
        model.loss(hvd.rank(), 0).backward()
        change()
        try:
            optimizer.step()
        except RuntimeError as error:
            assert 'heads.{}'.format(hvd.rank()) in str(error) or 'trunk' in str(error), error
            assert 'synchronize()' in str(error), error
        else:
            raise AssertionError('no error')
        optimizer.discard()
        model.zero_grad(set_to_none=True)
    # The cure.
    reference = Heads()
    plain = sgd(reference.parameters())
    for step in range(3):
        optimizer.zero_grad()
        plain.zero_grad()
        model.loss(hvd.rank(), step).backward()
        reference.mean(step).backward()
        optimizer.synchronize()
        for each in (model, reference):
            torch.nn.utils.clip_grad_norm_(each.parameters(), 0.01)
        with optimizer.skip_synchronize():
            optimizer.step()
        plain.step()
    same_weights(model, reference)


def no_batch():
    """The last rank has none in some steps: straight to step(), and with another call before."""
    for between in (lambda: None, lambda: hvd.allreduce(torch.ones(2), name='loss'), hvd.barrier,
                    lambda: hvd.broadcast_object('x', root_rank=0)):
        for kwargs in ({}, {'gradient_as_bucket_view': True}, {'groups': 2}):
            model, reference = make_model(), make_model()
            optimizer, plain = wrap(model, **kwargs), sgd(reference.parameters())
            for step in range(4):
                optimizer.zero_grad()
                plain.zero_grad()
                empty = step % 2 == 1
                if not empty or hvd.rank() < hvd.size() - 1:
                    loss_of(model, batch(hvd.rank(), step)).backward()
                between()
                optimizer.step()
                (sum([loss_of(reference, batch(rank, step)) for rank in range(hvd.size() - int(empty))]) / hvd.size()).backward()
                plain.step()
                near(grads(model), grads(reference), (step, kwargs))
            same_weights(model, reference)


def another_call_before_backward():
    """Of which one rank comes late, so that the others wait for it."""
    model, reference = make_model(), make_model()
    optimizer, plain = wrap(model), sgd(reference.parameters())
    for step in range(6):
        optimizer.zero_grad()
        plain.zero_grad()
        if hvd.rank() == step % hvd.size():
            time.sleep(0.1)
        hvd.allreduce(torch.ones(2), name='before')
        handle = hvd.allreduce_async(torch.ones(2), name='polled')
        while step % 2 == 0 and not hvd.poll(handle):
            pass
        hvd.synchronize(handle)
        loss_of(model, batch(hvd.rank(), step)).backward()
        mean_loss(reference, step).backward()
        near(grads(model), grads(reference), step)
        optimizer.step()
        plain.step()
    same_weights(model, reference)


def a_call_of_the_last_step_in_another_order():
    """Rank 0 waits after its step() in a call that the other ranks make before theirs: it comes to backward() by itself."""
    model, reference = make_model(), make_model()
    optimizer, plain = wrap(model), sgd(reference.parameters())
    for step in range(4):
        optimizer.zero_grad()
        loss_of(model, batch(hvd.rank(), step)).backward()
        plain.zero_grad()
        mean_loss(reference, step).backward()
        near(grads(model), grads(reference), 'gradients after backward()')
        if hvd.rank() == 0:
            optimizer.step()
        else:
            time.sleep(0.1)
        hvd.allreduce(torch.ones(1), name='metric')
        if hvd.rank() != 0:
            optimizer.step()
        plain.step()
    same_weights(model, reference)


def two_backwards():
    """Over the same parameters, and over others, with what is combined visible after each."""
    for kwargs in ({}, {'groups': 1}, {'gradient_as_bucket_view': True}):
        model, reference = make_model(), make_model()
        optimizer, plain = wrap(model, **kwargs), sgd(reference.parameters())
        for step in range(3):
            optimizer.zero_grad()
            plain.zero_grad()
            for part in range(2):
                loss_of(model, batch(hvd.rank(), 2 * step + part)).backward()
                mean_loss(reference, 2 * step + part).backward()
                near(grads(model), grads(reference), (kwargs, part))
            for each in (model, reference):
                torch.nn.utils.clip_grad_norm_(each.parameters(), 0.01)
            optimizer.step()
            plain.step()
        same_weights(model, reference)
        model, reference = Heads(), Heads()
        optimizer, plain = wrap(model, **kwargs), sgd(reference.parameters())
        for step in range(3):
            optimizer.zero_grad(set_to_none=True)
            plain.zero_grad(set_to_none=True)
            for head in range(hvd.size()):
                hidden = model.trunk(batch(hvd.rank(), step)) if head == 0 else torch.ones(1, 4).double() * hvd.rank()
                model.heads[head](hidden).pow(2).mean().backward()
                losses = []
                for rank in range(hvd.size()):
                    hidden = reference.trunk(batch(rank, step)) if head == 0 else torch.ones(1, 4).double() * rank
                    losses.append(reference.heads[head](hidden).pow(2).mean())
                (sum(losses) / hvd.size()).backward()
                near(grads(model), grads(reference), (kwargs, head))
            optimizer.step()
            plain.step()
        same_weights(model, reference)


def several_passes():
    for kwargs in ({}, {'gradient_as_bucket_view': True}, {'groups': 2}):
        model, reference = make_model(), make_model()
        optimizer, plain = wrap(model, backward_passes_per_step=3, **kwargs), sgd(reference.parameters())
        for step in range(3):
            optimizer.zero_grad()
            plain.zero_grad()
            for part in range(3):
                loss_of(model, batch(hvd.rank(), 3 * step + part)).backward()
                mean_loss(reference, 3 * step + part).backward()
            near(grads(model), grads(reference))
            for each in (model, reference):
                torch.nn.utils.clip_grad_norm_(each.parameters(), 0.01)
            optimizer.step()
            plain.step()
        optimizer.zero_grad()
        plain.zero_grad()
        loss_of(model, batch(hvd.rank(), 50)).backward()
        optimizer.zero_grad()  # drops an accumulation that has not come to its end
        for part in range(3):
            loss_of(model, batch(hvd.rank(), part)).backward()
            mean_loss(reference, part).backward()
        near(grads(model), grads(reference))
        optimizer.step()
        plain.step()
        same_weights(model, reference)


def autograd_alone():
    """torch.autograd.grad() leaves p.grad and the other ranks alone, retain_graph and create_graph do not disturb."""
    model, reference = make_model(), make_model()
    optimizer, plain = wrap(model), sgd(reference.parameters())
    for step in range(3):
        optimizer.zero_grad()
        plain.zero_grad()
        loss = loss_of(model, batch(hvd.rank(), step))
        mine = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        if hvd.rank() == 0:
            torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        (loss + sum([g.pow(2).sum() for g in mine])).backward(retain_graph=True)
        losses = []
        for rank in range(hvd.size()):
            loss = loss_of(reference, batch(rank, step))
            losses.append(loss + sum([g.pow(2).sum() for g in torch.autograd.grad(loss, list(reference.parameters()),
                                                                                  create_graph=True)]))
        (sum(losses) / hvd.size()).backward()
        near(grads(model), grads(reference))
        optimizer.step()
        plain.step()
    same_weights(model, reference)


def double_backward():
    """A penalty on the gradient of all ranks' mean loss."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of the cycle that create_graph makes
        model, reference = make_model(), make_model()
        optimizer = wrap(model)
        loss_of(model, batch(hvd.rank())).backward(create_graph=True)
        mean_loss(reference, 0).backward(create_graph=True)
        near(grads(model), grads(reference))
        for each in (model, reference):
            sum([p.grad.pow(2).sum() for p in each.parameters()]).backward()
        near(grads(model), grads(reference))
        optimizer.step()


def retained_graph():
    model, reference = make_model(), make_model()
    optimizer = wrap(model)
    loss, mean = loss_of(model, batch(hvd.rank())), mean_loss(reference, 0)
    for retain in (True, False):
        loss.backward(retain_graph=retain)
        mean.backward(retain_graph=retain)
        near(grads(model), grads(reference))
    optimizer.step()


class Twice(torch.nn.Module):
    """A layer that runs twice, each time in a nested backward()."""

    def __init__(self):
        super(Twice, self).__init__()
        torch.manual_seed(3)
        self.first, self.layer, self.last = [torch.nn.Linear(5, 5).double() for _ in range(3)]

    def forward(self, x):
        x = self.first(x)
        for _ in range(2):
            x = checkpoint(self._run, x, **({'use_reentrant': True} if hasattr(torch, 'compile') else {}))
        return self.last(x)

    def _run(self, x):
        return torch.tanh(self.layer(x))


def reentrant_checkpointing():
    for kwargs in ({}, {'groups': 1}, {'gradient_as_bucket_view': True}):
        model, reference = Twice(), Twice()
        optimizer, plain = wrap(model, **kwargs), sgd(reference.parameters())
        for step in range(3):
            optimizer.zero_grad()
            plain.zero_grad()
            loss_of(model, batch(hvd.rank(), step)).backward()
            mean_loss(reference, step).backward()
            near(grads(model), grads(reference))
            for each in (model, reference):
                torch.nn.utils.clip_grad_norm_(each.parameters(), 0.01)
            optimizer.step()
            plain.step()
        same_weights(model, reference)


def sync_batch_norm():
    def make(norm):
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(5, 4), norm(4), torch.nn.Linear(4, 2)).double()

    model, reference = make(hvd.SyncBatchNorm), make(torch.nn.BatchNorm1d)
    optimizer, plain = wrap(model), sgd(reference.parameters())
    for step in range(3):
        optimizer.zero_grad()
        plain.zero_grad()
        loss_of(model, batch(hvd.rank(), step)).backward()
        loss_of(reference, torch.cat([batch(rank, step) for rank in range(hvd.size())])).backward()
        near(grads(model), grads(reference))
        for each in (model, reference):
            torch.nn.utils.clip_grad_norm_(each.parameters(), 0.1)
        optimizer.step()
        plain.step()
    same_weights(model, reference)


def sparse():
    def make():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Embedding(6, 3, sparse=True), torch.nn.Linear(3, 2)).double()

    def loss(model, rank, step):
        return model(torch.tensor([(rank + step) % 6, step % 6])).pow(2).mean()

    for as_dense in (False, True):
        model, reference = make(), make()
        optimizer = wrap(model, torch.optim.SGD(model.parameters(), lr=LR), sparse_as_dense=as_dense)
        plain = torch.optim.SGD(reference.parameters(), lr=LR)
        for step in range(4):
            optimizer.zero_grad(set_to_none=True)
            plain.zero_grad(set_to_none=True)
            idle = step in (0, 2) and hvd.rank() == 1  # also before it has had a sparse gradient
            if not idle:
                loss(model, hvd.rank(), step).backward()
            ranks = [rank for rank in range(hvd.size()) if not (step in (0, 2) and rank == 1)]
            (sum([loss(reference, rank, step) for rank in ranks]) / hvd.size()).backward()
            if step not in (0, 2):
                assert model[0].weight.grad.is_sparse
                near([model[0].weight.grad.to_dense()], [reference[0].weight.grad.to_dense()])
                near(grads(model[1]), grads(reference[1]))
            optimizer.step()
            plain.step()
        same_weights(model, reference)


class Picked(torch.autograd.Function):
    """table[i, j], with a gradient that is sparse in both dimensions."""

    @staticmethod
    def forward(ctx, table, i, j):
        ctx.places, ctx.shape = torch.stack([i, j]), table.shape
        return table[i, j]

    @staticmethod
    def backward(ctx, grad):
        return torch.sparse_coo_tensor(ctx.places, grad, ctx.shape), None, None


def several_sparse_dimensions():
    """A rank that has no gradient, or one without entries, sends as many indices of each entry as the others."""
    for used in ((2, 0), (0, 2), (1, 2), (0, 0), (2, None), (None, 2)):  # entries on each rank; None: no backward() at all
        table = torch.nn.Parameter(torch.zeros(4, 3, 2, dtype=torch.float64))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([table], lr=1.0))
        for step in range(3):
            optimizer.zero_grad(set_to_none=True)
            expected = torch.zeros_like(table)
            for rank, entries in enumerate(used):
                i, j = torch.arange(entries or 0) + step, torch.arange(entries or 0)
                expected[i, j] += (rank + 1) / hvd.size()
                if rank == hvd.rank() and entries is not None:
                    (Picked.apply(table, i, j) * (rank + 1)).sum().backward()
            before = table.detach().clone()
            optimizer.step()
            near([before - table], [expected], (used, step))



def process_sets():
    """Each rank trains alone in one set, all in another, beside each other."""
    alone, everyone = ALONE[hvd.rank()], hvd.global_process_set
    mine, model, reference, own = make_model(), make_model(), make_model(), make_model()
    one, optimizer = wrap(mine, process_set=alone), wrap(model, process_set=everyone)
    plain, own_plain = sgd(reference.parameters()), sgd(own.parameters())
    for step in range(3):
        for each in (one, optimizer, plain, own_plain):
            each.zero_grad()
        (loss_of(mine, batch(hvd.rank(), step)) + loss_of(model, batch(hvd.rank(), step))).backward()
        mean_loss(reference, step).backward()
        loss_of(own, batch(hvd.rank(), step)).backward()
        near(grads(model), grads(reference))
        near(grads(mine), grads(own))
        for each in (mine, model, reference, own):
            torch.nn.utils.clip_grad_norm_(each.parameters(), 0.1)
        for _ in range(hvd.rank()):
            hvd.allreduce(torch.ones(1), name='alone', process_set=alone)
        for each in (one, optimizer, plain, own_plain):
            each.step()
    same_weights(model, reference)
    near(mine.parameters(), own.parameters())


def adasum():
    """Combines steps, not gradients: those are the rank's own."""
    model, reference = make_model(), make_model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), op=hvd.Adasum,
                                         named_parameters=model.named_parameters())
    for step in range(2):
        optimizer.zero_grad()
        loss_of(model, batch(hvd.rank(), step)).backward()
        reference.load_state_dict(model.state_dict())
        reference.zero_grad()
        loss_of(reference, batch(hvd.rank(), step)).backward()
        near(grads(model), grads(reference))
        optimizer.step()
        mine = [p.tolist() for p in model.parameters()]
        assert all(each == mine for each in hvd.allgather_object(mine))


def joined():
    """Ranks run out of batches after another number of steps, twice."""
    model, reference = make_model(), make_model()
    optimizer, plain = wrap(model), sgd(reference.parameters())
    for epoch in range(2):
        batches = [3 + (rank if epoch == 0 else hvd.size() - rank) for rank in range(hvd.size())]
        for step in range(max(batches)):
            left = [rank for rank in range(hvd.size()) if step < batches[rank]]
            if hvd.rank() in left:
                optimizer.zero_grad()
                loss_of(model, batch(hvd.rank(), step)).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                optimizer.step()
            plain.zero_grad()
            (sum([loss_of(reference, batch(rank, step)) for rank in left]) / hvd.size()).backward()
            torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
            plain.step()
        last = hvd.join()
        hvd.broadcast_parameters(model.state_dict(), root_rank=last)
        hvd.broadcast_optimizer_state(optimizer, root_rank=last)
    near(model.parameters(), reference.parameters())


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        raise ArithmeticError('a bad batch')


def a_batch_that_all_skip():
    """After an exception in the middle of backward(), with some gradients under way."""
    for kwargs in ({}, {'groups': [[]]}, {'gradient_as_bucket_view': True}, {'groups': 1}):
        for forget in (lambda optimizer, model: optimizer.zero_grad(), lambda optimizer, model: optimizer.discard(),
                       lambda optimizer, model: model.zero_grad(set_to_none=True)):
            model, reference = make_model(), make_model()
            if kwargs == {'groups': [[]]}:
                kwargs = {'groups': [[p] for p in model.parameters()]}
            optimizer, plain = wrap(model, **kwargs), sgd(reference.parameters())
            for step in range(5):
                forget(optimizer, model)
                model.zero_grad(set_to_none=True)
                plain.zero_grad()
                if step in (1, 3):
                    try:
                        model[2](Fails.apply(torch.tanh(model[0](batch(hvd.rank(), step))))).sum().backward()
                    except ArithmeticError:
                        continue
                loss_of(model, batch(hvd.rank(), step)).backward()
                mean_loss(reference, step).backward()
                near(grads(model), grads(reference), (kwargs, step))
                optimizer.step()
                plain.step()
            same_weights(model, reference)


def a_batch_that_one_skips():
    """The others are told, and wait for nobody."""
    model = make_model()
    optimizer = wrap(model, groups=[[p] for p in model.parameters()])
    if hvd.rank() == 0:
        try:
            model[2](Fails.apply(model[0](batch(0)))).sum().backward()
        except ArithmeticError:
            pass
    try:
        if hvd.rank() == 0:
            optimizer.zero_grad()
        else:
            loss_of(model, batch(hvd.rank())).backward()
    except hvd.HorovodInternalError as error:
        assert 'skip a batch together' in str(error), error
    else:
        raise AssertionError('no error')


def adversaries():
    """The generator's backward() leaves gradients in the discriminator, which are dropped; clipping in both."""
    def make():
        torch.manual_seed(4)
        return torch.nn.Linear(5, 5).double(), torch.nn.Linear(5, 1).double()

    (generator, discriminator), (plain_generator, plain_discriminator) = make(), make()
    optimizers = [wrap(generator), wrap(discriminator)]
    plains = [sgd(plain_generator.parameters()), sgd(plain_discriminator.parameters())]

    def losses(g, d, step, ranks):
        yield sum([d(g(batch(rank, step))).sigmoid().mean() for rank in ranks]) / len(ranks)
        yield sum([d(g(batch(rank, step)).detach()).sigmoid().mean() - d(batch(rank, step + 50)).tanh().mean()
                   for rank in ranks]) / len(ranks)

    for step in range(4):
        for (g, d), steppers, ranks in (((generator, discriminator), optimizers, [hvd.rank()]),
                                        ((plain_generator, plain_discriminator), plains, list(range(hvd.size())))):
            for model, stepper, loss in zip((g, d), steppers, losses(g, d, step, ranks)):
                stepper.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
                stepper.step()
    same_weights(generator, plain_generator)
    same_weights(discriminator, plain_discriminator)


def two_optimizers_on_one_loss():
    for order in (1, -1):
        model, reference = make_model(), make_model()
        optimizers = [wrap(model[0]), wrap(model[2])]
        plains = [sgd(reference[0].parameters()), sgd(reference[2].parameters())]
        for step in range(4):
            for each in optimizers + plains:
                each.zero_grad()
            loss_of(model, batch(hvd.rank(), step)).backward()
            mean_loss(reference, step).backward()
            near(grads(model), grads(reference))
            for each in (model, reference):
                torch.nn.utils.clip_grad_norm_(each.parameters(), 0.01)
            for each in optimizers[::order] + plains:
                each.step()
        same_weights(model, reference)


def other_models_on_other_ranks():
    """Each rank waits in backward() for another optimizer."""
    models = [make_model(), make_model()]
    optimizers = [wrap(model) for model in models]
    for step in range(4):
        for each in optimizers:
            each.zero_grad(set_to_none=True)
        used = (hvd.rank() + step) % 2
        loss_of(models[used], batch(hvd.rank(), step)).backward()
        expected = []
        for k, model in enumerate(models):
            copied = copy.deepcopy(model)
            copied.zero_grad(set_to_none=True)
            ranks = [rank for rank in range(hvd.size()) if (rank + step) % 2 == k]
            if ranks:
                (sum([loss_of(copied, batch(rank, step)) for rank in ranks]) / hvd.size()).backward()
            expected.append(grads(copied))
        for each, model, known in zip(optimizers, models, expected):
            each.step()
            near(grads(model), known, step)


def two_wrappers_over_one_parameter():
    """Each of two losses has its optimizer, both for all parameters."""
    model, reference = make_model(), make_model()
    optimizers = [hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=lr),
                                           named_parameters=model.named_parameters()) for lr in (0.1, 0.2)]
    plains = [torch.optim.SGD(reference.parameters(), lr=lr) for lr in (0.1, 0.2)]
    for step in range(4):
        for optimizer, plain in zip(optimizers, plains):
            optimizer.zero_grad()
            plain.zero_grad()
            loss_of(model, batch(hvd.rank(), step)).backward()
            mean_loss(reference, step).backward()
            near(grads(model), grads(reference))
            optimizer.step()
            plain.step()
    same_weights(model, reference)


def no_gradient_on_any_rank():
    """p.grad stays None, so that weight decay leaves the parameter alone; zeros where another rank has one."""
    for kwargs in ({}, {'groups': 1}, {'gradient_as_bucket_view': True}):
        model, reference = Heads(), Heads()
        optimizer = wrap(model, sgd(model.parameters(), weight_decay=0.1), **kwargs)
        plain = sgd(reference.parameters(), weight_decay=0.1)
        for step in range(3):
            optimizer.zero_grad(set_to_none=True)
            plain.zero_grad(set_to_none=True)
            head = 0 if step < 2 else hvd.rank()
            model.heads[head](torch.tanh(model.trunk(batch(hvd.rank(), step)))).pow(2).mean().backward()
            losses = [reference.heads[0 if step < 2 else rank](torch.tanh(reference.trunk(batch(rank, step)))).pow(2).mean()
                      for rank in range(hvd.size())]
            (sum(losses) / hvd.size()).backward()
            if step < 2:
                near(grads(model), grads(reference), 'before step()')
                for each in (model, reference):
                    torch.nn.utils.clip_grad_norm_(each.parameters(), 0.01)
            optimizer.step()
            plain.step()
            near(grads(model), grads(reference), 'after step()')
        same_weights(model, reference)


def unfrozen_and_frozen():
    for before_zero_grad in (True, False):
        model, reference = make_model(), make_model()
        for each in (model, reference):
            each[0].requires_grad_(False)
        optimizer, plain = wrap(model), sgd(reference.parameters())
        for step in range(5):
            def change():
                for each in (model, reference):
                    each[0].requires_grad_(step in (1, 2, 4))

            if before_zero_grad:
                change()
            optimizer.zero_grad(set_to_none=True)
            plain.zero_grad(set_to_none=True)
            if not before_zero_grad:
                change()
            loss_of(model, batch(hvd.rank(), step)).backward()
            mean_loss(reference, step).backward()
            near(grads(model), grads(reference))
            for each in (model, reference):
                torch.nn.utils.clip_grad_norm_(each.parameters(), 0.01)
            optimizer.step()
            plain.step()
        same_weights(model, reference)


def line_search():
    """All ranks have to see the same loss to come to the same steps."""
    model, reference = make_model(), make_model()
    optimizer = wrap(model, torch.optim.LBFGS(model.parameters(), line_search_fn='strong_wolfe', max_iter=6))
    plain = torch.optim.LBFGS(reference.parameters(), line_search_fn='strong_wolfe', max_iter=6)
    for step in range(3):
        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, batch(hvd.rank(), step))
            loss.backward()
            return loss

        def plain_closure():
            plain.zero_grad()
            loss = mean_loss(reference, step)
            loss.backward()
            return loss

        mine, theirs = optimizer.step(closure), plain.step(plain_closure)
        assert abs(float(mine) - float(theirs)) < 1e-9, (mine, theirs)
    for p, q in zip(model.parameters(), reference.parameters()):
        assert torch.allclose(p, q, rtol=1e-6, atol=1e-8), (p, q)
    for value in (None, torch.ones(2), torch.ones((), dtype=torch.complex64), 'loss'):
        bad = hvd.DistributedOptimizer(torch.optim.LBFGS([torch.nn.Parameter(torch.ones(1))]))
        try:
            bad.step(lambda: value if hvd.rank() == 0 else torch.ones(()))
        except ValueError as error:
            assert 'closure' in str(error), error
        else:
            raise AssertionError('no error')


def closures():
    """Their values are the rank's own for any other optimizer, and may be anything."""
    model, reference = make_model(), make_model()
    optimizer, plain = wrap(model), sgd(reference.parameters())
    for step in range(3):
        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, batch(hvd.rank(), step))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            return None if hvd.rank() == 0 else loss

        assert (optimizer.step(closure) is None) == (hvd.rank() == 0)
        plain.zero_grad()
        mean_loss(reference, step).backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
        plain.step()
    same_weights(model, reference)


def ranks_with_other_parameters():
    first, second = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
    names = ['a', 'b'] if hvd.rank() == 0 else ['a', 'c']
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first, second], lr=1.0), named_parameters=zip(names, (first, second)),
                                         groups=[[first, second]])
    try:
        (first + second).sum().backward()
    except hvd.HorovodInternalError as error:
        assert ', '.join(names) in str(error), error
    else:
        raise AssertionError('no error')


CASES = (clip_by_norm, clip_by_value, noise, groups_and_buckets, one_exchange_a_step, other_operations, amp,
         heads_that_depend_on_the_rank, what_is_not_combined_is_guarded, no_batch, another_call_before_backward, a_call_of_the_last_step_in_another_order, two_backwards,
         several_passes, autograd_alone, double_backward, retained_graph, reentrant_checkpointing, sync_batch_norm, sparse,
         several_sparse_dimensions, process_sets, adasum, joined, a_batch_that_all_skip, adversaries, two_optimizers_on_one_loss,
         other_models_on_other_ranks, two_wrappers_over_one_parameter, no_gradient_on_any_rank, unfrozen_and_frozen, line_search,
         closures, ranks_with_other_parameters, a_batch_that_one_skips)

torch.set_num_threads(1)
hvd.init()
ALONE = [hvd.ProcessSet([rank]) for rank in range(hvd.size())]
if not sys.argv[1:] or 'process_sets' in sys.argv[1:]:
    hvd.shutdown()
    hvd.init(process_sets=ALONE)
for case in CASES:
    if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
        print(case.__name__, flush=True)
        case()
        hvd.barrier()
print('ok', flush=True)
