"""Ranks that end before the others.

    early.py finished|missing|exception

finished: rank 0 is done and shuts down; the others go on among themselves. missing: the others wait for rank 0, which
has no more batches. exception: rank 0 dies of an exception.
"""

import sys
import time

import torch

import horovod.torch as hvd

mode = sys.argv[1]
hvd.init()
size, rank = hvd.size(), hvd.rank()
rest = hvd.ProcessSet(range(1, size))
hvd.init(process_sets=[rest])
for step in range(3):
    hvd.allreduce(torch.ones(10), name='step.{}'.format(step))
if rank == 0:
    if mode == 'exception':
        raise RuntimeError('rank 0 has had enough')
    hvd.shutdown()
    print('ok', flush=True)
    sys.exit(0)
if mode == 'finished':
    for _ in range(2000):
        assert (hvd.allreduce(torch.ones(1000), op=hvd.Sum, name='among the rest', process_set=rest) == size - 1).all()
else:
    started = time.time()
    try:
        hvd.allreduce(torch.ones(10), name='step.3')
        raise SystemExit('the allreduce went on without rank 0')
    except hvd.HorovodInternalError as error:
        print('after {:.3f} s: {}'.format(time.time() - started, error), flush=True)
    if mode == 'missing':  # what does not need rank 0 goes on
        assert (hvd.allreduce(torch.ones(4), op=hvd.Sum, name='rest', process_set=rest) == size - 1).all()
print('ok', flush=True)
