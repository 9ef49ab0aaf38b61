"""A rank of a world on several hosts. What it does is the first argument; needs NumPy."""

import os
import signal
import sys
import time

import numpy as np

import horovod.numpy as hvd


def floats(value, count=4):
    return np.full(count, value, dtype=np.float32)


def everything():
    """Each operation once, on the world and on a set across hosts; prints one line of results."""
    rank, size = hvd.rank(), hvd.size()
    total = size * (size + 1) / 2
    assert (hvd.allreduce(floats(rank + 1, 300_000), op=hvd.Sum) == total).all()
    assert (hvd.allreduce(floats(rank + 1), op=hvd.Average) == total / size).all()
    assert hvd.allgather(np.full((rank + 1, 2), rank)).shape == (total, 2)
    for root in range(size):
        assert (hvd.broadcast(floats(rank), root_rank=root) == root).all()
    assert list(hvd.alltoall(np.arange(size) + 10 * rank)) == [10 * r + rank for r in range(size)]
    assert hvd.reducescatter(np.ones((2 * size, 3), dtype=np.float32), op=hvd.Sum).tolist() == [[size] * 3] * 2
    hvd.barrier()
    if size > 2:
        outer, inner = hvd.add_process_set([0, size - 1]), hvd.add_process_set([0, 1])
        if rank in (0, size - 1):
            assert (hvd.allreduce(floats(rank), op=hvd.Sum, process_set=outer) == size - 1).all()
        if rank in (0, 1):
            assert (hvd.allreduce(floats(rank), op=hvd.Sum, process_set=inner) == 1).all()
        assert hvd.remove_process_set(outer)
    sentence = ''
    try:
        hvd.allreduce(floats(1, 4 + rank), name='uneven')
    except hvd.HorovodInternalError as error:
        sentence = str(error)
    assert "rank 0 has [4], rank 1 has [5]" in sentence, sentence
    if rank == 0:
        assert (hvd.allreduce(floats(3), name='without the others', op=hvd.Average) == 3).all()
    last = hvd.join()
    assert (hvd.allreduce(floats(1), op=hvd.Sum) == size).all()
    print('everything', last, hvd.gloo_enabled(), flush=True)


def reduce_until_it_breaks(victim=-1):
    """Rank `victim` kills itself in the middle; the others print how they came to know."""
    step, last = 0, time.monotonic()
    try:
        while True:
            if step == 20:
                print('busy', flush=True)
                if hvd.rank() == victim:
                    os.kill(os.getpid(), signal.SIGKILL)
            hvd.allreduce(floats(1, 200_000), name='gradient')
            step, last = step + 1, time.monotonic()
    except hvd.HorovodInternalError as error:
        print('told after {:.1f} s: {}'.format(time.monotonic() - last, error), flush=True)
        sys.exit(3)


def leave_early():
    """The last rank shuts down while the others reduce."""
    hvd.allreduce(floats(1), name='all')
    if hvd.rank() == hvd.size() - 1:
        return
    try:
        hvd.allreduce(floats(1), name='without the last')
    except hvd.HorovodInternalError as error:
        print('told:', error, flush=True)


hvd.init(process_sets='dynamic')
what = sys.argv[1]
if what == 'everything':
    everything()
elif what == 'break':
    reduce_until_it_breaks(int(sys.argv[2]))
else:
    leave_early()
hvd.shutdown()
