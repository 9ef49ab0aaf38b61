"""The operations of libhvd_tf.so in this TensorFlow, loaded once, and what they have in common."""

import os

import tensorflow as tf

from horovod.common import _native
from horovod.common.operations import process_set_id

TRIED = ((2, 13), (2, 21))

_operations = None


def _path():
    _native.load()
    return os.path.join(os.path.dirname(os.path.realpath(_native.path)), 'libhvd_tf.so')


def _load():
    path = _path()
    if not os.path.isfile(path):
        raise ImportError('horovod.tensorflow needs libhvd_tf.so beside {}, where it is not; build and install hvdrun anew.'
                          .format(_native.path))
    import ctypes
    # In this order: tf.load_op_library reads off what the library registers while it is loaded.
    loaded = tf.load_op_library(path)
    failure = ctypes.CDLL(path).hvd_tf_failure
    failure.restype = ctypes.c_char_p
    why = failure().decode('utf-8', 'replace')
    if why:
        raise ImportError('horovod.tensorflow cannot be used with TensorFlow {}: {}.'.format(tf.__version__, why))
    version = tuple(int(part) for part in tf.__version__.split('.')[:2])
    if not TRIED[0] <= version <= TRIED[1]:
        import warnings
        warnings.warn('horovod.tensorflow was tried with TensorFlow {}.{} to {}.{}, and this one is {}.'.format(
            *TRIED[0], *TRIED[1], tf.__version__), RuntimeWarning, stacklevel=2)
    return loaded


def operations():
    """The functions of the operations: horovod_allreduce and the like."""
    global _operations
    if _operations is None:
        _operations = _load()
    return _operations


_eager_token = None


def token():
    """An input that keeps an operation of a graph from being folded into a constant. It comes from a stateful operation, so
    the collectives themselves need not be stateful: those would run one after the other."""
    global _eager_token
    if tf.executing_eagerly():
        if _eager_token is None:
            with tf.device('CPU:0'):
                _eager_token = tf.constant(0, tf.int32)
        return _eager_token
    graph = tf.compat.v1.get_default_graph()
    if not hasattr(graph, 'outer_graph'):  # a graph of sessions, which has control flow of its own inside
        return operations().horovod_token()
    made = getattr(graph, '_horovod_token', None)
    if made is None:
        with tf.control_dependencies(None):
            made = graph._horovod_token = operations().horovod_token()
    return made


def naming(operation, name, tensor, ignore_name_scope, process_set):
    """The arguments by which all operations are named, for a call with this name. In a graph the name of the node counts; eager
    calls without a name are matched in their order."""
    arguments = {'process_set_id': process_set_id(process_set), 'token': token(),
                 'ignore_name_scope': bool(ignore_name_scope)}
    if tf.executing_eagerly():
        arguments.update(eager=True, tensor_name=name or '?')
        return arguments
    if name is None:
        name = '{}_{}'.format(operation, normalized(getattr(tensor, 'name', 'tensor')))
    graph = tf.compat.v1.get_default_graph()
    # So that two nodes are never taken for the same computation.
    arguments.update(name=name, unique_name=graph.unique_name(name, mark_as_used=False))
    return arguments


def normalized(name):
    """A name of a tensor as a name of a node."""
    return ''.join(letter if letter.isalnum() and letter.isascii() else '_' for letter in name)
