"""World after world breaks in the middle of an allreduce of unregistered memory; says how much shared memory this rank has."""

import os

import torch

import horovod.torch as hvd

BYTES = 1 << 20


def shared_memory():
    with open('/proc/self/status') as file:
        kib = next(line for line in file if line.startswith('RssShmem')).split()[1]
    return int(kib) * 1024


state = hvd.elastic.ObjectState(bcast_object=hvd.broadcast_object, get_rank=hvd.rank, worlds=0)
tensor = torch.ones(BYTES // 4)


@hvd.elastic.run
def train(state):
    state.worlds += 1
    state.save()
    assert float(hvd.allreduce(tensor, op=hvd.Sum, name='first')[0]) == hvd.size()
    if hvd.rank() == 0:
        print('world {}: {} bytes, {} descriptors'.format(
            state.worlds, shared_memory(), len(os.listdir('/proc/self/fd'))), flush=True)
        hvd.allreduce(tensor, name='one rank is missing')
    hvd.barrier()  # broken by the test


hvd.init()
train(state)
