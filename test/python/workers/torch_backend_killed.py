"""Rank 1 is killed while the others wait for it: in a collective of torch.distributed, or in a step of DistributedDataParallel.

    torch_backend_killed.py allreduce|ddp
"""

import os
import signal
import sys

import horovod.torch as hvd  # noqa: F401
import torch
import torch.distributed as dist

dist.init_process_group('hvd')
ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]), bucket_cap_mb=0.01)


def step():
    if sys.argv[1] == 'ddp':
        ddp(torch.ones(2, 64)).sum().backward()
    else:
        dist.all_reduce(torch.ones(1))


step()
try:
    step()
    if dist.get_rank() == 1:
        if sys.argv[1] == 'ddp':  # some of its gradients have gone by then
            ddp.module[1].weight.register_hook(lambda _: os.kill(os.getpid(), signal.SIGKILL))
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    step()
except RuntimeError as error:
    assert 'rank 1 on host ' in str(error) and 'died' in str(error), error
    print('got the cause', flush=True)
    raise
raise AssertionError('the collective succeeded without rank 1')
