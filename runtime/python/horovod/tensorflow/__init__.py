"""`import horovod.tensorflow as hvd`: distributed training of TensorFlow models."""

try:
    import tensorflow  # noqa: F401
except ImportError as _error:
    raise ImportError('horovod.tensorflow needs TensorFlow, which cannot be imported: {}'.format(_error)) from _error

from horovod.common.exceptions import HorovodInternalError
from horovod.tensorflow import native as _native
_native.operations()

from horovod.tensorflow.compression import Compression  # noqa: E402
from horovod.tensorflow.functions import (  # noqa: E402
    BroadcastGlobalVariablesHook, allgather_object, broadcast_global_variables, broadcast_object, broadcast_object_fn,
    broadcast_variables)
from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper  # noqa: E402
from horovod.tensorflow.mpi_ops import (  # noqa: E402
    Adasum, Average, Max, Min, Product, ProcessSet, Sum, _check_has_gpu, add_process_set, allgather, alltoall, broadcast,
    broadcast_, ccl_built, check_num_rank_power_of_2, cross_rank, cross_size, cuda_built, ddl_built, global_process_set,
    gloo_built, gloo_enabled, grouped_allgather, handle_average_backwards_compatibility, init, is_homogeneous, is_initialized,
    join, local_rank, local_rank_op, local_size, local_size_op, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built,
    process_set_included_op, rank, rank_op, remove_process_set, rocm_built, should_stop, shutdown, size, size_op,
    start_timeline, stop_timeline)
from horovod.tensorflow.optimizer import DistributedOptimizer  # noqa: E402
from horovod.tensorflow.reduction import allreduce, grouped_allreduce, grouped_reducescatter, reducescatter  # noqa: E402
from horovod.tensorflow.sync_batch_norm import SyncBatchNormalization  # noqa: E402
from horovod.tensorflow.tape import DistributedGradientTape, PartialDistributedGradientTape  # noqa: E402
from horovod.tensorflow.util import _cache, _executing_eagerly, _make_subgraph, refs_to_vars, vars_to_refs  # noqa: E402
from horovod.tensorflow import elastic  # noqa: E402

__all__ = [
    'Adasum', 'Average', 'BroadcastGlobalVariablesHook', 'Compression', 'DistributedGradientTape', 'DistributedOptimizer',
    'HorovodInternalError', 'LocalGradientAggregationHelper', 'Max', 'Min', 'PartialDistributedGradientTape', 'ProcessSet',
    'Product', 'Sum', 'SyncBatchNormalization', 'add_process_set', 'allgather', 'allgather_object', 'allreduce', 'alltoall',
    'broadcast', 'broadcast_', 'broadcast_global_variables', 'broadcast_object', 'broadcast_object_fn',
    'broadcast_variables', 'ccl_built', 'check_num_rank_power_of_2', 'cross_rank', 'cross_size', 'cuda_built', 'ddl_built',
    'elastic', 'global_process_set', 'gloo_built', 'gloo_enabled', 'grouped_allgather', 'grouped_allreduce',
    'grouped_reducescatter', 'handle_average_backwards_compatibility', 'init', 'is_homogeneous', 'is_initialized', 'join',
    'local_rank', 'local_rank_op', 'local_size', 'local_size_op', 'mpi_built', 'mpi_enabled', 'mpi_threads_supported',
    'nccl_built', 'process_set_included_op', 'rank', 'rank_op', 'reducescatter', 'refs_to_vars', 'remove_process_set',
    'rocm_built', 'should_stop', 'shutdown', 'size', 'size_op', 'start_timeline', 'stop_timeline', 'vars_to_refs',
]
