"""A rank of a world that is looked at from outside: its task is the first argument; needs NumPy.

It says "ready" and waits for a line on stdin's file (the second argument: a path that appears) before it goes on.
"""

import os
import sys
import time

import numpy as np

import horovod.numpy as hvd
from horovod.common.process_sets import ProcessSet


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def one(value=1.0):
    return np.full(4, value, dtype=np.float32)


def idle(go):
    """In a world, and nothing to do."""
    hvd.allreduce(one(), op=hvd.Sum)
    print('ready', flush=True)
    wait_for(go)


def late(go):
    """Rank 0 comes when it is told; the others wait for it in an allreduce."""
    hvd.barrier()
    print('ready', flush=True)
    if hvd.rank() == 0:
        wait_for(go)
    assert (hvd.allreduce(one(), op=hvd.Sum, name='late') == hvd.size()).all()


def lazy(go):
    """Connections are looked at before and after the first collective."""
    print('ready', flush=True)
    wait_for(go)
    assert (hvd.allreduce(one(), op=hvd.Sum) == hvd.size()).all()
    print('talked', flush=True)
    wait_for(go + '.2')


def sets(go):
    """The set of ranks 0 and 1 waits for rank 1, which waits until the set of 0 and 2 has done its work."""
    slow, quick = ProcessSet([0, 1]), ProcessSet([0, 2])
    hvd.add_process_set(slow), hvd.add_process_set(quick)
    rank = hvd.rank()
    if rank == 0:
        handle = hvd.allreduce_async(one(), op=hvd.Sum, name='x', process_set=slow)
    if rank in (0, 2):
        for _ in range(50):
            assert (hvd.allreduce(one(), op=hvd.Sum, name='x', process_set=quick) == 2).all()
    if rank == 0:
        assert not hvd.poll(handle)
        open(go, 'w').close()
        assert (hvd.synchronize(handle) == 2).all()
    if rank == 1:
        wait_for(go)
        assert (hvd.allreduce(one(), op=hvd.Sum, name='x', process_set=slow) == 2).all()
    print('done', flush=True)


def others(go):
    """Ranks 1 and 2 work in a set of their own while rank 0 is stopped."""
    pair = ProcessSet([1, 2])
    hvd.add_process_set(pair)
    hvd.barrier()
    print('ready', os.getpid(), flush=True)
    if hvd.rank() > 0:
        wait_for(go)
        for step in range(50):
            assert (hvd.allreduce(one(step), op=hvd.Sum, name='step.{}'.format(step), process_set=pair) == 2 * step).all()
        print('done', flush=True)
    hvd.barrier()


if __name__ == '__main__':
    hvd.init(process_sets='dynamic')
    globals()[sys.argv[1]](sys.argv[2])
    hvd.shutdown()
