"""The operations of libhvd_tf.so as callbacks into Python, for a TensorFlow that cannot use the library: the same names, arguments,
values and gradients.

A callback occupies a thread of TensorFlow until the other ranks have come, so the callbacks of a graph must not run beside each other:
with fewer threads than callbacks, ranks that begin with different ones would wait for each other forever. A tf.function orders them,
since they are stateful; in a graph of sessions each has a control dependency on the one before it.
"""

import contextlib

import tensorflow as tf

from horovod import numpy as hvd
from horovod.common import _library
from horovod.common.exceptions import HorovodInternalError
from horovod.tensorflow.util import gradients


class _Set:
    """A process set as operations want it."""

    def __init__(self, number):
        self.process_set_id = number


class _NoSuchSet(HorovodInternalError):
    is_disagreement = True


class _Node:
    """What functions of gradients look at in an operation."""

    def __init__(self, inputs, outputs, attributes):
        self.inputs, self.outputs, self._attributes = inputs, outputs, attributes

    def get_attr(self, name):
        return self._attributes[name]


def _factors(attributes):
    return {'op': attributes['reduce_op'], 'prescale_factor': float.fromhex(attributes['prescale']),
            'postscale_factor': float.fromhex(attributes['postscale'])}


def _run(operation, name, attributes, arrays):
    """The collective on arrays, which blocks.

    Returns: A list of arrays.
    """
    common = {'name': name, 'process_set': _Set(attributes['process_set_id'])}
    if operation == 'HorovodAllreduce':
        return [hvd.allreduce(arrays[0], **_factors(attributes), **common)]
    if operation == 'HorovodGroupedAllreduce':
        return hvd.grouped_allreduce(arrays, **_factors(attributes), **common)
    if operation == 'HorovodAllgather':
        return [hvd.allgather(arrays[0], **common)]
    if operation == 'HorovodGroupedAllgather':
        return hvd.grouped_allgather(arrays, **common)
    if operation == 'HorovodReducescatter':
        return [hvd.reducescatter(arrays[0], **_factors(attributes), **common)]
    if operation == 'HorovodGroupedReducescatter':
        return hvd.grouped_reducescatter(arrays, **_factors(attributes), **common)
    if operation == 'HorovodAlltoall':
        splits = arrays[1]
        if splits.ndim != 1:
            raise ValueError('alltoall takes splits as a vector, one entry for each rank of the set')
        return list(hvd.synchronize(hvd.alltoall_async(arrays[0], splits if splits.size else None, **common)))
    handles = [hvd.broadcast_async(array, attributes['root_rank'], process_set=common['process_set'],
                                   name=name and '{}.{}'.format(name, index) if len(arrays) > 1 else name)
               for index, array in enumerate(arrays)]
    return [hvd.synchronize(handle) for handle in handles]


def _error(error, operation):
    """The exception of TensorFlow that libhvd_tf.so would give for one of the runtime."""
    if isinstance(error, NotImplementedError):
        kind = tf.errors.UnimplementedError
    elif not isinstance(error, HorovodInternalError):
        kind = tf.errors.InvalidArgumentError if hvd.is_initialized() else tf.errors.FailedPreconditionError
    else:
        kind = tf.errors.FailedPreconditionError if getattr(error, 'is_disagreement', False) else tf.errors.UnknownError
    return kind(None, None, '{} [Op:{}]'.format(error, operation))


def _results(function, operation, inputs, types, name=None):
    """The tensors that function(*arrays) gives for these inputs: now, or whenever the graph runs.

    Args:
        function: Takes arrays and returns a list of them.
        operation: The name of the operation.
        inputs: A list of tensors.
        types: Those of the results.
        name: The name of the node.

    Returns: A list of tensors.
    """
    def call(*tensors):
        try:
            return [tf.convert_to_tensor(array, dtype) for array, dtype in
                    zip(function(*[tensor.numpy() for tensor in tensors]), types)]
        except (ValueError, RuntimeError) as error:  # HorovodInternalError and NotImplementedError are RuntimeErrors
            raise _error(error, operation) from error
    if tf.executing_eagerly():
        with tf.device('CPU:0'):
            return call(*inputs)
    graph = tf.compat.v1.get_default_graph()
    with _after_the_one_before(graph), tf.device('CPU:0'):
        results = tf.py_function(call, inputs, types, name=name)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    graph._horovod_last = results[0].op
    return results


def _after_the_one_before(graph):
    last = getattr(graph, '_horovod_last', None)
    is_of_function = hasattr(graph, 'outer_graph')
    if last is None or is_of_function or last._get_control_flow_context() is not graph._get_control_flow_context():
        return contextlib.nullcontext()
    return graph.control_dependencies([last])


def _name_of(attributes):
    """The name by which the ranks match a call; None in the order of the calls."""
    if attributes.get('eager'):
        name = attributes['tensor_name']
    else:
        name = tf.compat.v1.get_default_graph().unique_name(attributes['name'])
    if name == '?':
        return None
    return name.rsplit('/', 1)[-1] if attributes['ignore_name_scope'] else name


def _has_shape_of_input(operation):
    return 'reduce' in operation and 'scatter' not in operation or 'Broadcast' in operation


def _collective(operation, tensors, attributes, splits=None):
    """A collective with its gradient, which is that of the operation of the library.

    Returns: A list of tensors.
    """
    name = _name_of(attributes)
    extra = [] if splits is None else [splits]

    def function(*arrays):
        return _run(operation, name, attributes, list(arrays))

    @tf.custom_gradient
    def call(*tensors):
        types = [tensor.dtype for tensor in tensors] + ([] if splits is None else [tf.int32])
        results = _results(function, operation, list(tensors) + extra, types)
        if not tf.executing_eagerly():
            for result, tensor in zip(results, tensors):
                if _has_shape_of_input(operation):
                    result.set_shape(tensor.shape)
                elif tensor.shape.rank:
                    result.set_shape([None] + tensor.shape.as_list()[1:])

        def gradient(*grads):
            node = _Node(list(tensors) + extra, results, attributes)
            return gradients[operation](node, *grads)[:len(tensors)]
        return results if len(results) > 1 else results[0], gradient
    results = call(*tensors)
    return list(results) if isinstance(results, (list, tuple)) else [results]


class PythonOperations:
    """Stands in for the module that tf.load_op_library makes of libhvd_tf.so. Tokens are ignored."""

    def horovod_allreduce(self, tensor, token=None, **attributes):
        """As HorovodAllreduce."""
        return _collective('HorovodAllreduce', [tensor], attributes)[0]

    def horovod_grouped_allreduce(self, tensors, token=None, **attributes):
        """As HorovodGroupedAllreduce."""
        return _collective('HorovodGroupedAllreduce', tensors, attributes)

    def horovod_allgather(self, tensor, token=None, **attributes):
        """As HorovodAllgather."""
        return _collective('HorovodAllgather', [tensor], attributes)[0]

    def horovod_grouped_allgather(self, tensors, token=None, **attributes):
        """As HorovodGroupedAllgather."""
        return _collective('HorovodGroupedAllgather', tensors, attributes)

    def horovod_broadcast(self, tensor, token=None, **attributes):
        """As HorovodBroadcast."""
        return _collective('HorovodBroadcast', [tensor], attributes)[0]

    def horovod_grouped_broadcast(self, tensors, token=None, **attributes):
        """As HorovodGroupedBroadcast."""
        return _collective('HorovodGroupedBroadcast', tensors, attributes)

    def horovod_alltoall(self, tensor, splits, token=None, **attributes):
        """As HorovodAlltoall."""
        return _collective('HorovodAlltoall', [tensor], attributes, splits)

    def horovod_reducescatter(self, tensor, token=None, **attributes):
        """As HorovodReducescatter."""
        return _collective('HorovodReducescatter', [tensor], attributes)[0]

    def horovod_grouped_reducescatter(self, tensors, token=None, **attributes):
        """As HorovodGroupedReducescatter."""
        return _collective('HorovodGroupedReducescatter', tensors, attributes)

    def horovod_join(self, token=None):
        """As HorovodJoin."""
        return self._number('HorovodJoin', hvd.join)

    def horovod_size(self, process_set_id=0, name=None):
        """As HorovodSize."""
        return self._number('HorovodSize', lambda: _library.lib().hvd_process_set_size(process_set_id), name)

    def horovod_process_set_included(self, process_set_id=0, name=None):
        """As HorovodProcessSetIncluded."""
        def query():
            library = _library.lib()
            return -1 if library.hvd_process_set_size(process_set_id) < 0 else int(library.hvd_process_set_rank(process_set_id) >= 0)
        return self._number('HorovodProcessSetIncluded', query, name)

    def horovod_local_size(self, process_set_id=0, name=None):
        """As HorovodLocalSize."""
        return self._number('HorovodLocalSize', hvd.local_size, name)

    def horovod_rank(self, process_set_id=0, name=None):
        """As HorovodRank."""
        return self._number('HorovodRank', hvd.rank, name)

    def horovod_local_rank(self, process_set_id=0, name=None):
        """As HorovodLocalRank."""
        return self._number('HorovodLocalRank', hvd.local_rank, name)

    def horovod_token(self):
        """Callbacks need none, since they are stateful."""
        return None

    @staticmethod
    def _number(operation, query, name=None):
        def function():
            number = query()
            if number < 0:
                raise _NoSuchSet('there is no such process set' if hvd.is_initialized() else
                                 'Horovod has not been initialized on this rank; call hvd.init() first')
            return [number]
        result = _results(function, operation, [], [tf.int32], name)[0]
        result.set_shape([])
        return result
