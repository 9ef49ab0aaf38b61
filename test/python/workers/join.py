"""Ranks that run out of data: join lets the others go on.

    join.py PART
"""

import os
import sys
import time

import torch

import horovod.torch as hvd

hvd.init()
size, rank = hvd.size(), hvd.rank()
torch.set_num_threads(1)
# The divisor of an average once ranks have joined.
of_active = os.environ.get('HOROVOD_JOIN_AVERAGE') == 'active'


def same_on_all(value):
    found = hvd.allgather_object(value)
    assert found == [value] * size, found


def neutral_elements():
    """Rank r takes part in r + 1 rounds: combined are the inputs of those that are left, and zeros in an average."""
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.float16):
        for round_ in range(rank + 1):
            left = range(round_, size)  # the ranks that take part
            mine = torch.full((5,), 3 + rank, dtype=dtype)
            values = torch.tensor([3.0 + r for r in left])
            name = 'join.{}.{}'.format(dtype, round_)
            assert hvd.allreduce(mine, op=hvd.Sum, name=name + '.sum')[0] == values.sum()
            assert hvd.allreduce(mine, op=hvd.Min, name=name + '.min')[0] == values.min()
            assert hvd.allreduce(mine, op=hvd.Max, name=name + '.max')[0] == values.max()
            small = torch.full((5,), 1 + (rank + 1 == size), dtype=dtype)
            assert hvd.allreduce(small, op=hvd.Product, name=name + '.product')[0] == 2
            average = hvd.allreduce(mine, name=name + '.average')[0]
            want = values.sum() / (len(left) if of_active else size)
            want = want if dtype.is_floating_point else want.trunc()
            assert abs(float(average) - float(want)) <= 1e-2 * (dtype == torch.float16) + 1e-6, (average, want)
            one, two = hvd.grouped_allreduce([mine, mine], op=hvd.Sum, name=name + '.group')
            assert one[0] == two[0] == values.sum()
            large = hvd.allreduce(torch.full((200000,), 1.0), op=hvd.Sum, name=name + '.large')
            assert (large == len(left)).all()
        last = hvd.join()
        assert 0 <= last < size
        same_on_all(last)


def other_collectives_fail():
    """An operation that a joined rank cannot join fails on the ranks that ask for it, and names who has joined."""
    if rank != 0:
        hvd.allreduce(torch.ones(1), name='before')  # rank 0 has joined by then
        for what, call in (('allgather', lambda: hvd.allgather(torch.ones(2), name='g')),
                           ('broadcast', lambda: hvd.broadcast(torch.ones(2), 1, name='b')),
                           ('alltoall', lambda: hvd.alltoall(torch.ones(2 * size), name='a')),
                           ('reducescatter', lambda: hvd.reducescatter(torch.ones(size), name='r'))):
            try:
                call()
            except hvd.HorovodInternalError as error:
                assert 'rank 0' in str(error) and 'join' in str(error), (what, error)
            else:
                raise SystemExit('{} went on without rank 0'.format(what))
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, name='goes on') == size - 1
    hvd.join()
    assert hvd.allgather(torch.tensor([rank])).tolist() == list(range(size))


def join_of_a_rank_that_is_early():
    last = hvd.join() if rank else late_join()
    assert last == 0, last  # rank 0 came last, by far


def late_join():
    time.sleep(0.3)
    return hvd.join()


def training():
    """Rank r has 10 + r batches."""
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 1).double()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                         named_parameters=model.named_parameters())
    reference = torch.nn.Linear(3, 1).double()
    reference.load_state_dict(model.state_dict())

    def batch(step, r):
        torch.manual_seed(1000 * step + r)
        return torch.randn(4, 3, dtype=torch.float64)

    for epoch in range(2):
        for step in range(10 + rank):
            optimizer.zero_grad()
            model(batch(step, rank)).pow(2).mean().backward()
            optimizer.step()
        last = hvd.join()
        same_on_all(last)
        hvd.broadcast_parameters(model.state_dict(), root_rank=size - 1)  # it took the last steps alone
        for step in range(10 + size - 1):
            left = [r for r in range(size) if step < 10 + r]
            sums = [torch.zeros_like(p) for p in reference.parameters()]
            for r in left:
                loss = reference(batch(step, r)).pow(2).mean()
                for s, g in zip(sums, torch.autograd.grad(loss, list(reference.parameters()))):
                    s += g / (len(left) if of_active else size)
            with torch.no_grad():
                for p, s in zip(reference.parameters(), sums):
                    p -= 0.1 * s
        for p, q in zip(model.parameters(), reference.parameters()):
            assert torch.allclose(p, q, rtol=1e-9, atol=1e-12), (p, q)


{'neutral': neutral_elements, 'others': other_collectives_fail, 'last': join_of_a_rank_that_is_early,
 'training': training}[sys.argv[1]]()
hvd.barrier()
print('ok', flush=True)
