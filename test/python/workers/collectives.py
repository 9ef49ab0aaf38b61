"""allreduce and broadcast against numpy: all types, sizes, orders, in place and not."""

import random

import numpy as np
import torch

import horovod.torch as hvd

SIZES = [0, 1, 2, 7, 63, 64, 1000, 4097, 65536, 300001]
DTYPES = ['uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64']


def value_of(rank, size, dtype, seed):
    """The values that a rank contributes, as float64; whole numbers, so that every type holds sums of them exactly."""
    low = 0 if dtype == 'uint8' else -15
    return np.random.RandomState(1000 * seed + rank).randint(low, 16, size=size).astype(np.float64)


def tensor_of(rank, size, dtype, seed):
    return torch.from_numpy(value_of(rank, size, dtype, seed)).to(getattr(torch, dtype))


def check(result, expected, dtype, what):
    got = result.to(torch.float64).numpy()
    if dtype in ('float16', 'bfloat16'):
        good = np.allclose(got, expected, rtol=1e-2, atol=1e-2)
    else:
        good = np.array_equal(got, expected)
    assert good, (what, dtype, got[:8], expected[:8])


def expected_average(total, dtype):
    average = total / hvd.size()
    return np.trunc(average) if 'int' in dtype else average


def every_type_and_size():
    for seed, dtype in enumerate(DTYPES):
        for size in SIZES:
            mine = tensor_of(hvd.rank(), size, dtype, seed)
            untouched = mine.clone()
            total = sum(value_of(r, size, dtype, seed) for r in range(hvd.size()))
            what = 'size {}'.format(size)
            check(hvd.allreduce(mine, op=hvd.Sum), total, dtype, what)
            check(hvd.allreduce(mine), expected_average(total, dtype), dtype, what + ' average')
            assert torch.equal(mine, untouched)
            handle = hvd.allreduce_async_(mine, op=hvd.Sum, name='inplace')
            assert hvd.synchronize(handle) is mine
            check(mine, total, dtype, what + ' in place')
            for root in range(hvd.size()):
                sent = tensor_of(hvd.rank(), size, dtype, seed)
                check(hvd.broadcast(sent, root), value_of(root, size, dtype, seed), dtype, what + ' broadcast')
                assert torch.equal(sent, tensor_of(hvd.rank(), size, dtype, seed))
                assert hvd.broadcast_(sent, root) is sent
                check(sent, value_of(root, size, dtype, seed), dtype, what + ' broadcast in place')
    flags = torch.tensor([hvd.rank() == 1, True, False])
    assert hvd.broadcast(flags, 1).tolist() == [True, True, False]
    scalar = hvd.allreduce(torch.tensor(float(hvd.rank())), op=hvd.Sum)
    assert scalar.shape == () and float(scalar) == hvd.size() * (hvd.size() - 1) / 2
    cube = hvd.allreduce(torch.ones(2, 3, 4), op=hvd.Sum)
    assert cube.shape == (2, 3, 4) and (cube == hvd.size()).all()


def scaling():
    ones = torch.full((10,), 1.0)
    assert (hvd.allreduce(ones, op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0) == 6 * hvd.size()).all()
    assert (hvd.allreduce(ones, op=hvd.Average, prescale_factor=0.25, postscale_factor=4.0) == 1).all()
    for factors in ({"prescale_factor": 0.0}, {"postscale_factor": 0.0}, {"prescale_factor": 0.0, "postscale_factor": 0.0}):
        assert (hvd.allreduce(ones, op=hvd.Sum, **factors) == 0).all()


def other_orders_on_other_ranks():
    """Named tensors may be submitted in any order."""
    shuffled = random.Random(hvd.rank())
    for round_ in range(20):
        names = list(range(40))
        shuffled.shuffle(names)
        handles = {}
        for i in names:
            size = [1, 100, 5000, 70000][i % 4]
            handles[i] = hvd.allreduce_async(torch.full((size,), float(i * (hvd.rank() + 1))), op=hvd.Sum,
                                             name='round{}.{}'.format(round_, i))
        shuffled.shuffle(names)
        factor = hvd.size() * (hvd.size() + 1) / 2
        for i in names:
            assert (hvd.synchronize(handles[i]) == i * factor).all(), i


def poll_ends():
    handle = hvd.allreduce_async(torch.ones(1000), op=hvd.Sum, name='polled')
    while not hvd.poll(handle):
        pass
    assert (hvd.synchronize(handle) == hvd.size()).all()


def same_bits_everywhere():
    torch.manual_seed(hvd.rank())
    for size in (3, 1000, 200000):
        result = hvd.allreduce(torch.randn(size), name='bits')
        root = hvd.broadcast(result, 0, name='bits')
        assert torch.equal(root, result)


def gradients():
    x = torch.full((3,), float(hvd.rank()), requires_grad=True)
    y = hvd.allreduce(x, op=hvd.Sum)
    y.backward(torch.full((3,), float(hvd.rank() + 1)))
    assert (x.grad == hvd.size() * (hvd.size() + 1) / 2).all(), x.grad
    x.grad = None
    hvd.allreduce(x).backward(torch.full((3,), float(hvd.rank() + 1)))
    assert (x.grad == (hvd.size() + 1) / 2).all(), x.grad
    x.grad = None
    y = hvd.broadcast(x, 1)
    assert (y == 1).all()
    y.backward(torch.full((3,), float(hvd.rank() + 1)))
    assert (x.grad == ((hvd.size() + 1) / 2 if hvd.rank() == 1 else 0)).all(), x.grad


hvd.init()
torch.set_num_threads(1)
for part in (every_type_and_size, scaling, other_orders_on_other_ranks, poll_ends, same_bits_everywhere, gradients):
    part()
    hvd.barrier()
print('ok', flush=True)
