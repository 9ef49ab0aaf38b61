"""A program's view of tensors on GPUs; run by on_fake_gpus.py, or as it is where there are GPUs.

    gpu.py WAY WORLDS

WAY nccl or staged: what carries the data. WORLDS: how many, one after the other.
"""

import os
import sys

import torch

import horovod.torch as hvd
from horovod.common import _library

way, worlds = sys.argv[1], int(sys.argv[2])


def place():
    """Where tensors are made: the rank's GPU, or the host where its memory stands for a GPU's."""
    return torch.device('cuda', hvd.local_rank() % torch.cuda.device_count()) if torch.cuda.is_available() else 'cpu'


for world in range(worlds):
    hvd.init()
    rank, size, device = hvd.rank(), hvd.size(), place()
    if device != 'cpu':
        torch.cuda.set_device(device)
    assert hvd.cuda_built()
    # Many at once: nothing overtakes anything, in whatever order they are waited for.
    names = list(range(40))
    inputs = [torch.full((1 + 37 * n,), float(rank + n), device=device) for n in names]
    handles = {n: hvd.allreduce_async(inputs[n], op=hvd.Sum, name='x{}'.format(n))
               for n in (names if rank % 2 else names[::-1])}
    for n in names:
        result = hvd.synchronize(handles[n])
        assert result.device == inputs[n].device
        assert (result == size * n + size * (size - 1) / 2).all(), (n, result)
    # Of a size that is known only to all together, in memory that the runtime makes.
    gathered = hvd.allgather(torch.full((rank + 1, 3), rank, dtype=torch.int64, device=device), name='g')
    assert gathered.tolist() == [[r] * 3 for r in range(size) for _ in range(r + 1)], gathered
    swapped, splits = hvd.alltoall(torch.arange(size, device=device) + 100 * rank, [1] * size, name='a')
    assert swapped.tolist() == [100 * r + rank for r in range(size)] and splits.tolist() == [1] * size
    # Groups whose parts are unlike, or of a kind that NCCL is given one by one.
    types = (torch.float32, torch.int64, torch.float16, torch.int32, torch.float32, torch.float64)
    group = [torch.full((7 * i + 2, 2), rank + i, dtype=dtype, device=device) for i, dtype in enumerate(types)]
    for i, result in enumerate(hvd.grouped_allreduce(group, op=hvd.Sum, name='group')):
        assert result.dtype == types[i] and (result == size * i + size * (size - 1) // 2).all(), (i, result)
    group = [torch.full((rank + i, 3), rank + i, dtype=dtype, device=device) for i, dtype in enumerate(types)]
    for i, result in enumerate(hvd.grouped_allgather(group, name='gathered')):
        assert result.dtype == types[i] and result.tolist() == [[r + i] * 3 for r in range(size) for _ in range(r + i)], (i, result)
    group = [torch.full((size + 1, i + 1), rank + i, dtype=torch.float32, device=device) for i in range(4)]
    for i, result in enumerate(hvd.grouped_reducescatter(group, op=hvd.Sum, name='scattered')):
        assert result.shape == ((2 if rank == 0 else 1), i + 1) and (result == size * i + size * (size - 1) // 2).all(), (i, result)
    # One tensor on the host, one on a device.
    if size > 1:
        there = torch.ones(4, device=device)
        try:
            if rank == 0:
                handle = hvd.allreduce_async(there, name='mixed')
            else:  # as hvd.numpy submits it
                import horovod.numpy as hvd_numpy
                handle = None
                hvd_numpy.allreduce(there.cpu().numpy(), name='mixed')
            if handle is not None:
                hvd.synchronize(handle)
            raise SystemExit('ranks disagreed about the device, and nobody said so')
        except hvd.HorovodInternalError as error:
            assert 'ranks disagree about its device: rank 0 has cuda, rank 1 has cpu' in str(error), error
    # Sets of ranks beside the world.
    if size > 2:
        first = hvd.add_process_set([0, size - 1])
        if first.included():
            two = hvd.allreduce(torch.ones(3, device=device), op=hvd.Sum, name='two', process_set=first)
            assert two.tolist() == [2, 2, 2]
        hvd.remove_process_set(first)
    assert _library.enabled('cuda')
    assert _library.enabled('nccl') == (way == 'nccl'), way
    if os.environ.get('GPU_WORKER_ENDS') != 'without shutdown':
        hvd.shutdown()
print('ok', flush=True)
