"""`import horovod.tensorflow.keras as hvd`: distributed training of models of Keras on TensorFlow."""

import tensorflow as _tensorflow

keras = _tensorflow.keras

from horovod import _keras
from horovod._keras import allgather, broadcast, broadcast_global_variables, reducescatter
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.tensorflow.compression import Compression
from horovod.numpy import (
    Average, Sum, ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init,
    is_initialized, local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
    should_stop, shutdown, size, start_timeline, stop_timeline)

from horovod.tensorflow.keras import callbacks, elastic  # noqa: E402

__all__ = [
    'Average', 'Compression', 'DistributedOptimizer', 'Sum', 'ProcessSet', 'add_process_set',
    'allgather', 'allreduce', 'broadcast', 'broadcast_global_variables', 'callbacks', 'ccl_built', 'cross_rank', 'cross_size',
    'cuda_built', 'ddl_built', 'elastic', 'global_process_set', 'gloo_built', 'gloo_enabled', 'init', 'is_initialized',
    'load_model', 'local_rank', 'local_size', 'mpi_built', 'mpi_enabled', 'mpi_threads_supported', 'nccl_built', 'rank',
    'reducescatter', 'remove_process_set', 'rocm_built', 'should_stop', 'shutdown', 'size', 'start_timeline', 'stop_timeline',
]


def DistributedOptimizer(optimizer, name=None, device_dense='', device_sparse='', compression=Compression.none,
                         sparse_as_dense=False,
                         gradient_predivide_factor=1.0, op=Average, backward_passes_per_step=1,
                         average_aggregated_gradients=False, num_groups=0, groups=None, process_set=global_process_set,
                         scale_local_gradients=True):
    """An optimizer that combines the gradients of all ranks before it applies them.

    Args:
        optimizer: An optimizer of Keras; it is not changed.
        name: The name scope of its operations.
        device_dense: Where to place the operations for tensors.
        device_sparse: Where to place those for slices.
        compression: How gradients are sent.
        sparse_as_dense: Whether slices are made tensors first.
        gradient_predivide_factor: Gradients are divided by this number before they are summed, and by the rest after it.
        op: hvd.Average or hvd.Sum.
        backward_passes_per_step: Number of backward passes whose gradients are added up before they are combined.
        average_aggregated_gradients: Whether what was added up is divided by the number of passes.
        num_groups: Deprecated: see groups.
        groups: A number of groups, or lists of variables whose gradients are combined together.
        process_set: The ranks that take part.
        scale_local_gradients: Whether gradients of local variables are divided by the number of ranks.

    Returns: An optimizer of a subclass of its class, of the same name.

    Raises:
        ValueError: op is neither Average nor Sum, or another argument is wrong.
    """
    return _keras.create_distributed_optimizer(
        keras, optimizer, name, device_dense=device_dense, device_sparse=device_sparse, compression=compression,
        sparse_as_dense=sparse_as_dense, gradient_predivide_factor=gradient_predivide_factor, op=op,
        backward_passes_per_step=backward_passes_per_step, average_aggregated_gradients=average_aggregated_gradients,
        num_groups=num_groups, groups=groups, process_set=process_set, scale_local_gradients=scale_local_gradients)


def allreduce(value, name=None, average=None, prescale_factor=1.0, postscale_factor=1.0, op=None,
              compression=Compression.none):
    """Combines a number or an array over the ranks.

    Args:
        value: Anything numpy.asarray takes.
        name: Matches the calls of the ranks.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum.
        prescale_factor: The input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        op: Average, Sum, Min, Max or Product; Average by default.
        compression: Ignored: a value is small.

    Returns: A number or an array.
    """
    op = get_average_backwards_compatibility_fun(_keras)(op, average)
    return _keras.allreduce(value, name, op, prescale_factor, postscale_factor)


def load_model(filepath, custom_optimizers=None, custom_objects=None, compression=Compression.none, legacy_opts=False):
    """Loads a model that was saved, with or without this package, and makes its optimizer distributed.

    Args:
        filepath: The file.
        custom_optimizers: Classes of optimizers that are not those of Keras.
        custom_objects: See keras.models.load_model.
        compression: How gradients are sent.
        legacy_opts: Ignored; legacy optimizers are known.

    Returns: The model.
    """
    return _keras.load_model(keras, filepath, custom_optimizers, custom_objects, compression)
