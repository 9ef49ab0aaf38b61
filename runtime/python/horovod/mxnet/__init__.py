"""`import horovod.mxnet as hvd`: the collectives on MXNet's arrays, an optimizer and gluon's trainer."""

try:
    import mxnet as _mxnet
except ImportError as _error:
    raise ImportError('horovod.mxnet needs MXNet, which cannot be imported: {}'.format(_error)) from _error
except AttributeError as _error:  # of a NumPy without numpy.bool
    raise ImportError('horovod.mxnet needs MXNet, which cannot be imported; MXNet 1.9.1 needs a NumPy older than 1.24 (pip install '
                      '"numpy<1.24"): {}'.format(_error)) from _error

from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from horovod.mxnet.compression import Compression
from horovod.mxnet.functions import allgather_object, broadcast_object, broadcast_parameters
from horovod.mxnet.mpi_ops import (
    Adasum, Average, Max, Min, Product, Sum,
    allgather, allreduce, allreduce_, alltoall, broadcast, broadcast_, grouped_allgather, grouped_allreduce, grouped_allreduce_,
    grouped_reducescatter, reducescatter)
from horovod.mxnet.optimizer import DistributedOptimizer, DistributedTrainer
from horovod.numpy import (
    ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built, should_stop, shutdown,
    size, start_timeline, stop_timeline)

if not _mxnet.__version__.startswith('1.9.'):
    import warnings as _warnings
    _warnings.warn('horovod.mxnet was tried with MXNet 1.9.1, and this one is {}.'.format(_mxnet.__version__), RuntimeWarning)

__all__ = [
    'Adasum', 'Average', 'Compression', 'DistributedOptimizer', 'DistributedTrainer', 'HorovodInternalError', 'Max', 'Min',
    'ProcessSet', 'Product', 'Sum', 'add_process_set', 'allgather', 'allgather_object', 'allreduce', 'allreduce_', 'alltoall',
    'broadcast', 'broadcast_', 'broadcast_object', 'broadcast_parameters', 'ccl_built', 'cross_rank', 'cross_size', 'cuda_built',
    'ddl_built', 'global_process_set', 'gloo_built', 'gloo_enabled', 'grouped_allgather', 'grouped_allreduce',
    'grouped_allreduce_', 'grouped_reducescatter', 'init', 'is_homogeneous', 'is_initialized', 'local_rank', 'local_size',
    'mpi_built', 'mpi_enabled', 'mpi_threads_supported', 'nccl_built', 'rank', 'reducescatter', 'remove_process_set',
    'rocm_built', 'should_stop', 'shutdown', 'size', 'start_timeline', 'stop_timeline',
]
