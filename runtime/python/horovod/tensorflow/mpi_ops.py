"""The collectives as operations of TensorFlow, with gradients. They are asynchronous: no thread of TensorFlow waits."""

import tensorflow as tf

from horovod.common import basics as _common_basics
from horovod.common.exceptions import HorovodInternalError  # noqa: F401 (part of the interface)
from horovod.common.process_sets import (  # noqa: F401 (part of the interface)
    ProcessSet, _temp_process_set_object, add_process_set, global_process_set, remove_process_set)
from horovod.common.util import get_average_backwards_compatibility_fun, num_rank_is_power_2
from horovod.numpy import (  # noqa: F401 (part of the interface)
    ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built, should_stop, shutdown,
    size, start_timeline, stop_timeline)
from horovod.tensorflow import native
from horovod.tensorflow.util import gradient

_basics = _common_basics.shared()

Average = _basics.Average
Sum = _basics.Sum
Adasum = _basics.Adasum
Min = _basics.Min
Max = _basics.Max
Product = _basics.Product

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun(_basics)

_normalize_name = native.normalized


def check_num_rank_power_of_2(num_rank):
    """Returns whether a number of ranks is a power of two.

    Args:
        num_rank: An int.

    Returns: True or False.
    """
    return num_rank_is_power_2(num_rank)


def _check_has_gpu():
    return bool(tf.config.list_physical_devices('GPU'))


def _factor(number):
    """As text: an attribute would keep half of its digits."""
    return float(number).hex()


def _as_list(tensors, operation):
    tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]
    if not tensors:
        raise ValueError('hvd.{} takes at least one tensor, but was given an empty list.'.format(operation))
    return tensors


def _without_rows(result, tensor):
    """Says what is known of the shape in a graph: all but the number of rows."""
    if not tf.executing_eagerly() and tensor.shape.rank:
        result.set_shape([None] + tensor.shape.as_list()[1:])
    return result


# ---- the collectives


def _allreduce(tensor, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0, ignore_name_scope=False,
               process_set=global_process_set):
    tensor = tf.convert_to_tensor(tensor)
    return native.operations().horovod_allreduce(
        tensor=tensor, reduce_op=op, prescale=_factor(prescale_factor), postscale=_factor(postscale_factor),
        **native.naming('HorovodAllreduce', name, tensor, ignore_name_scope, process_set))


def _grouped_allreduce(tensors, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0, ignore_name_scope=False,
                       process_set=global_process_set):
    tensors = _as_list(tensors, 'grouped_allreduce')
    return list(native.operations().horovod_grouped_allreduce(
        tensors=tensors, reduce_op=op, prescale=_factor(prescale_factor), postscale=_factor(postscale_factor),
        **native.naming('HorovodGroupedAllreduce', name, tensors[0], ignore_name_scope, process_set)))


def allgather(tensor, name=None, ignore_name_scope=False, process_set=global_process_set):
    """Concatenates the tensors of all ranks along dimension 0, in order of rank.

    Args:
        tensor: A tensor of at least one dimension; the first may differ between ranks.
        name: Matches the calls of the ranks; by default the name of the node, or in eager mode the order of the calls.
        ignore_name_scope: Whether the name is used without its name scope.
        process_set: The ranks that take part.

    Returns: A tensor. Its gradient is the average over the ranks of their gradients for the rows of this rank.
    """
    tensor = tf.convert_to_tensor(tensor)
    result = native.operations().horovod_allgather(
        tensor=tensor, **native.naming('HorovodAllgather', name, tensor, ignore_name_scope, process_set))
    return _without_rows(result, tensor)


def grouped_allgather(tensors, name=None, ignore_name_scope=False, process_set=global_process_set):
    """allgather() of several tensors at once.

    Args:
        tensors: A list of tensors.
        name: See allgather().
        ignore_name_scope: See allgather().
        process_set: The ranks that take part.

    Returns: A list of tensors.
    """
    tensors = _as_list(tensors, 'grouped_allgather')
    results = native.operations().horovod_grouped_allgather(
        tensors=tensors, **native.naming('HorovodGroupedAllgather', name, tensors[0], ignore_name_scope, process_set))
    return [_without_rows(result, tensor) for result, tensor in zip(results, tensors)]


def broadcast(tensor, root_rank, name=None, ignore_name_scope=False, process_set=global_process_set):
    """Gives every rank the tensor of one.

    Args:
        tensor: A tensor, of the same shape and dtype on every rank.
        root_rank: The rank of the world whose tensor is sent.
        name: See allgather().
        ignore_name_scope: See allgather().
        process_set: The ranks that take part.

    Returns: A tensor.
    """
    tensor = tf.convert_to_tensor(tensor)
    return native.operations().horovod_broadcast(
        tensor=tensor, root_rank=root_rank,
        **native.naming('HorovodBroadcast', name, tensor, ignore_name_scope, process_set))


def _grouped_broadcast(tensors, root_rank, name=None, process_set=global_process_set):
    tensors = _as_list(tensors, 'broadcast_variables')
    return list(native.operations().horovod_grouped_broadcast(
        tensors=tensors, root_rank=root_rank,
        **native.naming('HorovodGroupedBroadcast', name, tensors[0], False, process_set)))


def _is_resource(variable):
    from tensorflow.python.ops import resource_variable_ops
    return isinstance(variable, resource_variable_ops.BaseResourceVariable) or not hasattr(variable, '_ref')


def broadcast_(variables, root_rank, name=None, process_set=global_process_set):
    """Gives variables on every rank the values of one.

    Args:
        variables: A list of variables.
        root_rank: The rank of the world whose values are sent.
        name: See allgather().
        process_set: The ranks that take part.

    Returns: The variables, with their new values; in a graph after they were assigned.

    Raises:
        ValueError: Variables of both kinds, those that are resources and older ones, are in the list.
    """
    variables = list(variables)
    if not variables:
        return []
    kinds = {_is_resource(variable) for variable in variables}
    if len(kinds) > 1:
        raise ValueError('hvd.broadcast_ takes variables that are resources, or older ones, but not both at once.')
    values = _grouped_broadcast(variables, root_rank, name, process_set)
    assigned = [variable.assign(value) for variable, value in zip(variables, values)]
    return variables if tf.executing_eagerly() else assigned


def alltoall(tensor, splits=None, name=None, ignore_name_scope=False, process_set=global_process_set):
    """Sends a part of the tensor to each rank, and concatenates what comes from each.

    Args:
        tensor: A tensor of at least one dimension.
        splits: How many rows each rank gets, in order of rank; None for equal shares.
        name: See allgather().
        ignore_name_scope: See allgather().
        process_set: The ranks that take part.

    Returns: A tensor; where splits are given, a pair of it and of how many rows came from each rank.
    """
    tensor = tf.convert_to_tensor(tensor)
    given = tf.constant([], tf.int32) if splits is None else tf.convert_to_tensor(splits, dtype=tf.int32)
    result, received = native.operations().horovod_alltoall(
        tensor=tensor, splits=given,
        **native.naming('HorovodAlltoall', name, tensor, ignore_name_scope, process_set))
    _without_rows(result, tensor)
    return result if splits is None else (result, received)


def _reducescatter(tensor, name=None, op=Sum, ignore_name_scope=False, process_set=global_process_set, prescale_factor=1.0,
                   postscale_factor=1.0):
    tensor = tf.convert_to_tensor(tensor)
    result = native.operations().horovod_reducescatter(
        tensor=tensor, reduce_op=op, prescale=_factor(prescale_factor), postscale=_factor(postscale_factor),
        **native.naming('HorovodReducescatter', name, tensor, ignore_name_scope, process_set))
    return _without_rows(result, tensor)


def _grouped_reducescatter(tensors, name=None, op=Sum, ignore_name_scope=False, process_set=global_process_set,
                           prescale_factor=1.0, postscale_factor=1.0):
    tensors = _as_list(tensors, 'grouped_reducescatter')
    results = native.operations().horovod_grouped_reducescatter(
        tensors=tensors, reduce_op=op, prescale=_factor(prescale_factor), postscale=_factor(postscale_factor),
        **native.naming('HorovodGroupedReducescatter', name, tensors[0], ignore_name_scope, process_set))
    return [_without_rows(result, tensor) for result, tensor in zip(results, tensors)]


def join():
    """Says that this rank has no more data; blocks until all ranks have joined. Meanwhile it takes part in the others'
    allreduce with zeros.

    Returns: A tensor: the rank that joined last.
    """
    return native.operations().horovod_join(token=native.token())


def size_op(process_set_id=0, name=None):
    """The size of a process set, asked for when the graph runs.

    Args:
        process_set_id: The set; 0 is the world.
        name: The name of the node.

    Returns: An int32 scalar.
    """
    return native.operations().horovod_size(process_set_id=process_set_id, name=name)


def process_set_included_op(process_set_id=0, name=None):
    """Whether this rank is in a process set, asked for when the graph runs.

    Args:
        process_set_id: The set; 0 is the world.
        name: The name of the node.

    Returns: An int32 scalar, 0 or 1.
    """
    return native.operations().horovod_process_set_included(process_set_id=process_set_id, name=name)


def local_size_op(name=None):
    """Number of ranks on this host, asked for when the graph runs.

    Args:
        name: The name of the node.

    Returns: An int32 scalar.
    """
    return native.operations().horovod_local_size(name=name)


def rank_op(name=None):
    """Rank of this process in the world, asked for when the graph runs.

    Args:
        name: The name of the node.

    Returns: An int32 scalar.
    """
    return native.operations().horovod_rank(name=name)


def local_rank_op(name=None):
    """Rank of this process among those on its host, asked for when the graph runs.

    Args:
        name: The name of the node.

    Returns: An int32 scalar.
    """
    return native.operations().horovod_local_rank(name=name)


# ---- gradients: of each input of the operation, the last of which is its token


def _set_of(op):
    return _temp_process_set_object(int(op.get_attr('process_set_id')))


def _number(op, name):
    text = op.get_attr(name)
    return float.fromhex((text.decode() if isinstance(text, bytes) else text))


def _reduction(op):
    return {'op': int(op.get_attr('reduce_op')), 'prescale_factor': _number(op, 'prescale'),
            'postscale_factor': _number(op, 'postscale'), 'ignore_name_scope': bool(op.get_attr('ignore_name_scope')),
            'process_set': _set_of(op)}


def _average(grads, op):
    """The gradients averaged over the ranks, as tensors."""
    grads = [tf.convert_to_tensor(grad) for grad in grads]
    arguments = {'op': Average, 'ignore_name_scope': bool(op.get_attr('ignore_name_scope')), 'process_set': _set_of(op)}
    if len(grads) == 1:
        return [_allreduce(grads[0], **arguments)]
    return _grouped_allreduce(grads, **arguments)


@gradient('HorovodAllreduce')
def _allreduce_grad(op, grad):
    return [_allreduce(grad, **_reduction(op)), None]


@gradient('HorovodGroupedAllreduce')
def _grouped_allreduce_grad(op, *grads):
    return _grouped_allreduce(grads, **_reduction(op)) + [None]


def _own_rows(op, grads):
    """Of gradients of what was gathered, the rows that came from this rank."""
    process_set = _set_of(op)
    inputs = list(op.inputs)[:len(grads)]
    grads = _average(grads, op)
    rows = tf.stack([tf.shape(tensor)[0] for tensor in inputs])
    all_rows = tf.reshape(allgather(rows, ignore_name_scope=bool(op.get_attr('ignore_name_scope')), process_set=process_set),
                          [-1, len(inputs)])
    begins = tf.reduce_sum(all_rows[:process_set.rank()], axis=0)
    return [grad[begins[index]:begins[index] + rows[index]] for index, grad in enumerate(grads)]


@gradient('HorovodAllgather')
def _allgather_grad(op, grad):
    return _own_rows(op, [grad]) + [None]


@gradient('HorovodGroupedAllgather')
def _grouped_allgather_grad(op, *grads):
    return _own_rows(op, list(grads)) + [None]


def _at_root(op, grads):
    # On a rank that multiplied by a constant 0, the reduction would be pruned from the graph, and the others would wait for it.
    is_root = tf.equal(rank_op(), int(op.get_attr('root_rank')))
    return [tf.where(is_root, grad, tf.zeros_like(grad)) for grad in _average(grads, op)]


@gradient('HorovodBroadcast')
def _broadcast_grad(op, grad):
    return _at_root(op, [grad]) + [None]


@gradient('HorovodGroupedBroadcast')
def _grouped_broadcast_grad(op, *grads):
    return _at_root(op, list(grads)) + [None]


@gradient('HorovodAlltoall')
def _alltoall_grad(op, grad, _):
    back, _ = alltoall(grad, splits=op.outputs[1], ignore_name_scope=bool(op.get_attr('ignore_name_scope')),
                       process_set=_set_of(op))
    return [back, None, None]


def _scattered(op, grads):
    process_set = _set_of(op)
    factor = _number(op, 'prescale') * _number(op, 'postscale')
    if op.get_attr('reduce_op') == Sum:
        factor *= process_set.size()
    return process_set, [tf.convert_to_tensor(grad) * tf.cast(factor, grad.dtype) for grad in grads]


@gradient('HorovodReducescatter')
def _reducescatter_grad(op, grad):
    process_set, grads = _scattered(op, [grad])
    return [allgather(grads[0], ignore_name_scope=bool(op.get_attr('ignore_name_scope')), process_set=process_set), None]


@gradient('HorovodGroupedReducescatter')
def _grouped_reducescatter_grad(op, *grads):
    process_set, grads = _scattered(op, grads)
    return grouped_allgather(grads, ignore_name_scope=bool(op.get_attr('ignore_name_scope')), process_set=process_set) + [None]


for _query in ('Size', 'ProcessSetIncluded', 'LocalSize', 'Rank', 'LocalRank', 'Token', 'Join'):
    tf.no_gradient('Horovod' + _query)
