"""`import horovod.jax as hvd`: the collectives on arrays and pytrees of JAX, outside of jit and inside, with gradients."""

try:
    import jax  # noqa: F401
except ImportError as _error:
    raise ImportError('horovod.jax needs JAX, which cannot be imported: {}'.format(_error)) from _error

from horovod.common import basics as _common_basics
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from horovod.jax import elastic
from horovod.jax import cluster as _cluster  # noqa: F401: known to jax.distributed from now on
from horovod.jax.functions import broadcast_parameters, shutdown
from horovod.jax.mpi_ops import (
    Adasum, Average, Max, Min, Product, Sum,
    allgather, allgather_object, allreduce, alltoall, barrier, broadcast, broadcast_object, grouped_allreduce, join,
    reducescatter)
from horovod.jax.optimizer import Compression, DistributedOptimizer

_basics = _common_basics.shared()

init = _basics.init
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
    'Adasum', 'Average', 'Compression', 'DistributedOptimizer', 'HorovodInternalError', 'Max', 'Min', 'ProcessSet', 'Product',
    'Sum', 'add_process_set', 'allgather', 'allgather_object', 'allreduce', 'alltoall', 'barrier', 'broadcast',
    'broadcast_object', 'broadcast_parameters', 'ccl_built', 'cross_rank', 'cross_size', 'cuda_built', 'ddl_built', 'elastic',
    'global_process_set', 'gloo_built', 'gloo_enabled', 'grouped_allreduce', 'init', 'is_homogeneous', 'is_initialized', 'join',
    'local_rank', 'local_size', 'mpi_built', 'mpi_enabled', 'mpi_threads_supported', 'nccl_built', 'rank', 'reducescatter',
    'remove_process_set', 'rocm_built', 'should_stop', 'shutdown', 'size', 'start_timeline', 'stop_timeline',
]
