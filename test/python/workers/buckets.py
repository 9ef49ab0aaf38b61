"""Gradients that are views of buckets: layouts that all ranks have, and those that they do not."""

import warnings

import torch

import horovod.torch as hvd
from horovod.torch import gradient_buckets, optimizer

warnings.filterwarnings('ignore', message='Using backward.. with create_graph')
hvd.init()
torch.set_num_threads(1)
size, rank = hvd.size(), hvd.rank()
gradient_buckets.FIRST_BYTES, gradient_buckets.BUCKET_BYTES = 200, 600  # several for a small model


def make_model(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 9), torch.nn.Linear(9, 3)).double()


def batch(r, step):
    torch.manual_seed(100 * step + r)
    return torch.randn(6, 5, dtype=torch.float64)


def wrap(model, **kwargs):
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), gradient_as_bucket_view=True,
                                    named_parameters=model.named_parameters(), **kwargs)


def follows_one_process(change=lambda model: None):
    """Ten steps, in the middle of which a layer is changed, some without a layer on one rank, one with a gradient that is
    part of a graph."""
    model, whole = make_model(), make_model()
    optimizer, alone = wrap(model), torch.optim.SGD(whole.parameters(), lr=0.1)
    for step in range(10):
        if step == 5:
            change(model), change(whole)
        optimizer.zero_grad(set_to_none=step % 3 == 0)
        alone.zero_grad()

        def loss_of(net, r):
            part = net[0] if step in (4, 8) and r == 0 else net
            return part(batch(r, step).to(net[0].weight.dtype)).pow(2).mean()

        loss_of(model, rank).backward(create_graph=step == 3)
        sum(loss_of(whole, r) for r in range(size)).div(size).backward()
        optimizer.step()
        alone.step()
        for p, q in zip(model.parameters(), whole.parameters()):
            tolerance = 1e-12 if p.dtype == torch.float64 else 1e-5
            assert torch.allclose(p.grad, q.grad, rtol=tolerance, atol=tolerance), step
        if step == 3:
            for p in model.parameters():
                p.grad = None  # which holds its graph


def refuses(make, what):
    """A layout that rank 0 has and the others do not, by a sentence on all of them."""
    optimizer, model = make()
    try:
        model(batch(rank, 0)).pow(2).mean().backward()
        raise SystemExit('ranks have other buckets, and nobody said so')
    except hvd.HorovodInternalError as error:
        assert what in str(error), error


def other_order():
    model = make_model()
    parameters = list(model.parameters())
    swapped = parameters if rank else [parameters[1], parameters[0]] + parameters[2:]
    names = [(str(i), p) for i, p in enumerate(swapped)]
    return hvd.DistributedOptimizer(torch.optim.SGD(swapped, lr=0.1), names, gradient_as_bucket_view=True), model


def other_strides():
    order = torch.contiguous_format if rank else torch.channels_last
    weight = torch.nn.Parameter(torch.ones(4, 5, 2, 2, dtype=torch.float64).to(memory_format=order))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.1), gradient_as_bucket_view=True)
    return optimizer, lambda x: weight * x.sum()


def of_one_rank():
    """After steps that all ranks made: one of them has converted a layer."""
    model = make_model()
    optimizer = wrap(model)
    for step in range(2):
        optimizer.zero_grad()
        model(batch(rank, step)).pow(2).mean().backward()
        optimizer.step()
    optimizer.zero_grad()
    if rank == 0:
        model[3].float()

    def forward(x):
        hidden = model[2](model[1](model[0](x)))
        return model[3](hidden.to(model[3].weight.dtype))

    return optimizer, forward


follows_one_process()
follows_one_process(lambda model: model.float())
follows_one_process(lambda model: model.zero_grad())
if size > 1:
    refuses(other_strides, 'shape')
    refuses(other_order, 'disagree about what is in it: rank 0 has [')
    refuses(of_one_rank, 'ranks disagree about')
assert not hvd.mpi_ops._handle_map
# What was abandoned is freed in the order of the GPU's streams.
hvd.barrier()
optimizer._release_abandoned()
assert not optimizer._abandoned and not hvd.mpi_ops._operations._streams
# Nothing is left of it: the next ones have the names.
follows_one_process()
hvd.barrier()
print('ok', flush=True)
