"""Every element type that torch has, through every operation; each result is worked out again on each rank.

Numbers are 0 and 1 (and 2 where it makes a difference), so that every sum and product is exact in every type.
"""

import sys

import torch

import horovod.torch as hvd

TYPES = sys.argv[1].split(',')
ROWS = 12

hvd.init()
torch.set_num_threads(1)
rank, size = hvd.rank(), hvd.size()
assert ROWS % size == 0
first_row = rank * (ROWS // size)


def numbers(of_rank, rows=ROWS):
    """In float64, different on every rank, with no two rows of a rank alike in their places."""
    return ((torch.arange(rows * 3).reshape(rows, 3) * (of_rank + 1) + of_rank) % 3 == 0).double()


def cast(values, dtype):
    return values.float().to(dtype)


for name in TYPES:
    dtype = getattr(torch, name)
    everybody = [numbers(r) for r in range(size)]
    mine = cast(everybody[rank], dtype)
    stack = torch.stack(everybody)

    def same(what, result, values):
        assert result.dtype == dtype and result.shape == values.shape, (name, what, result.dtype, result.shape)
        assert torch.equal(result.float(), cast(values, dtype).float()), (name, what, result, values)

    reduced = {'sum': (hvd.Sum, stack.sum(0)), 'min': (hvd.Min, stack.amin(0)), 'max': (hvd.Max, stack.amax(0)),
               'product': (hvd.Product, stack.prod(0))}
    if dtype is torch.bool:  # true is true, however often
        reduced['sum'] = (hvd.Sum, stack.amax(0))
    for what, (op, values) in reduced.items():
        same(what, hvd.allreduce(mine, op=op), values)
        same(what + ' of a group', hvd.grouped_allreduce([mine, mine], op=op)[1], values)
    same('scattered', hvd.reducescatter(mine, op=hvd.Sum), reduced['sum'][1][first_row:first_row + ROWS // size])
    same('in place', hvd.allreduce_(mine.clone(), op=hvd.Max), reduced['max'][1])
    same('gathered', hvd.allgather(cast(numbers(rank, rank + 1), dtype)), torch.cat([numbers(r, r + 1) for r in range(size)]))
    for root in range(size):
        same('broadcast', hvd.broadcast(mine, root), everybody[root])
    splits = [r + 1 for r in range(size)]
    given = cast(numbers(rank, sum(splits)), dtype)
    got, rows = hvd.alltoall(given, splits=splits)
    first = sum(splits[:rank])
    same('all to all', got, torch.cat([numbers(r, sum(splits))[first:first + rank + 1] for r in range(size)]))
    assert list(rows) == [rank + 1] * size
print('types', len(TYPES), flush=True)
print('ok', flush=True)
