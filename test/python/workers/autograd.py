"""Gradients through the collectives, by the rules that scripts rely on."""

import torch

import horovod.torch as hvd

hvd.init()
size, rank = hvd.size(), hvd.rank()
even = None
if size > 2:
    even = hvd.ProcessSet(range(0, size, 2))
    hvd.init(process_sets=[even])


def gradient(make, *shape):
    """d(sum(make(x) * w))/dx, where w is different on each rank."""
    x = torch.full(shape, float(rank + 1), dtype=torch.float64, requires_grad=True)
    y = make(x)
    outputs = y if isinstance(y, (list, tuple)) else [y]
    loss = sum((output * float(rank + 1)).sum() for output in outputs)
    loss.backward()
    return x.grad


def close(got, want):
    want = torch.as_tensor(want, dtype=torch.float64).expand_as(got)
    assert torch.allclose(got, want, rtol=1e-12), (got, want)


for process_set in [hvd.global_process_set] + ([even] if even is not None else []):
    if not process_set.included():
        continue
    ranks = process_set.ranks
    n = len(ranks)
    weights = [r + 1.0 for r in ranks]
    mean, total = sum(weights) / n, sum(weights)
    index = process_set.rank()
    s = {'process_set': process_set}

    close(gradient(lambda x: hvd.allreduce(x, **s), 4), mean)
    close(gradient(lambda x: hvd.allreduce(x, op=hvd.Sum, **s), 4), total)
    close(gradient(lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0, **s), 4),
          6 * total)
    close(gradient(lambda x: hvd.grouped_allreduce([x, 2 * x], op=hvd.Sum, **s), 3), 3 * total)
    close(gradient(lambda x: hvd.grouped_allreduce([x, 2 * x], **s), 3), 3 * mean)

    close(gradient(lambda x: hvd.allgather(x, **s), index + 1, 2), mean)
    close(gradient(lambda x: hvd.grouped_allgather([x, x], **s), index + 2, 2), 2 * mean)

    for root in ranks:
        close(gradient(lambda x: hvd.broadcast(x, root, **s), 5), mean if rank == root else 0.0)

    # Rows go to their receiver, whose weight comes back.
    rows = torch.tensor([w for w in weights for _ in range(2)], dtype=torch.float64).unsqueeze(1).expand(2 * n, 3)
    close(gradient(lambda x: hvd.alltoall(x, **s), 2 * n, 3), rows)
    splits = [i + 1 for i in range(n)]
    rows = [w for i, w in enumerate(weights) for _ in range(i + 1)]
    close(gradient(lambda x: hvd.alltoall(x, splits=splits, **s)[0], sum(splits)), rows)
    close(gradient(lambda x: hvd.alltoall(x, splits=splits, **s)[0], sum(splits) + 2), rows + [0.0, 0.0])

    # reducescatter: the weights of the receivers of the rows.
    each = torch.tensor([w for i, w in enumerate(weights) for _ in range(2 if i == 0 else 1)], dtype=torch.float64)
    close(gradient(lambda x: hvd.reducescatter(x, **s), n + 1), each)
    close(gradient(lambda x: hvd.reducescatter(x, op=hvd.Sum, **s), n + 1), each * n)
    close(gradient(lambda x: hvd.reducescatter(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=5.0, **s), n + 1),
          each * n * 10)
    close(gradient(lambda x: hvd.grouped_reducescatter([x, 3 * x], **s), n + 1), each * 4)

    # Compression outside of the collective; received splits are no function of the input.
    close(gradient(lambda x: hvd.allreduce(x, compression=hvd.Compression.fp16, **s), 4), mean)
    x = torch.ones(n, requires_grad=True)
    received, received_splits = hvd.alltoall(x, splits=[1] * n, **s)
    assert received.requires_grad and not received_splits.requires_grad
    assert received_splits.dtype == torch.int32
    received.sum().backward()
    # In place and asynchronous forms are not recorded.
    assert not hvd.synchronize(hvd.allreduce_async(x.detach() * 2, **s)).requires_grad

hvd.barrier()
assert not hvd.mpi_ops._handle_map
print('ok', flush=True)
