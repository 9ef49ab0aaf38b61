"""hvd.SyncBatchNorm over the ranks' batches, of other sizes each, beside torch's batch norm over one big batch."""

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
size, rank = hvd.size(), hvd.rank()
ROWS = [(r % 3) + 2 for r in range(size)]
ROWS[-1] = 0 if size > 2 else 3  # a rank without a batch
MINE = slice(sum(ROWS[:rank]), sum(ROWS[:rank + 1]))


def compare(shape, make, tolerance, dtype=torch.float64, **kwargs):
    torch.manual_seed(7)
    whole = (torch.randn(sum(ROWS), *shape) * 3 + 5).to(dtype)
    weights = torch.randn(sum(ROWS), *shape).to(dtype)
    reference = make(shape[0], **kwargs)
    ours = hvd.SyncBatchNorm(shape[0], **kwargs)
    if kwargs.get('affine', True):
        for p, q in zip(reference.parameters(), ours.parameters()):
            torch.nn.init.uniform_(p, 0.5, 2.0)
            with torch.no_grad():
                q.copy_(p)
    if dtype == torch.float64:
        reference, ours = reference.double(), ours.double()
    for _ in range(3):
        reference.zero_grad()
        ours.zero_grad()
        x, y = whole.clone().requires_grad_(), whole[MINE].clone().requires_grad_()
        want, got = reference(x), ours(y)
        assert got.dtype == want.dtype
        (want * weights).sum().backward()
        (got * weights[MINE]).sum().backward()
        for a, b in ((got, want[MINE]), (y.grad, x.grad[MINE])):
            assert torch.allclose(a, b, rtol=tolerance, atol=tolerance), (a - b).abs().max()
        for p, q in zip(ours.parameters(), reference.parameters()):  # each rank has its part of these gradients
            total = hvd.allreduce(p.grad, op=hvd.Sum)
            assert torch.allclose(total, q.grad, rtol=tolerance, atol=100 * tolerance), (total, q.grad)
        for p, q in zip(ours.buffers(), reference.buffers()):
            assert torch.allclose(p, q, rtol=tolerance, atol=tolerance), (p, q)
        whole = whole * 1.5 - 1
    ours.eval()
    reference.eval()
    assert torch.allclose(ours(whole), reference(whole), rtol=tolerance, atol=tolerance)


compare((3,), torch.nn.BatchNorm1d, 1e-9)
compare((4, 5), torch.nn.BatchNorm1d, 1e-9, momentum=None)
compare((3, 4, 2), torch.nn.BatchNorm2d, 1e-9, affine=False)
compare((2, 3, 2, 2), torch.nn.BatchNorm3d, 1e-9, track_running_stats=False)
compare((3, 4, 2), torch.nn.BatchNorm2d, 1e-4, dtype=torch.float32, eps=1e-3, momentum=0.3)

# Values far from zero: sums of squares would have no digits left.
x = torch.randn(4 if ROWS[rank] == 0 else ROWS[rank], 2) + 10000.0
got = hvd.SyncBatchNorm(2)(x)
everything = hvd.allgather(x)
want = (x - everything.double().mean(0)) / everything.double().var(0, unbiased=False).sqrt()
assert torch.allclose(got.double(), want, atol=1e-2), (got, want)

try:
    hvd.SyncBatchNorm(2)(torch.ones(1 if rank == 0 else 0, 2))
    raise SystemExit('one value for each channel was accepted')
except ValueError as error:
    assert 'more than one value' in str(error)
hvd.barrier()
print('ok', flush=True)
