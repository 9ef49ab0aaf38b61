"""`import horovod.jax as hvd`: the collectives on arrays and pytrees of JAX, outside of jit and inside, with gradients."""

try:
    import jax  # noqa: F401
except ImportError as _error:
    raise ImportError('horovod.jax needs JAX, which cannot be imported: {}'.format(_error)) from _error

from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from horovod.jax import elastic
from horovod.jax import cluster as _cluster  # noqa: F401: registers with jax.distributed
from horovod.jax.functions import broadcast_parameters, shutdown
from horovod.jax.mpi_ops import (
    Adasum, Average, Max, Min, Product, Sum,
    allgather, allgather_object, allreduce, alltoall, barrier, broadcast, broadcast_object, grouped_allreduce, join,
    reducescatter)
from horovod.jax.optimizer import Compression, DistributedOptimizer
from horovod.numpy import (
    ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built, should_stop,
    size, start_timeline, stop_timeline)

__all__ = [
    'Adasum', 'Average', 'Compression', 'DistributedOptimizer', 'HorovodInternalError', 'Max', 'Min', 'ProcessSet', 'Product',
    'Sum', 'add_process_set', 'allgather', 'allgather_object', 'allreduce', 'alltoall', 'barrier', 'broadcast',
    'broadcast_object', 'broadcast_parameters', 'ccl_built', 'cross_rank', 'cross_size', 'cuda_built', 'ddl_built', 'elastic',
    'global_process_set', 'gloo_built', 'gloo_enabled', 'grouped_allreduce', 'init', 'is_homogeneous', 'is_initialized', 'join',
    'local_rank', 'local_size', 'mpi_built', 'mpi_enabled', 'mpi_threads_supported', 'nccl_built', 'rank', 'reducescatter',
    'remove_process_set', 'rocm_built', 'should_stop', 'shutdown', 'size', 'start_timeline', 'stop_timeline',
]
