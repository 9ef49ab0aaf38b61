"""Averages of integers near the ends of their types: no sum on the way overflows, whatever the call and the size."""

import torch

import horovod.torch as hvd

TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
COUNTS = [1, 5, 64, 5000, 200003]  # for the express way, small messages, chunks and slices

hvd.init()
rank, size = hvd.rank(), hvd.size()


def truncated(number, divisor):
    quotient = abs(number) // divisor
    return quotient if number >= 0 else -quotient


def wrapped(number, dtype):
    info = torch.iinfo(dtype)
    return (number - info.min) % (info.max - info.min + 1) + info.min


def value(dtype, of_rank, kind):
    info = torch.iinfo(dtype)
    middle = (info.max + info.min) // 2
    return [info.max - of_rank % 2, info.min + of_rank % 3, info.max if of_rank % 2 else info.min,
            middle + info.max // 4 + of_rank, middle - info.max // 4 - of_rank, 3][kind]


def tensor(dtype, count, of_rank):
    return torch.tensor([value(dtype, of_rank, kind) for kind in range(6)], dtype=dtype).repeat(count // 6 + 1)[:count]


def average(dtype, count, scaled=lambda x: x, after=None, divisor=size):
    """Of all ranks, computed in Python's integers. `after`: postscale, by which a sum of doubles is multiplied."""
    results = []
    for kind in range(6):
        total = sum(scaled(value(dtype, r, kind)) for r in range(size))
        if after is None:
            results.append(wrapped(truncated(total, divisor), dtype))
        else:
            results.append(wrapped(int(float(total) * after / divisor), dtype))
    return torch.tensor(results, dtype=dtype).repeat(count // 6 + 1)[:count]


def check(got, expected, *what):
    assert torch.equal(got, expected), (what, got[:12].tolist(), expected[:12].tolist())


for dtype in TYPES:
    for count in COUNTS:
        mine, want = tensor(dtype, count, rank), average(dtype, count)
        what = '{} {}'.format(dtype, count)
        check(hvd.allreduce(mine), want, what)
        check(mine, tensor(dtype, count, rank), what, 'the input must not change')
        for _ in range(3):  # the later ones by what was kept of the first
            place = mine.clone()
            check(hvd.allreduce_(place, name='in place ' + what), want, what, 'in place')
        registered = hvd.allgather(mine)[:count].copy_(mine)  # memory that the other ranks reach
        check(hvd.allreduce_(registered), want, what, 'registered')
        for got in hvd.grouped_allreduce([mine, mine], name='group ' + what):
            check(got, want, what, 'group')
        rows = [count // size + (r < count % size) for r in range(size)]
        first = sum(rows[:rank])
        part = want[first:first + rows[rank]]
        check(hvd.reducescatter(mine, op=hvd.Average), part, what, 'reducescatter')
        for got in hvd.grouped_reducescatter([mine, mine], op=hvd.Average):
            check(got, part, what, 'grouped reducescatter')
        halved = average(dtype, count, lambda x: int(x * 0.5))
        check(hvd.allreduce(mine, prescale_factor=0.5), halved, what, 'prescale')
        check(hvd.allreduce(mine, postscale_factor=0.5), average(dtype, count, after=0.5), what, 'postscale')
        if dtype != torch.int64:  # as doubles
            both = average(dtype, count, lambda x: int(x * 2.0), after=0.25)
            check(hvd.allreduce(mine, prescale_factor=2.0, postscale_factor=0.25), both, what, 'both')
            check(hvd.allreduce(mine, op=hvd.Sum, prescale_factor=2.0),
                  average(dtype, count, lambda x: int(x * 2.0), divisor=1), what, 'a scaled sum wraps around')
            check(hvd.allreduce(mine, op=hvd.Sum, postscale_factor=0.5), average(dtype, count, after=0.5, divisor=1),
                  what, 'sum')
        check(hvd.allreduce(mine, op=hvd.Sum), average(dtype, count, divisor=1), what, 'a plain sum wraps around')

# 2**53 + 1 is no double.
check(hvd.allreduce(torch.tensor([2**62 + 1, -2**62 - 1, 2**53 + 1])), torch.tensor([2**62 + 1, -2**62 - 1, 2**53 + 1]))

if rank != 0 or size == 1:  # a rank that has joined brings zeros, and counts
    for dtype in TYPES:
        most = torch.iinfo(dtype).max
        got = hvd.allreduce(torch.full((7,), most, dtype=dtype), name='joined {}'.format(dtype))
        check(got, torch.full((7,), most * max(size - 1, 1) // size, dtype=dtype), dtype, 'joined')
hvd.join()
print('ok', flush=True)
