"""DistributedOptimizer in a job, against gradients computed here for every rank.

    optimizer.py [buckets]      gradients as views of buckets
"""

import random
import sys
import time

import torch

import horovod.torch as hvd
from horovod.torch import gradient_memory, parameters


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3)).double()


def batch(rank, step=0):
    torch.manual_seed(100 * step + rank)
    return torch.randn(6, 5, dtype=torch.float64)


def loss_of(model, x):
    return model(x).pow(2).mean()


def mean_gradients(model, step=0, passes=1, factor=1.0):
    """The average over all ranks of what each computes."""
    sums = [torch.zeros_like(p) for p in model.parameters()]
    for rank in range(hvd.size()):
        for i in range(passes):
            for s, g in zip(sums, torch.autograd.grad(loss_of(model, batch(rank, step + i)), model.parameters())):
                s += g
    return [s * factor / hvd.size() for s in sums]


def check(model, expected, tolerance=1e-12):
    for p, g in zip(model.parameters(), expected):
        assert torch.allclose(p.grad, g, rtol=tolerance, atol=tolerance), (p.grad, g)


BUCKETS = sys.argv[1:] == ['buckets']


def wrap(model, **kwargs):
    kwargs.setdefault('gradient_as_bucket_view', BUCKETS)
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                                    named_parameters=model.named_parameters(), **kwargs)


def averages():
    for set_to_none in (True, False):
        model, reference = make_model(), make_model()
        optimizer = wrap(model)
        for step in range(4):
            expected = mean_gradients(model, step)
            optimizer.zero_grad(set_to_none=set_to_none)
            loss_of(model, batch(hvd.rank(), step)).backward()
            optimizer.synchronize()
            check(model, expected)
            with optimizer.skip_synchronize():
                optimizer.step()


def sums_and_predivide():
    model = make_model()
    for kwargs, factor in (({'op': hvd.Sum}, hvd.size()), ({'gradient_predivide_factor': 2.0}, 1.0)):
        optimizer = wrap(model, **kwargs)
        optimizer.zero_grad()
        loss_of(model, batch(hvd.rank())).backward()
        optimizer.synchronize()
        check(model, mean_gradients(model, factor=factor))
        del optimizer


def passes():
    model = make_model()
    optimizer = wrap(model, backward_passes_per_step=3)
    for step in range(3):
        expected = mean_gradients(model, 10 * step, passes=3)
        optimizer.zero_grad()
        for i in range(3):
            loss_of(model, batch(hvd.rank(), 10 * step + i)).backward()
        optimizer.synchronize()
        check(model, expected)
        with optimizer.skip_synchronize():
            optimizer.step()


def fp16():
    model = make_model()
    optimizer = wrap(model, compression=hvd.Compression.fp16)
    loss_of(model, batch(hvd.rank())).backward()
    optimizer.synchronize()
    check(model, mean_gradients(model), 1e-2)


def other_layers_on_other_ranks():
    """A rank that does not use a layer sends zeros for it."""
    model = make_model()
    optimizer = wrap(model)
    if hvd.rank() == 0:
        model[0](batch(0)).sum().backward()
    else:
        loss_of(model, batch(hvd.rank())).backward()
    optimizer.synchronize()
    rest = [torch.zeros_like(p) for p in model.parameters()]
    model.zero_grad()
    for rank in range(1, hvd.size()):
        for r, g in zip(rest, torch.autograd.grad(loss_of(model, batch(rank)), model.parameters())):
            r += g / hvd.size()
    del optimizer
    model = make_model()
    optimizer = wrap(model)
    if hvd.rank() == 0:
        model[0](batch(0)).sum().backward()
    else:
        loss_of(model, batch(hvd.rank())).backward()
    optimizer.synchronize()
    check(model[2], rest[2:])


def frozen_on_the_way():
    model = make_model()
    optimizer = wrap(model)
    for frozen in (False, True, False):
        for p in model[0].parameters():
            p.requires_grad = not frozen
        optimizer.zero_grad()
        loss_of(model, batch(hvd.rank())).backward()
        optimizer.step()
    first = hvd.broadcast_object([p.tolist() for p in model.parameters()], root_rank=0)
    assert first == [p.tolist() for p in model.parameters()]


def closure():
    model = make_model()
    optimizer = wrap(model)

    def evaluate():
        optimizer.zero_grad()
        loss = loss_of(model, batch(hvd.rank()))
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(evaluate)
    first = hvd.broadcast_object([p.tolist() for p in model.parameters()], root_rank=0)
    assert first == [p.tolist() for p in model.parameters()]


def old_gradients():
    model = make_model()
    optimizer = wrap(model)
    kept = []
    for step in range(4):
        optimizer.zero_grad(set_to_none=True)
        expected = mean_gradients(model, step)[0]
        loss_of(model, batch(hvd.rank(), step)).backward()
        optimizer.step()
        kept.append((model[0].weight.grad, expected))
    for grad, expected in kept:
        assert torch.allclose(grad, expected, rtol=1e-12, atol=1e-12)


def sparse_as_dense():
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(6, 2, sparse=True)
    optimizer = wrap(embedding, sparse_as_dense=True)
    embedding(torch.tensor([hvd.rank()])).sum().backward()
    optimizer.step()
    grad = embedding.weight.grad.to_dense()
    for row in range(6):
        assert torch.allclose(grad[row], torch.full((2,), 1.0 / hvd.size() if row < hvd.size() else 0.0)), grad


def large():
    """Gradients large enough to be reduced slice by slice."""
    p = torch.nn.Parameter(torch.zeros(3000001))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p], lr=1.0), gradient_as_bucket_view=BUCKETS)
    for step in range(5):
        optimizer.zero_grad()
        (p * float(hvd.rank() + 1 + step)).sum().backward()
        optimizer.step()
        assert (p.grad == (hvd.size() + 1) / 2 + step).all()


def two_parameters(size=3, reverse=False):
    """The first has strides that need a copy."""
    two = [('b', torch.nn.Parameter(torch.zeros(4, 3).t())), ('a', torch.nn.Parameter(torch.zeros(size)))]
    two = two[::-1] if reverse else two
    return hvd.DistributedOptimizer(torch.optim.SGD([p for _, p in two], lr=1.0), named_parameters=two,
                                    gradient_as_bucket_view=BUCKETS), two


def other_models_on_other_ranks():
    """Two models whose parameters have the same names, of which each rank uses another one in its first step."""
    pairs = [two_parameters(), two_parameters()]
    for step in range(3):
        for optimizer, _ in pairs:
            optimizer.zero_grad(set_to_none=True)
        mine = (hvd.rank() + step) % 2
        sum([p.sum() * (10.0 ** mine) for _, p in pairs[mine][1]]).backward()
        for k, (optimizer, two) in enumerate(pairs):
            optimizer.step()
            share = sum([(rank + step) % 2 == k for rank in range(hvd.size())]) / hvd.size()
            for _, p in two:
                assert torch.allclose(p.grad, torch.full_like(p, share * 10.0 ** k)), (step, k, p.grad)


def gradients_that_disagree():
    """All ranks get the error, and the other gradient is exchanged."""
    optimizer, two = two_parameters(size=300000 + hvd.rank())
    for step in range(3):
        optimizer.zero_grad(set_to_none=True)
        try:
            sum([p.sum() for _, p in two]).backward()
        except hvd.mpi_ops.HorovodInternalError as error:
            assert 'a' in str(error), error
        else:
            raise AssertionError('no error')
        assert not optimizer._under_way


def whatever_the_ranks_do(seeds=range(12)):
    """Steps in which each rank uses some of the parameters, takes its time, and, where all are used by all, waits in an order of
    its own."""
    optimizers = [two_parameters(), two_parameters()]
    for seed in seeds:
        alike, alone = random.Random(seed), random.Random(1000 * seed + hvd.rank())
        all_used = alike.random() < 0.5
        used = [[[all_used or alike.random() < 0.6 for _ in two] for _, two in optimizers] for _ in range(hvd.size())]
        for (optimizer, two), mine in zip(optimizers, used[hvd.rank()]):
            optimizer.zero_grad(set_to_none=True)
            if any(mine):
                sum([p.sum() * (hvd.rank() + 1.0) for (_, p), use in zip(two, mine) if use]).backward()
        calls = [optimizers[0][0].step, optimizers[1][0].step, lambda: hvd.allreduce(torch.ones(2), name='metric')]
        (alone if all_used else alike).shuffle(calls)
        for call in calls:
            if alone.random() < 0.1:
                time.sleep(0.3)
            call()
        for k, (_, two) in enumerate(optimizers):
            for i, (_, p) in enumerate(two):
                users = [rank for rank in range(hvd.size()) if used[rank][k][i]]
                if not users:
                    assert p.grad is None
                    continue
                expected = sum([rank + 1.0 for rank in users]) / hvd.size()
                assert torch.allclose(p.grad, torch.full_like(p, expected)), (seed, k, i, p.grad, expected)


hvd.init()
torch.set_num_threads(1)
# Small gradients where they are, all in registered memory, and one by one. Those of GPUs are where they are. Buckets can be neither
# compressed nor kept.
ON_GPUS = not gradient_memory.pays_for_a_home(torch.empty(1 << 20))
WAYS = ((0, False),) if BUCKETS or ON_GPUS else ((gradient_memory.HOME_ABOVE, False), (0, False), (0, True))
for home_above, one_by_one in WAYS:
    gradient_memory.HOME_ABOVE = home_above
    if one_by_one:
        parameters.SMALL_BYTES = -1
    for part in (averages, sums_and_predivide, passes, fp16, other_layers_on_other_ranks, frozen_on_the_way, closure,
                 old_gradients, sparse_as_dense, large, other_models_on_other_ranks, gradients_that_disagree,
                 whatever_the_ranks_do):
        if BUCKETS and part in (fp16, old_gradients, gradients_that_disagree):
            continue
        part()
        hvd.barrier()
        assert not hvd.mpi_ops._handle_map, part
print('ok', flush=True)
