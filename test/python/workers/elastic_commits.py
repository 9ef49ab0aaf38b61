"""Rank 0 commits by itself; rank 1 is stopped until that is over."""

import os
import signal
import time

import torch

import horovod.torch as hvd

hvd.init()
if hvd.rank() == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
else:
    def refuse(*unused):
        raise AssertionError('a commit has sent something')

    state = hvd.elastic.TorchState(model=torch.nn.Linear(4, 4), step=0)
    state._bcast_object = refuse
    state.commit()
    begin = time.perf_counter()
    for _ in range(100):
        state.commit()
    print('committed, {:.1f} us each'.format((time.perf_counter() - begin) * 1e4), flush=True)
hvd.barrier()
