"""Ranks of elastic.py.

    elastic_rank.py run           reduces without end in hvd.elastic.run
    elastic_rank.py distributed   the same with torch.distributed, whose processes are started again together
    elastic_rank.py commit        how long commits take, as JSON

The first says `ready PID` before it joins, the first two for each world that they are in

    world GENERATION RANK SIZE PID FIRST LAST OWN

FIRST is when the first allreduce there was done and verified, LAST when the last one before that was (0: none), in ns
of the wall clock; OWN is how many ns after the start of the process its imports were done.
"""
import ctypes
import json
import os
import sys
import time

COUNT = 16384  # 64 KiB of float32


def age():
    """ns since this process began, to a tick of 10 ms."""
    with open('/proc/self/stat') as file:
        ticks = int(file.read().rpartition(')')[2].split()[19])
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * 10**9 // os.sysconf('SC_CLK_TCK')


def check(total, size):
    if not bool((total == size).all()):
        sys.exit('WRONG: a sum of {} in a world of {}'.format(float(total[0]), size))


def say(generation, rank, size, last, own):
    now = time.time_ns()
    # In one piece: under torchrun all ranks write into one pipe.
    os.write(1, 'world {} {} {} {} {} {} {}\n'.format(generation, rank, size, os.getpid(), now, last, own).encode())


def run():
    import torch

    import horovod.torch as hvd
    from horovod.common import _native
    own = age()
    os.write(1, 'ready {}\n'.format(os.getpid()).encode())
    hvd.init()
    state = hvd.elastic.TorchState(model=torch.nn.Linear(64, 64), steps=0)
    last = 0

    @hvd.elastic.run
    def train(state):
        nonlocal last
        first = True
        while True:
            check(hvd.allreduce(torch.ones(COUNT), op=hvd.Sum, name='sum'), hvd.size())
            if first:
                say(_native.call('generation'), hvd.rank(), hvd.size(), last, own)
                first = False
            last = time.time_ns()
            state.steps += 1
            state.commit()

    train(state)


def distributed():
    import torch
    import torch.distributed as dist
    own = age()
    dist.init_process_group('gloo')
    size = dist.get_world_size()
    first = True
    while True:
        total = torch.ones(COUNT)
        dist.all_reduce(total)
        check(total, size)
        if first:
            say(os.environ['TORCHELASTIC_RESTART_COUNT'], dist.get_rank(), size, 0, own)
            first = False


def seconds_of(function, times):
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begin)
    return taken


def commit():
    import torch

    import horovod.torch as hvd
    hvd.init()
    torch.set_num_threads(1)
    small = hvd.elastic.TorchState(model=torch.nn.Linear(8, 8), step=0)
    plain = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0)
    large = hvd.elastic.TorchState(weights=torch.nn.Linear(5000, 5000, bias=False))  # 100 MB
    source, target = torch.ones(25_000_000), torch.ones(25_000_000)

    def copy():
        ctypes.memmove(target.data_ptr(), source.data_ptr(), 100_000_000)

    result = {'large': [], 'memcpy': []}
    for number in range(21):
        for name, function in (('large', large.commit), ('memcpy', copy)):
            if number > 0:  # else its memory is new
                result[name] += seconds_of(function, 1)
            else:
                function()
    result['small'] = seconds_of(small.commit, 2000)[100:]
    result['plain'] = seconds_of(plain.commit, 2000)[100:]
    print(json.dumps(result), flush=True)


if __name__ == '__main__':
    {'run': run, 'distributed': distributed, 'commit': commit}[sys.argv[1]]()
