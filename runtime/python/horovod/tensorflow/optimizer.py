"""DistributedOptimizer for the optimizers of tf.compat.v1.train; those of Keras are handed on to horovod.tensorflow.keras."""

import tensorflow as tf


from horovod.tensorflow.compression import Compression
from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper
from horovod.tensorflow.mpi_ops import Adasum, Average, global_process_set
from horovod.tensorflow.reduction import GradientReduction, allreduce, check_reduction

_LegacyOptimizer = tf.compat.v1.train.Optimizer


class _DistributedOptimizer(_LegacyOptimizer):
    """An optimizer of tf.compat.v1.train whose compute_gradients() combines the gradients of all ranks."""

    def __init__(self, optimizer, name, use_locking, reduction, sparse_as_dense, backward_passes_per_step,
                 average_aggregated_gradients, process_set, scale_local_gradients):
        super().__init__(name=name or 'Distributed{}'.format(type(optimizer).__name__), use_locking=use_locking)
        self._optimizer = optimizer
        self._aggregation = LocalGradientAggregationHelper(
            backward_passes_per_step, reduction, sparse_as_dense, average_aggregated_gradients, process_set=process_set,
            scale_local_gradients=scale_local_gradients)

    def register_local_var(self, var):
        """Excludes a variable from the reduction.

        Args:
            var: The variable.
        """
        self._aggregation.register_local_var(var)

    def compute_gradients(self, *args, **kwargs):
        """As that of the wrapped optimizer; the gradients are combined.

        Args:
            args: See the wrapped optimizer.
            kwargs: See the wrapped optimizer.

        Returns: A list of pairs of a gradient and its variable.
        """
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        grads, variables = zip(*pairs) if pairs else ((), ())
        return list(zip(self._aggregation.compute_gradients(grads, variables), variables))

    def apply_gradients(self, *args, **kwargs):
        """As that of the wrapped optimizer.

        Args:
            args: See the wrapped optimizer.
            kwargs: See the wrapped optimizer.

        Returns: The operation.
        """
        return self._aggregation.apply_gradients(lambda: self._optimizer.apply_gradients(*args, **kwargs), self._optimizer,
                                                 *args, **kwargs)

    def get_slot(self, *args, **kwargs):
        """As that of the wrapped optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """As that of the wrapped optimizer."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        """As that of the wrapped optimizer."""
        return self._optimizer.variables(*args, **kwargs)


def _initialized(variable):
    """The value of a variable of a session, also where its initializer runs at the same time."""
    return tf.cond(tf.compat.v1.is_variable_initialized(variable), variable.read_value, lambda: variable.initial_value)


class _DistributedAdasumOptimizer(_LegacyOptimizer):
    """Combines the steps of the ranks by Adasum, rather than their gradients."""

    def __init__(self, optimizer, name, use_locking, device_dense, compression, backward_passes_per_step):
        super().__init__(name=name or 'DistributedDelta{}'.format(type(optimizer).__name__), use_locking=use_locking)
        self._optimizer = optimizer
        self._device = device_dense
        self._compression = compression
        self._passes = backward_passes_per_step
        self._starts = {}
        self._counter = None

    def compute_gradients(self, *args, **kwargs):
        """As that of the wrapped optimizer."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Steps, and replaces the steps since the last combination by their Adasum.

        Args:
            grads_and_vars: Pairs of a gradient and its variable.
            global_step: A counter.
            name: The name of the operation.

        Returns: The operation.
        """
        pairs = [(grad, variable) for grad, variable in grads_and_vars]
        variables = [variable for grad, variable in pairs if grad is not None]
        with tf.init_scope():
            for variable in variables:
                if variable.ref() not in self._starts:
                    initial = variable if tf.executing_eagerly() else _initialized(variable)
                    self._starts[variable.ref()] = tf.Variable(initial, trainable=False, name='delta_start')
            if self._counter is None:
                self._counter = tf.Variable(0, trainable=False, name='delta_counter')
        stepped = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        with tf.control_dependencies([] if stepped is None or tf.executing_eagerly() else [stepped]):
            count = self._counter.assign_add(1)

        def combine():
            done = []
            for variable in variables:
                start = self._starts[variable.ref()]
                delta = allreduce(variable - start, op=Adasum, compression=self._compression, device_dense=self._device)
                target = start + delta
                with tf.control_dependencies([] if tf.executing_eagerly() else [target]):
                    done += [variable.assign(target), start.assign(target)]
            done.append(self._counter.assign(0))
            if tf.executing_eagerly():
                return tf.constant(True)
            with tf.control_dependencies([tf.convert_to_tensor(value) for value in done]):
                return tf.identity(tf.constant(True))
        return tf.cond(tf.equal(count, self._passes), combine, lambda: tf.constant(False))

    def get_slot(self, *args, **kwargs):
        """As that of the wrapped optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """As that of the wrapped optimizer."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        """As that of the wrapped optimizer."""
        return self._optimizer.variables(*args, **kwargs)


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense='', device_sparse='',
                         compression=Compression.none, sparse_as_dense=False, backward_passes_per_step=1, op=Average,
                         gradient_predivide_factor=1.0, average_aggregated_gradients=False, num_groups=0, groups=None,
                         process_set=global_process_set, scale_local_gradients=True):
    """An optimizer that combines the gradients of all ranks before it applies them.

    Args:
        optimizer: An optimizer of tf.compat.v1.train or of Keras.
        name: The name of its operations.
        use_locking: See tf.compat.v1.train.Optimizer.
        device_dense: Where to place the operations for tensors.
        device_sparse: Where to place those for slices.
        compression: How gradients are sent.
        sparse_as_dense: Whether slices are made tensors first.
        backward_passes_per_step: Number of backward passes whose gradients are added up before they are combined.
        op: hvd.Average, Sum, or for tf.compat.v1.train Adasum.
        gradient_predivide_factor: Gradients are divided by this number before they are summed, and by the rest after it.
        average_aggregated_gradients: Whether what was added up is divided by the number of passes.
        num_groups: Deprecated: see groups.
        groups: A number of groups, or lists of variables whose gradients are combined together.
        process_set: The ranks that take part.
        scale_local_gradients: Whether gradients of local variables are divided by the number of ranks.

    Returns: An optimizer.

    Raises:
        ValueError: An argument is wrong, or the optimizer is of another kind.
        NotImplementedError: Adasum on another process set than the world.
    """
    groups = check_reduction(op, gradient_predivide_factor, num_groups, groups, process_set)
    if op == Adasum and average_aggregated_gradients:
        raise ValueError('Adasum does not support average_aggregated_gradients == True')
    if isinstance(optimizer, _LegacyOptimizer):
        if op == Adasum:
            return _DistributedAdasumOptimizer(optimizer, name, use_locking, device_dense, compression,
                                               backward_passes_per_step)
        reduction = GradientReduction(name or 'Distributed{}'.format(type(optimizer).__name__), device_dense, device_sparse,
                                      compression, sparse_as_dense, op, gradient_predivide_factor, groups, process_set)
        return _DistributedOptimizer(optimizer, name, use_locking, reduction, sparse_as_dense, backward_passes_per_step,
                                     average_aggregated_gradients, process_set, scale_local_gradients)
    if not hasattr(optimizer, 'get_config'):
        raise ValueError('Provided optimizer doesn\'t inherit from either legacy TensorFlow or Keras optimizer: {}'.format(
            type(optimizer)))
    if op == Adasum:
        raise ValueError('op == Adasum is not supported yet with Keras')
    from horovod.tensorflow import keras
    return keras.DistributedOptimizer(
        optimizer, name=name, device_dense=device_dense, device_sparse=device_sparse, compression=compression,
        sparse_as_dense=sparse_as_dense, gradient_predivide_factor=gradient_predivide_factor, op=op,
        backward_passes_per_step=backward_passes_per_step, average_aggregated_gradients=average_aggregated_gradients,
        groups=groups, process_set=process_set, scale_local_gradients=scale_local_gradients)
