"""Gradients through Min, Max and Product: those of one process that has the tensors of all ranks, and the sum of all losses."""

import torch

import horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()


def reduced(stacked, op):
    if op == hvd.Product:
        return stacked.prod(0)
    return stacked.amax(0) if op == hvd.Max else stacked.amin(0)


def brought(of_rank, dtype):
    """With one extreme, ties, zeros of one rank and of two, and negative numbers."""
    rows = [[1.0, 3.0, 2.0], [2.0, 3.0, -1.0], [-4.0, -4.0, -4.0], [0.0, 2.0, 3.0], [0.0, 0.0, 5.0], [0.5, -2.0, 4.0]]
    return torch.tensor([row[of_rank % 3] for row in rows], dtype=dtype)


def weights(of_rank, dtype):
    return torch.arange(1, 7, dtype=dtype) * (of_rank + 1)


def check(calls, dtype, tolerance):
    for op in (hvd.Max, hvd.Min, hvd.Product):
        for before, after in ((1.0, 1.0), (2.0, 0.5), (-1.5, 3.0)):
            everything = torch.stack([brought(r, torch.float64) for r in range(size)]).requires_grad_()
            result = reduced(everything * before, op) * after
            sum((result * weights(r, torch.float64)).sum() for r in range(size)).backward()
            mine = brought(rank, dtype).requires_grad_()
            for got in calls(mine, op, before, after):
                assert torch.allclose(got.double(), result, rtol=tolerance), (op, before, got, result)
                mine.grad = None
                (got * weights(rank, dtype)).sum().backward(retain_graph=True)
                want = everything.grad[rank]
                assert torch.allclose(mine.grad.double(), want, rtol=tolerance, atol=tolerance), (op, before, mine.grad, want)


def one(mine, op, before, after):
    return [hvd.allreduce(mine, op=op, prescale_factor=before, postscale_factor=after)]


def group(mine, op, before, after):
    return hvd.grouped_allreduce([mine, mine * 1], op=op, prescale_factor=before, postscale_factor=after)


for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
    check(one, dtype, tolerance)
    check(group, dtype, tolerance)

x = torch.ones(3, requires_grad=True)
for op in (hvd.Max, hvd.Product):
    gradient, = torch.autograd.grad(hvd.allreduce(x * 1, op=op).sum(), x, create_graph=True)
    try:
        gradient.sum().backward()
    except RuntimeError as error:
        assert 'second derivative' in str(error), error
    else:
        raise SystemExit('a second derivative was computed')
# The sums are as they were: of a sum the sum, of an average the average.
for op, share in ((hvd.Sum, size), (hvd.Average, 1)):
    x.grad = None
    hvd.allreduce(x, op=op).sum().backward()
    assert (x.grad == share).all(), (op, x.grad)
print('ok', flush=True)
