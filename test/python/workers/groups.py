"""Grouped collectives are all or nothing, and optimizers that exchange gradients in groups."""

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
size, rank = hvd.size(), hvd.rank()


def all_or_nothing():
    """A group that is refused, or about which ranks disagree, leaves nothing behind: each of its names is usable."""
    waiting = hvd.grouped_allreduce_async([torch.ones(2)], op=hvd.Sum, name='busy') if rank == 0 else None
    if rank == 0:
        try:
            hvd.grouped_allreduce_async([torch.ones(2), torch.ones(3)], op=hvd.Sum, name='busy')
            raise SystemExit('a name in flight was accepted')
        except ValueError as error:
            assert 'busy' in str(error), error
    hvd.broadcast_object('go')  # the others bring theirs when rank 0 has tried
    for bad in ([torch.ones(2), torch.ones(3, 2).t()], [torch.ones(2), torch.ones(2, dtype=torch.complex64)],
                [torch.ones(2), 5], []):
        try:
            hvd.grouped_allreduce_async(bad, op=hvd.Sum, name='group')
            raise SystemExit('{} was accepted'.format(bad))
        except ValueError:
            pass
    handle = waiting or hvd.grouped_allreduce_async([torch.ones(2)], op=hvd.Sum, name='busy')
    assert (hvd.synchronize(handle)[0] == size).all()
    odd = rank == size - 1
    disagreements = {
        'shape of a member': [torch.ones(2), torch.ones(4 if odd else 3)],
        'type of a member': [torch.ones(2), torch.ones(3, dtype=torch.float64 if odd else torch.float32)],
        'number of members': [torch.ones(2)] * (3 if odd else 2),
    }
    for what, tensors in disagreements.items():
        try:
            hvd.grouped_allreduce(tensors, op=hvd.Sum, name='group')
            raise SystemExit('{}: no error'.format(what))
        except hvd.HorovodInternalError as error:
            assert 'group' in str(error) and '\n' not in str(error), error
        results = hvd.grouped_allreduce([torch.ones(2), torch.ones(3)], op=hvd.Sum, name='group')
        assert [r.tolist() for r in results] == [[size] * 2, [size] * 3], what


def many_members():
    tensors = [torch.full((i % 7,), float(i)) for i in range(3000)]
    for result, tensor in zip(hvd.grouped_allreduce(tensors, op=hvd.Sum, name='many'), tensors):
        assert torch.equal(result, tensor * size)
    large = [torch.full((300000,), float(i)) for i in range(5)]
    assert hvd.grouped_allreduce_(large, name='large')[4] is large[4]
    assert all((t == i).all() for i, t in enumerate(large))


def batch(r, step):
    torch.manual_seed(100 * step + r)
    return torch.randn(6, 5, dtype=torch.float64)


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3)).double()


def optimizers():
    for make_groups in (lambda m: None, lambda m: 1, lambda m: 2, lambda m: 100, lambda m: [list(m.parameters())],
                        lambda m: [[m[0].weight, m[2].bias], [m[0].bias]]):
        model = make_model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), groups=make_groups(model),
                                             named_parameters=model.named_parameters(), backward_passes_per_step=2)
        for step in range(3):
            want = [torch.zeros_like(p) for p in model.parameters()]
            for r in range(size):
                for i in range(2):
                    # The last step leaves out a layer on rank 0: its groups go with zeros.
                    part = model[0] if step == 2 and r == 0 else model
                    grads = torch.autograd.grad(part(batch(r, 10 * step + i)).pow(2).mean(), list(model.parameters()),
                                                allow_unused=True)
                    for w, g in zip(want, grads):
                        w += 0 if g is None else g / size
            optimizer.zero_grad()
            for i in range(2):
                part = model[0] if step == 2 and rank == 0 else model
                part(batch(rank, 10 * step + i)).pow(2).mean().backward()
            optimizer.synchronize()
            for p, w in zip(model.parameters(), want):
                assert torch.allclose(p.grad, w, rtol=1e-12, atol=1e-12), (make_groups(model), step)
            with optimizer.skip_synchronize():
                optimizer.step()
        assert not hvd.mpi_ops._handle_map


for part in (all_or_nothing, many_members, optimizers):
    part()
    hvd.barrier()
print('ok', flush=True)
