"""Ranks of torchrun, without hvdrun: groups, an end and a beginning in one process, and hvd.init(). With an argument each rank has a
host of its own."""

import os
import sys

if len(sys.argv) > 1:
    os.environ['HOROVOD_HOSTNAME'] = 'host' + os.environ['RANK']

import horovod.torch as hvd  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

for turn in range(2):
    dist.init_process_group('hvd')
    rank, size = dist.get_rank(), dist.get_world_size()
    assert (hvd.rank(), hvd.size(), hvd.local_size()) == (rank, size, 1 if len(sys.argv) > 1 else size)
    own = torch.full((3,), float(rank))
    dist.all_reduce(own)
    assert own[0].item() == sum(range(size))
    single = dist.new_group([rank]) if size == 1 else [dist.new_group([number]) for number in range(size)][rank]
    dist.barrier(group=single)
    dist.destroy_process_group()
hvd.init()
assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size
hvd.barrier()
sys.stdout.write('done {}\n'.format(rank))  # in one piece: the ranks share a pipe
