"""Adding up the gradients of several backward passes before they are reduced."""

import tensorflow as tf

from horovod.tensorflow.mpi_ops import global_process_set
from horovod.tensorflow.util import ref_of


def scaled_local(grad, process_set):
    """The gradient of a local variable, which is not reduced: divided by the number of ranks, as the others are.

    Args:
        grad: A tensor, slices or None.
        process_set: The ranks that train together.

    Returns: The same kind.
    """
    if grad is None or process_set.size() is None:
        return grad
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(grad.values / process_set.size(), grad.indices, grad.dense_shape)
    return grad / process_set.size()


class _Helper:
    def _set_up(self, backward_passes_per_step, allreduce_func, sparse_as_dense, average_aggregated_gradients, process_set,
                scale_local_gradients, name):
        if backward_passes_per_step <= 0:
            raise ValueError('backward_passes_per_step must be > 0')
        self.backward_passes_per_step = backward_passes_per_step
        self.allreduce_grads = allreduce_func
        self.sparse_as_dense = sparse_as_dense
        self.average_aggregated_gradients = average_aggregated_gradients
        self.process_set = process_set
        self.scale_local_gradients = scale_local_gradients
        self.name = name
        self.counter = None
        self.locally_aggregated_grads = []
        self._local_vars = set()

    def register_local_var(self, var):
        """Excludes a variable from the reduction.

        Args:
            var: The variable.
        """
        self._local_vars.add(ref_of(var))

    def _variable(self, value, name):
        with tf.init_scope():
            return tf.Variable(value, trainable=False, name=name)

    def _make_variables(self, grads):
        self.counter = self._variable(0, 'aggregation_counter')
        for index, grad in enumerate(grads):
            shape = None if grad is None else grad.shape
            if shape is not None and not shape.is_fully_defined():
                raise ValueError('backward_passes_per_step > 1 needs gradients of known shapes, but number {} has {}.'.format(
                    index, shape))
            made = None
            if grad is not None:
                with tf.init_scope():
                    made = tf.Variable(tf.zeros(shape, grad.dtype), trainable=False, name='aggregated_grad_{}'.format(index))
            self.locally_aggregated_grads.append(made)

    def _reduce(self, grads, vars):
        """The gradients of all variables, of which the local ones are only scaled."""
        places = [index for index, var in enumerate(vars) if ref_of(var) not in self._local_vars]
        reduced = list(grads)
        for index, grad in zip(places, self.allreduce_grads([grads[index] for index in places],
                                                            [vars[index] for index in places])):
            reduced[index] = grad
        if self.scale_local_gradients:
            for index in set(range(len(grads))).difference(places):
                reduced[index] = scaled_local(reduced[index], self.process_set)
        return reduced

    def compute_gradients(self, grads, vars):
        """Adds the gradients of one backward pass; at the last of a step reduces what was added up.

        Args:
            grads: A list of tensors, slices and None.
            vars: Their variables.

        Returns: A list: the reduced gradients at the end of a step, else the sums so far.
        """
        grads = list(grads)
        vars = list(vars)
        if self.backward_passes_per_step == 1:
            return self._reduce(grads, vars)
        for index, grad in enumerate(grads):
            if isinstance(grad, tf.IndexedSlices):
                if not self.sparse_as_dense:
                    raise ValueError('IndexedSlices are not supported when `backward_passes_per_step` > 1 and '
                                     '`sparse_as_dense` is False.')
                grads[index] = tf.convert_to_tensor(grad)
        if self.counter is None:
            self._make_variables(grads)
        with tf.control_dependencies([] if tf.executing_eagerly() else [grad for grad in grads if grad is not None]):
            counted = self.counter.assign_add(1)
            sums = [None if grad is None else sum_.assign_add(grad)
                    for sum_, grad in zip(self.locally_aggregated_grads, grads)]
        present = [index for index, grad in enumerate(grads) if grad is not None]
        values = [tf.convert_to_tensor(sums[index]) for index in present]

        def finish():
            totals = list(values)
            if self.average_aggregated_gradients:
                totals = [total / self.backward_passes_per_step for total in totals]
            reduced = self._reduce(totals, [vars[index] for index in present])
            with tf.control_dependencies([] if tf.executing_eagerly() else reduced):
                cleared = [self.locally_aggregated_grads[index].assign(
                    tf.zeros_like(self.locally_aggregated_grads[index])) for index in present]
                cleared.append(self.counter.assign(0))
            if tf.executing_eagerly():
                return tuple(reduced)
            with tf.control_dependencies([tf.convert_to_tensor(value) for value in cleared]):
                return tuple(tf.identity(grad) for grad in reduced)

        def wait():
            return tuple(tf.identity(value) for value in values)

        with tf.control_dependencies([] if tf.executing_eagerly() else values):
            results = tf.cond(tf.equal(counted, self.backward_passes_per_step), finish, wait)
        if not isinstance(results, (list, tuple)):
            results = [results]
        given = [None] * len(grads)
        for index, result in zip(present, results):
            given[index] = result
        return given

    def apply_gradients(self, apply_grads_closure, optimizer, *args, **kwargs):
        """Applies gradients at the end of a step; else counts an iteration.

        Args:
            apply_grads_closure: A function that applies them.
            optimizer: The optimizer, whose `iterations` count.
            args: The first is a list of pairs of a gradient and its variable.
            kwargs: May have global_step, which counts.

        Returns: What the closure returns, or an operation.
        """
        if self.backward_passes_per_step == 1:
            return apply_grads_closure()

        def apply():
            done = apply_grads_closure()
            if tf.executing_eagerly() or done is None:
                return tf.constant(True)
            with tf.control_dependencies([done]):
                return tf.constant(True)

        def count():
            steps = [kwargs.get('global_step'), getattr(optimizer, 'iterations', None)]
            counted = [step.assign_add(1) for step in steps if step is not None]
            if tf.executing_eagerly():
                return tf.constant(False)
            with tf.control_dependencies([tf.convert_to_tensor(step) for step in counted]):
                return tf.identity(tf.constant(False))

        pairs = list(args[0]) if args else []
        with tf.control_dependencies([] if tf.executing_eagerly() else [grad for grad, _ in pairs if grad is not None]):
            done = tf.equal(tf.convert_to_tensor(self.counter) if self.counter is not None else 0, 0)
            return tf.cond(done, apply, count)


class LocalGradientAggregationHelper(_Helper):
    """Adds gradients up in a graph.

    Args:
        backward_passes_per_step: How many backward passes are one step.
        allreduce_func: Reduces a list of gradients, of a list of variables.
        sparse_as_dense: Whether slices are made tensors.
        average_aggregated_gradients: Whether the sums are divided by the number of passes.
        rank: Ignored.
        optimizer_type: Ignored.
        process_set: The ranks that train together.
        scale_local_gradients: Whether the gradients of local variables are divided by the number of ranks.
        name: Ignored.
    """

    _OPTIMIZER_TYPE_KERAS = 'optimizer_type_keras'
    _OPTIMIZER_TYPE_LEGACY = 'optimizer_type_legacy'

    def __init__(self, backward_passes_per_step, allreduce_func, sparse_as_dense, average_aggregated_gradients, rank=0,
                 optimizer_type=None, process_set=global_process_set, scale_local_gradients=True, name=''):
        self._set_up(backward_passes_per_step, allreduce_func, sparse_as_dense, average_aggregated_gradients, process_set,
                     scale_local_gradients, name)
        self.rank = rank
        self.optimizer_type = optimizer_type


class LocalGradientAggregationHelperEager(_Helper):
    """Adds gradients up in eager mode, or in a tf.function.

    Args:
        backward_passes_per_step: How many backward passes are one step.
        allreduce_func: Reduces a list of gradients, of a list of variables.
        sparse_as_dense: Whether slices are made tensors.
        average_aggregated_gradients: Whether the sums are divided by the number of passes.
        process_set: The ranks that train together.
        scale_local_gradients: Whether the gradients of local variables are divided by the number of ranks.
    """

    def __init__(self, backward_passes_per_step, allreduce_func, sparse_as_dense, average_aggregated_gradients,
                 process_set=global_process_set, scale_local_gradients=True):
        self._set_up(backward_passes_per_step, allreduce_func, sparse_as_dense, average_aggregated_gradients, process_set,
                     scale_local_gradients, '')
