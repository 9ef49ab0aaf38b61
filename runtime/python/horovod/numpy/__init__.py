"""`import horovod.numpy as hvd`: the collectives on NumPy arrays.

The functions are those of horovod.torch without gradients. Blocking calls that are not in place take anything
numpy.asarray takes; what is changed in place has to be a contiguous array.
"""

try:
    import numpy  # noqa: F401
except ImportError as _error:
    raise ImportError('horovod.numpy needs NumPy, which cannot be imported: {}'.format(_error)) from _error

from horovod.common import basics as _common_basics
from horovod.common import checkpoint
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from horovod.numpy.mpi_ops import (
    Adasum, Average, Max, Min, Product, Sum,
    allgather, allgather_async, allgather_object, allreduce, allreduce_, allreduce_async, allreduce_async_, alltoall,
    alltoall_async, barrier, broadcast, broadcast_, broadcast_async, broadcast_async_, broadcast_object,
    grouped_allgather, grouped_allgather_async, grouped_allreduce, grouped_allreduce_, grouped_allreduce_async,
    grouped_allreduce_async_, grouped_reducescatter, grouped_reducescatter_async, join, poll, reducescatter,
    reducescatter_async, synchronize)

_basics = _common_basics.shared()

init = _basics.init
shutdown = _basics.shutdown
should_stop = _basics.should_stop
is_initialized = _basics.is_initialized
start_timeline = _basics.start_timeline
stop_timeline = _basics.stop_timeline
size = _basics.size
local_size = _basics.local_size
cross_size = _basics.cross_size
rank = _basics.rank
local_rank = _basics.local_rank
cross_rank = _basics.cross_rank
is_homogeneous = _basics.is_homogeneous
mpi_threads_supported = _basics.mpi_threads_supported
mpi_enabled = _basics.mpi_enabled
mpi_built = _basics.mpi_built
gloo_enabled = _basics.gloo_enabled
gloo_built = _basics.gloo_built
nccl_built = _basics.nccl_built
ddl_built = _basics.ddl_built
ccl_built = _basics.ccl_built
cuda_built = _basics.cuda_built
rocm_built = _basics.rocm_built

__all__ = [
    'Adasum', 'Average', 'HorovodInternalError', 'Max', 'Min', 'ProcessSet', 'Product', 'Sum', 'add_process_set',
    'allgather', 'allgather_async', 'allgather_object', 'allreduce', 'allreduce_', 'allreduce_async',
    'allreduce_async_', 'alltoall', 'alltoall_async', 'barrier', 'broadcast', 'broadcast_', 'broadcast_async',
    'broadcast_async_', 'broadcast_object', 'ccl_built', 'checkpoint', 'cross_rank', 'cross_size', 'cuda_built',
    'ddl_built',
    'global_process_set', 'gloo_built', 'gloo_enabled', 'grouped_allgather', 'grouped_allgather_async',
    'grouped_allreduce', 'grouped_allreduce_', 'grouped_allreduce_async', 'grouped_allreduce_async_',
    'grouped_reducescatter', 'grouped_reducescatter_async', 'init', 'is_homogeneous', 'is_initialized', 'join',
    'local_rank', 'local_size', 'mpi_built', 'mpi_enabled', 'mpi_threads_supported', 'nccl_built', 'poll', 'rank',
    'reducescatter', 'reducescatter_async', 'remove_process_set', 'rocm_built', 'should_stop', 'shutdown', 'size',
    'start_timeline', 'stop_timeline', 'synchronize',
]
