"""`import horovod.torch as hvd`: distributed training of PyTorch models."""

try:
    import torch
except ImportError as _error:
    raise ImportError('horovod.torch needs PyTorch, which cannot be imported: {}'.format(_error)) from _error
if not hasattr(torch, 'frombuffer'):
    raise ImportError('horovod.torch needs PyTorch 1.10 or newer, and this one is {}'.format(torch.__version__))

from horovod.common import checkpoint
from horovod.common.exceptions import HorovodInternalError
from horovod.torch import elastic
from horovod.torch.compiling import leave_to_the_interpreter as _leave_to_the_interpreter
from horovod.torch.compression import Compression
from horovod.torch.functions import (
    allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters)
from horovod.torch.mpi_ops import (
    Adasum, Average, Max, Min, Product, Sum,
    allgather, allgather_async, allreduce, allreduce_, allreduce_async, allreduce_async_, alltoall, alltoall_async,
    barrier, broadcast, broadcast_, broadcast_async, broadcast_async_, grouped_allgather, grouped_allgather_async,
    grouped_allreduce, grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_, grouped_reducescatter,
    grouped_reducescatter_async, join, poll, reducescatter, reducescatter_async, sparse_allreduce_async, synchronize)
from horovod.torch.mpi_ops import (
    ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init, is_homogeneous,
    is_initialized, local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank,
    rocm_built, should_stop, shutdown, size, start_timeline, stop_timeline)
from horovod.torch.mpi_ops import (
    ProcessSet, _check_has_gpu, add_process_set, global_process_set, remove_process_set)
from horovod.torch.optimizer import DistributedOptimizer
from horovod.torch.offer_backend import offer as _offer_backend
from horovod.torch.sync_batch_norm import SyncBatchNorm

_leave_to_the_interpreter()
_offer_backend()

__all__ = [
    'Adasum', 'Average', 'Compression', 'DistributedOptimizer', 'HorovodInternalError', 'Max', 'Min', 'ProcessSet',
    'Product', 'Sum', 'SyncBatchNorm', 'add_process_set', 'allgather', 'allgather_async', 'allgather_object',
    'allreduce', 'allreduce_', 'allreduce_async', 'allreduce_async_', 'alltoall', 'alltoall_async', 'barrier',
    'broadcast', 'broadcast_', 'broadcast_async', 'broadcast_async_', 'broadcast_object', 'broadcast_optimizer_state',
    'broadcast_parameters', 'ccl_built', 'checkpoint', 'cross_rank', 'cross_size', 'cuda_built', 'ddl_built', 'elastic',
    'global_process_set', 'gloo_built', 'gloo_enabled', 'grouped_allgather', 'grouped_allgather_async',
    'grouped_allreduce', 'grouped_allreduce_', 'grouped_allreduce_async', 'grouped_allreduce_async_',
    'grouped_reducescatter', 'grouped_reducescatter_async', 'init', 'is_homogeneous', 'is_initialized', 'join',
    'local_rank', 'local_size', 'mpi_built', 'mpi_enabled', 'mpi_threads_supported', 'nccl_built', 'poll', 'rank',
    'reducescatter', 'reducescatter_async', 'remove_process_set', 'rocm_built', 'should_stop', 'shutdown', 'size',
    'sparse_allreduce_async', 'start_timeline', 'stop_timeline', 'synchronize',
]
