"""allreduce() and its relatives on dense tensors and on slices, with compression."""

import tensorflow as tf

from horovod.common import _native
from horovod.tensorflow import mpi_ops, native
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.mpi_ops import (
    Adasum, Average, Sum, check_num_rank_power_of_2, global_process_set, handle_average_backwards_compatibility)


def _check_adasum(process_set):
    if process_set is not global_process_set and process_set.process_set_id != 0:
        raise NotImplementedError('op=hvd.Adasum works on the global process set only.')
    if not check_num_rank_power_of_2(mpi_ops.size()):
        raise NotImplementedError('op=hvd.Adasum needs a number of ranks that is a power of two, but there are {}.'
                                  .format(mpi_ops.size()))


def allreduce(tensor, average=None, device_dense='', device_sparse='', compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0, name=None, process_set=global_process_set, ignore_name_scope=False):
    """Combines the tensors of all ranks element by element.

    Args:
        tensor: A tensor or tf.IndexedSlices; of the same shape and dtype on every rank, but slices may have any number.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum.
        device_dense: Where to place the operation for a tensor.
        device_sparse: Where to place it for slices.
        compression: How it travels: hvd.Compression.none or fp16.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average. Slices: Average or Sum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        name: Matches the calls of the ranks; by default the name of the node, or in eager mode the order of the calls.
        process_set: The ranks that take part.
        ignore_name_scope: Whether the name is used without its name scope.

    Returns: A tensor or tf.IndexedSlices. The gradient is combined in the same way.
    """
    op = handle_average_backwards_compatibility(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        return _allreduce_slices(tensor, device_sparse, op, prescale_factor, postscale_factor, name, process_set,
                                 ignore_name_scope)
    if op == Adasum:
        _check_adasum(process_set)
    with tf.device(device_dense):
        sent, context = compression.compress(tf.convert_to_tensor(tensor))
        combined = mpi_ops._allreduce(sent, name, op, prescale_factor, postscale_factor, ignore_name_scope, process_set)
        return compression.decompress(combined, context)


def _allreduce_slices(slices, device, op, prescale_factor, postscale_factor, name, process_set, ignore_name_scope):
    if op == Adasum:
        raise NotImplementedError('op=hvd.Adasum does not take tf.IndexedSlices; use sparse_as_dense=True.')
    if op not in (Average, Sum):
        raise NotImplementedError('tf.IndexedSlices can be combined by hvd.Average and hvd.Sum only; use '
                                  'tf.convert_to_tensor.')
    if prescale_factor != 1.0 or postscale_factor != 1.0:
        raise NotImplementedError('prescale_factor and postscale_factor are not for tf.IndexedSlices.')
    with tf.device(device):
        values = mpi_ops.allgather(slices.values, name and name + '.values', ignore_name_scope, process_set)
        indices = mpi_ops.allgather(slices.indices, name and name + '.indices', ignore_name_scope, process_set)
        if op == Average:
            members = process_set.size() if not _may_be_resized() else mpi_ops.size_op(process_set.process_set_id)
            values = values / tf.cast(members, values.dtype)
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)


def grouped_allreduce(tensors, average=None, device_dense='', device_sparse='', compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set, ignore_name_scope=False,
                      name=None):
    """allreduce() of several tensors at once.

    Args:
        tensors: A list of tensors or of tf.IndexedSlices.
        average: See allreduce().
        device_dense: See allreduce().
        device_sparse: See allreduce().
        compression: See allreduce().
        op: See allreduce().
        prescale_factor: See allreduce().
        postscale_factor: See allreduce().
        process_set: See allreduce().
        ignore_name_scope: See allreduce().
        name: See allreduce().

    Returns: A list of tensors or slices.
    """
    op = handle_average_backwards_compatibility(op, average)
    tensors = list(tensors)
    if not tensors:
        return tensors
    if any(isinstance(tensor, tf.IndexedSlices) for tensor in tensors):
        return [allreduce(tensor, None, device_dense, device_sparse, compression, op, prescale_factor, postscale_factor,
                          name and '{}.{}'.format(name, index), process_set, ignore_name_scope)
                for index, tensor in enumerate(tensors)]
    if op == Adasum:
        _check_adasum(process_set)
    with tf.device(device_dense):
        pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
        combined = mpi_ops._grouped_allreduce([sent for sent, _ in pairs], name, op, prescale_factor, postscale_factor,
                                              ignore_name_scope, process_set)
        return [compression.decompress(tensor, context) for tensor, (_, context) in zip(combined, pairs)]


def reducescatter(tensor, device_dense='', compression=Compression.none, op=Average, name=None,
                  process_set=global_process_set, ignore_name_scope=False, prescale_factor=1.0, postscale_factor=1.0):
    """Combines the tensors of all ranks and scatters the rows of the result.

    Args:
        tensor: A tensor of at least one dimension, of the same shape and dtype on every rank.
        device_dense: Where to place the operation.
        compression: How it travels.
        op: hvd.Average or hvd.Sum.
        name: See allreduce().
        process_set: The ranks that take part.
        ignore_name_scope: See allreduce().
        prescale_factor: See allreduce().
        postscale_factor: See allreduce().

    Returns: A tensor: the rows of this rank; the first ranks have one more if they cannot be shared evenly.
    """
    with tf.device(device_dense):
        sent, context = compression.compress(tf.convert_to_tensor(tensor))
        share = mpi_ops._reducescatter(sent, name, op, ignore_name_scope, process_set, prescale_factor, postscale_factor)
        return compression.decompress(share, context)


def grouped_reducescatter(tensors, device_dense='', compression=Compression.none, op=Average, process_set=global_process_set,
                          prescale_factor=1.0, postscale_factor=1.0):
    """reducescatter() of several tensors at once.

    Args:
        tensors: A list of tensors.
        device_dense: See reducescatter().
        compression: See reducescatter().
        op: See reducescatter().
        process_set: See reducescatter().
        prescale_factor: See reducescatter().
        postscale_factor: See reducescatter().

    Returns: A list of tensors.
    """
    with tf.device(device_dense):
        pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
        shares = mpi_ops._grouped_reducescatter([sent for sent, _ in pairs], None, op, False, process_set, prescale_factor,
                                                postscale_factor)
        return [compression.decompress(share, context) for share, (_, context) in zip(shares, pairs)]


# ---- for optimizers and tapes


def _may_be_resized():
    """Whether a graph that is built now may run in a world of another size."""
    return _native.is_elastic() and not tf.executing_eagerly()


def reduced_where_needed(tensors, reduce, process_set):
    """reduce(tensors), or the tensors themselves if this rank is alone in the set, or not in it.

    Args:
        tensors: A list of tensors and slices.
        reduce: A function of it.
        process_set: The ranks that take part.

    Returns: A list of tensors and slices.
    """
    if not tensors:
        return tensors
    if not _may_be_resized():
        return reduce(tensors) if process_set.included() and process_set.size() > 1 else tensors
    number = process_set.process_set_id
    included = tf.equal(mpi_ops.process_set_included_op(number), 1)
    needed = tf.logical_and(included, tf.greater(mpi_ops.size_op(number), 1))
    return list(tf.cond(needed, lambda: tuple(reduce(tensors)), lambda: tuple(tensors)))


def check_reduction(op, gradient_predivide_factor, num_groups, groups, process_set):
    """Checks the arguments that all optimizers and tapes share.

    Args:
        op: Average, Sum or Adasum.
        gradient_predivide_factor: The factor.
        num_groups: Deprecated: as groups.
        groups: None, a number, or a list of lists of variables.
        process_set: The ranks that take part.

    Returns: The groups.

    Raises:
        ValueError: One of them is wrong.
        NotImplementedError: Adasum on another process set than the world.
    """
    if gradient_predivide_factor != 1.0:
        if mpi_ops.rocm_built():
            raise ValueError('gradient_predivide_factor not supported yet with ROCm')
        if op != Average:
            raise ValueError('gradient_predivide_factor not supported with op != Average')
    if op == Adasum and process_set.process_set_id != 0:
        raise NotImplementedError('op=hvd.Adasum works on the global process set only.')
    if num_groups != 0:
        import warnings
        warnings.warn('Parameter `num_groups` has been replaced by `groups` and will be removed.', DeprecationWarning,
                      stacklevel=3)
        if groups is None:
            groups = num_groups
    if groups is not None:
        is_number = isinstance(groups, int) and not isinstance(groups, bool)
        if not (isinstance(groups, list) or is_number and groups > 0):
            raise ValueError('groups should be a non-negative integer or a list of list of tf.Variable.')
        if isinstance(groups, list) and not all(isinstance(group, (list, tuple)) for group in groups):
            raise ValueError('groups should be a non-negative integer or a list of list of tf.Variable.')
    return groups


class GradientReduction:
    """Reduces the gradients of a step.

    Args:
        name: The name scope of the operations.
        device_dense: See allreduce().
        device_sparse: See allreduce().
        compression: See allreduce().
        sparse_as_dense: Whether slices are made tensors first.
        op: See allreduce().
        gradient_predivide_factor: Gradients are divided by this number before they are summed, and by the rest after it.
        groups: A number of groups, or lists of variables whose gradients are combined together.
        process_set: The ranks that take part.
    """

    def __init__(self, name, device_dense, device_sparse, compression, sparse_as_dense, op, gradient_predivide_factor, groups,
                 process_set):
        self._name = name
        self._devices = (device_dense, device_sparse)
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._op = op
        self._factors = ({'prescale_factor': 1.0 / gradient_predivide_factor, 'postscale_factor': gradient_predivide_factor}
                         if op == Average and gradient_predivide_factor != 1.0 else {})
        self._groups = groups
        self._process_set = process_set

    def __call__(self, grads, vars=None, use_generic_names=False):
        """The reduced gradients.

        Args:
            grads: A list of tensors, slices and None, which stays None.
            vars: The variables, where groups are lists of them.
            use_generic_names: Names that are the same in each graph.

        Returns: A list.
        """
        grads = list(grads)
        if self._sparse_as_dense:
            grads = [tf.convert_to_tensor(grad) if isinstance(grad, tf.IndexedSlices) else grad for grad in grads]
        places = [index for index, grad in enumerate(grads) if grad is not None]

        def reduce(present):
            with tf.name_scope(self._name + '_Allreduce'):
                return self._reduce(present, [None if vars is None else vars[place] for place in places],
                                    use_generic_names)
        for place, grad in zip(places, reduced_where_needed([grads[place] for place in places], reduce, self._process_set)):
            grads[place] = grad
        return grads

    def _reduce(self, grads, variables, generic):
        result = list(grads)
        for number, indices in enumerate(self._partition(grads, variables)):
            name = 'grad_{}'.format(number) if generic and not tf.executing_eagerly() else None
            # The mean of slices needs no scale factors.
            factors = {} if isinstance(grads[indices[0]], tf.IndexedSlices) else self._factors
            arguments = dict(factors, compression=self._compression, op=self._op, process_set=self._process_set, name=name,
                             device_dense=self._devices[0], device_sparse=self._devices[1],
                             ignore_name_scope=name is not None)
            if len(indices) == 1:
                combined = [allreduce(grads[indices[0]], **arguments)]
            else:
                combined = grouped_allreduce([grads[index] for index in indices], **arguments)
            for index, grad in zip(indices, combined):
                result[index] = grad
        return result

    def _partition(self, grads, variables):
        """Lists of indices of gradients that travel together."""
        dense = [index for index, grad in enumerate(grads) if not isinstance(grad, tf.IndexedSlices)]
        alone = [[index] for index, grad in enumerate(grads) if isinstance(grad, tf.IndexedSlices)]
        if isinstance(self._groups, int):
            from horovod.common.util import split_list
            return alone + [part for part in split_list(dense, min(self._groups, len(dense)) or 1) if part]
        if isinstance(self._groups, list):
            from horovod.tensorflow.util import ref_of
            group_of = {ref_of(variable): number for number, group in enumerate(self._groups) for variable in group}
            parts = {}
            for index in dense:
                number = None if variables[index] is None else group_of.get(ref_of(variables[index]))
                parts.setdefault(('group', number) if number is not None else ('alone', index), []).append(index)
            return alone + list(parts.values())
        # Outside a graph nothing overlaps with the collectives, so a single one is best; callbacks run one after the other.
        if (tf.executing_eagerly() or native.are_callbacks()) and self._op != Adasum and dense:
            return alone + [dense]
        return alone + [[index] for index in dense]
