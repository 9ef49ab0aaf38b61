"""Several optimizers in one process: parameters that are called alike do not get in each other's way."""

import gc
import time

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
size, rank = hvd.size(), hvd.rank()


def make_model(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4)).double()


def batch(r, step):
    torch.manual_seed(100 * step + r)
    return torch.randn(6, 4, dtype=torch.float64)


def alternating(named):
    """A generator and a discriminator: one backward() has gradients for both."""
    models = [make_model(1), make_model(2)]
    references = [make_model(1), make_model(2)]
    optimizers = [hvd.DistributedOptimizer(torch.optim.SGD(m.parameters(), lr=0.1),
                                           named_parameters=m.named_parameters() if named else None) for m in models]
    plain = [torch.optim.SGD(m.parameters(), lr=0.1) for m in references]
    for step in range(4):
        models[1](models[0](batch(rank, step))).pow(2).mean().backward()
        for o in optimizers[::-1] if step % 2 else optimizers:
            o.step()
            o.zero_grad()
        losses = [references[1](references[0](batch(r, step))).pow(2).mean() for r in range(size)]
        (sum(losses) / size).backward()
        for o in plain:
            o.step()
            o.zero_grad()
    for model, reference in zip(models, references):
        for p, q in zip(model.parameters(), reference.parameters()):
            assert torch.allclose(p, q, rtol=1e-9, atol=1e-12)


def shared_parameters():
    """One layer that two optimizers step in turn."""
    shared = torch.nn.Linear(4, 4).double()
    hvd.broadcast_parameters(shared.state_dict(), root_rank=0)
    heads = [make_model(3), make_model(4)]
    for head in heads:
        parameters = list(shared.parameters()) + list(head.parameters())
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=0.1))
        for step in range(2):
            optimizer.zero_grad()
            head(shared(batch(rank, step))).pow(2).mean().backward()
            optimizer.step()
        del optimizer
    everywhere = hvd.allgather_object([p.tolist() for p in shared.parameters()])
    assert everywhere == [everywhere[0]] * size


def wrapped_once_more_on_one_rank():
    """A rank that wraps its optimizer again, say after loading a checkpoint, still meets the others."""
    model = make_model(5)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    if rank == 0:
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(2):
        optimizer.zero_grad()
        model(batch(rank, step)).pow(2).mean().backward()
        optimizer.step()
    everywhere = hvd.allgather_object([p.tolist() for p in model.parameters()])
    assert everywhere == [everywhere[0]] * size


def next_optimizer(drop, wait_before):
    """A second optimizer for the same model. The first one has the same part in it on all ranks, whether or not the garbage collector
    has found it, and whatever ranks have waited for between the two."""
    model, reference = make_model(5), make_model(5)
    gc.disable()
    try:
        optimizer = None
        for phase in range(3):
            made, plain = [make_sgd(m, lr=0.1 + 0.1 * phase) for m in (model, reference)]
            if drop == 'before':
                optimizer = None
            made = hvd.DistributedOptimizer(made, named_parameters=model.named_parameters())
            if wait_before:
                time.sleep(0.1 if rank == phase % size else 0)
                hvd.barrier()  # in which some ranks wait
            optimizer, made = made, None
            optimizer.schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)  # which makes a cycle
            if rank == 0:
                gc.collect()
            for step in range(2):
                optimizer.zero_grad()
                plain.zero_grad()
                model(batch(rank, step)).pow(2).mean().backward()
                (sum(reference(batch(r, step)).pow(2).mean() for r in range(size)) / size).backward()
                optimizer.step()
                plain.step()
    finally:
        gc.enable()
    for p, expected in zip(model.parameters(), reference.parameters()):
        assert torch.allclose(p, expected), (p, expected)


def make_sgd(model, lr):
    return torch.optim.SGD(model.parameters(), lr=lr)


for part, arguments in ((alternating, (True,)), (alternating, (False,)), (shared_parameters, ()),
                        (wrapped_once_more_on_one_rank, ()), (next_optimizer, ('before', False)), (next_optimizer, ('before', True)),
                        (next_optimizer, ('after', False)), (next_optimizer, ('after', True))):
    print(part.__name__, *arguments, flush=True)
    part(*arguments)
    hvd.barrier()
    assert not hvd.mpi_ops._handle_map
print('ok', flush=True)
