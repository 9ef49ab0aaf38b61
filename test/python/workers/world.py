"""Queries of the world, process sets, and local errors in a job."""

import sys

import torch

import horovod.torch as hvd

processes = int(sys.argv[1])
hvd.init(comm=list(range(processes)))  # all ranks: the same as none
assert hvd.size() == processes and 0 <= hvd.rank() < processes
assert hvd.local_size() == processes and hvd.local_rank() == hvd.rank()
assert hvd.cross_size() == 1 and hvd.cross_rank() == 0 and hvd.is_homogeneous()
assert hvd.global_process_set.ranks == list(range(processes))
assert hvd.global_process_set.rank() == hvd.rank() and hvd.global_process_set.size() == processes
ranks = hvd.allreduce(torch.tensor([1 << hvd.rank()]), op=hvd.Sum)
assert int(ranks) == (1 << processes) - 1
try:
    hvd.broadcast(torch.ones(1), root_rank=processes)
    raise SystemExit('a root outside the world was accepted')
except ValueError as error:
    assert '\n' not in str(error)
hvd.barrier()
print('ok', flush=True)
