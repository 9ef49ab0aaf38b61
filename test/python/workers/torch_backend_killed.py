"""Rank 1 is killed while the others wait for it in a collective of torch.distributed."""

import os
import signal

import horovod.torch as hvd  # noqa: F401
import torch
import torch.distributed as dist

dist.init_process_group('hvd')
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(1))
raise AssertionError('the collective succeeded without rank 1')
