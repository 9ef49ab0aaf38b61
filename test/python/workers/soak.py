"""Training with fresh tensors in each step, unnamed, under a name, and with the step in the name. Memory, descriptors and threads
of the process must not grow once all has been seen often enough.

    soak.py STEPS
"""

import gc
import os
import sys

import torch
from torch import nn

import horovod.torch as hvd

KIB = 1024
WARM = 0.4  # of the steps: the runtime keeps what it knows of the last 4,096 names
SAMPLES = 10  # of memory, before and at the end
ALLOWED = 3 * 1024  # KiB that the heap may differ by; a leak of 1 KiB a step shows


def memory():
    """KiB of this process's own memory and of what it shares with other ranks, without mapped files."""
    with open('/proc/self/status') as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(('RssAnon', 'RssShmem')))


def descriptors():
    return len(os.listdir('/proc/self/fd'))


def threads():
    return len(os.listdir('/proc/self/task'))


def step(number, net, optimizer):
    rank, size = hvd.rank(), hvd.size()

    def fresh(count, value=1.0):
        return torch.full((count,), value + rank)

    # Sizes that come again seldom, so that blocks of memory are split and merged.
    odd = 3 + number * 7919 % 4999
    whole = size * 1.0 + size * (size - 1) / 2
    optimizer.zero_grad()
    loss = net(torch.full((4, 16), 0.01 * (number % 7 + rank))).pow(2).mean()
    loss.backward()
    optimizer.step()
    hvd.allreduce(loss.detach())
    assert hvd.allreduce(fresh(100 * KIB), op=hvd.Sum)[5] == whole
    assert hvd.allreduce(fresh(odd), op=hvd.Sum)[-1] == whole
    assert hvd.allreduce(fresh(odd), op=hvd.Sum, name='named')[-1] == whole
    handles = [hvd.allreduce_async(fresh(odd + part), op=hvd.Sum, name='step {} part {}'.format(number, part)) for part in range(3)]
    assert all(hvd.synchronize(handle)[0] == whole for handle in reversed(handles))
    for result in hvd.grouped_allreduce([fresh(20), fresh(odd)], op=hvd.Sum):
        assert result[0] == whole
    assert hvd.broadcast(fresh(odd), root_rank=size - 1, name='broadcast {}'.format(number))[0] == size
    if number % 4 == 0:
        assert len(hvd.allgather(fresh(odd % 50 + rank + 1))) == size * (odd % 50 + 1) + size * (size - 1) // 2
        assert len(hvd.allgather(fresh(9), name='gather {}'.format(number))) == 9 * size
        assert len(hvd.alltoall(fresh(size * 11))) == size * 11
        assert len(hvd.reducescatter(fresh(size * 13), op=hvd.Sum)) == 13
        assert hvd.allgather_object({'step': number}) == [{'step': number}] * size


def main():
    steps = int(sys.argv[1])
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.01), named_parameters=net.named_parameters())
    seen = {'memory': [], 'descriptors': [], 'threads': []}
    for number in range(steps):
        step(number, net, optimizer)
        if number >= WARM * steps and number % max(1, steps // 100) == 0:
            gc.collect()
            for name, value in (('memory', memory()), ('descriptors', descriptors()), ('threads', threads())):
                seen[name].append(value)
    hvd.barrier()
    early, late = min(seen['memory'][:SAMPLES]), min(seen['memory'][-SAMPLES:])
    assert late - early < ALLOWED, 'memory grew by {} KiB: {}'.format(late - early, seen['memory'])
    for name in ('descriptors', 'threads'):
        assert max(seen[name][-SAMPLES:]) <= max(seen[name][:SAMPLES]), '{} grew: {}'.format(name, seen[name])
    print('ok', flush=True)
    hvd.shutdown()


if __name__ == '__main__':
    main()
