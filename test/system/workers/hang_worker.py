"""A rank of a job that hangs. The first argument says how; rank VICTIM (the last rank by default) is the one that others wait
for. Needs NumPy."""

import os
import re
import signal
import sys
import threading
import time

import numpy as np

HOW = sys.argv[1]
if HOW == 'deaf':  # before any thread is there, so that all are deaf
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

import horovod.numpy as hvd  # noqa: E402

LIMIT = 600  # nobody waits so long


def floats():
    return np.ones(4, dtype=np.float32)


def reduce(name, process_set=hvd.global_process_set, tensor=None):
    # the line: reduce, is the next one
    hvd.allreduce(floats() if tensor is None else tensor, name=name, process_set=process_set)


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)  # the line: stopped


def sleep():
    time.sleep(1000)  # the line: sleep


def deaf():
    time.sleep(1000)  # the line: deaf


def loop():
    re.match('(a+)+$', 'a' * 64 + 'b')  # the line: loop, in C, and it never gives the interpreter lock away


def busy():
    while True:
        pass  # the line: busy


def read():
    os.read(os.pipe()[0], 1)  # the line: read


def name():
    reduce('other')  # the line: name


def shape():
    reduce('gradient', tensor=np.ones(5, dtype=np.float32))


def early():
    hvd.shutdown()
    sys.exit(0)


def leave():
    """The process goes on and is not in the world any more."""
    hvd.shutdown()
    time.sleep(1000)


def hang(victim):
    reduce('before')
    print('hangs', hvd.rank(), os.getpid(), flush=True)
    if hvd.rank() == victim:
        {'stopped': stopped, 'sleep': sleep, 'deaf': deaf, 'loop': loop, 'busy': busy, 'read': read, 'name': name,
         'shape': shape, 'early': early, 'leave': leave}[HOW]()
    reduce('gradient')  # the line: gradient


def two_sets():
    """Ranks 0 and 1 use two sets in different orders: one of their own, and that of all."""
    left, right = hvd.add_process_set([0, 1]), hvd.global_process_set
    order = [('left', left), ('right', right)]
    if hvd.rank() == 1:
        order.reverse()
    print('hangs', hvd.rank(), os.getpid(), flush=True)
    for text, process_set in order if hvd.rank() < 2 else order[1:]:
        reduce(text, process_set)


def two_threads():
    """Each thread of rank 0 waits for one of rank 1, whose threads take turns that no other rank can see."""
    turn = threading.Event()

    def first():
        if hvd.rank() == 1:
            turn.wait(LIMIT)
        reduce('one')

    def second():
        if hvd.rank() == 1:
            time.sleep(float(sys.argv[2]))
        reduce('two')
        turn.set()

    reduce('before')
    threads = [threading.Thread(target=function) for function in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('through', hvd.rank(), flush=True)


def orders():
    """Every rank submits all, in an order of its own, then waits in another one; some come late."""
    seconds, rank = float(sys.argv[2]), hvd.rank()
    names = ['a', 'b', 'c', 'd']
    for step in range(2):
        if (rank + step) % 2:
            time.sleep(seconds)
        shift = rank % len(names)
        handles = {text: hvd.allreduce_async(floats(), name=text) for text in names[shift:] + names[:shift]}
        for text in sorted(names, reverse=bool(rank % 2)):
            hvd.synchronize(handles[text])
    print('through', rank, flush=True)


def halves():
    """One half of each rank's tensors is submitted late, after the other half has been waited for elsewhere."""
    seconds, rank = float(sys.argv[2]), hvd.rank()
    mine, theirs = ('x', 'y') if rank % 2 else ('y', 'x')
    handles = [hvd.allreduce_async(floats(), name=text) for text in (mine, theirs)]
    if rank == hvd.size() - 1:
        time.sleep(seconds)
    late = hvd.allreduce_async(floats(), name='z')
    for handle in (*handles, late):
        hvd.synchronize(handle)
    print('through', rank, flush=True)


def main():
    hvd.init(process_sets='dynamic')
    if HOW in ('orders', 'halves', 'two_threads', 'two_sets'):
        globals()[HOW]()
    else:
        hang(int(sys.argv[2]) if len(sys.argv) > 2 else hvd.size() - 1)
    hvd.shutdown()


if __name__ == '__main__':
    main()
