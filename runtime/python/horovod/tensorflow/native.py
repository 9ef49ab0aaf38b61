"""The operations of libhvd_tf.so in this TensorFlow, loaded once, and what they have in common. Where the library cannot be had, they are
callbacks into Python."""

import os

import tensorflow as tf

from horovod.common import _native
from horovod.common.operations import process_set_id

TRIED = ((2, 13), (2, 21))

_operations = None


def _path():
    return os.path.join(os.path.dirname(os.path.realpath(_native.path)), 'libhvd_tf.so')


def _load():
    """A pair: the functions of the library, and why there are none."""
    if os.environ.get('HOROVOD_TENSORFLOW_CALLBACKS') == '1':
        return None, 'HOROVOD_TENSORFLOW_CALLBACKS is 1'
    _native.load()
    if _native.alone is not None:
        return None, 'this package has no library'
    path = _path()
    if not os.path.isfile(path):
        return None, 'libhvd_tf.so is not beside {}'.format(_native.path)
    import ctypes
    # In this order: tf.load_op_library collects what the library registers while it is loaded.
    try:
        loaded = tf.load_op_library(path)
        failure = ctypes.CDLL(path).hvd_tf_failure
    except (OSError, tf.errors.OpError) as error:
        return None, 'libhvd_tf.so cannot be loaded: {}'.format(error)
    failure.restype = ctypes.c_char_p
    why = failure().decode('utf-8', 'replace')
    return (None, why) if why else (loaded, '')


def _warn(text):
    """One sentence, of rank 0."""
    if os.environ.get('HOROVOD_RANK', '0') == '0':
        import warnings
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _checked():
    loaded, why = _load()
    if loaded is None:
        from horovod.tensorflow.python_operations import PythonOperations
        _warn('horovod.tensorflow uses callbacks into Python (tf.py_function) for its collectives, which take longer: {}.'.format(
            why.rstrip('.')))
        return PythonOperations()
    version = tuple(int(part) for part in tf.__version__.split('.')[:2])
    if not TRIED[0] <= version <= TRIED[1]:
        _warn('horovod.tensorflow was tried with TensorFlow {}.{} to {}.{}, and this one is {}.'.format(
            *TRIED[0], *TRIED[1], tf.__version__))
    return loaded


def operations():
    """The functions of the operations: horovod_allreduce and the like."""
    global _operations
    if _operations is None:
        _operations = _checked()
    return _operations


def are_callbacks():
    """Whether the operations call Python, and hence occupy a thread of TensorFlow each."""
    return type(operations()).__name__ == 'PythonOperations'


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
    if not hasattr(graph, 'outer_graph'):  # a session graph with control flow of its own
        return operations().horovod_token()
    made = getattr(graph, '_horovod_token', None)
    if made is None:
        with tf.control_dependencies(None):
            made = graph._horovod_token = operations().horovod_token()
    return made


def naming(operation, name, tensor, ignore_name_scope, process_set):
    """The arguments by which all operations are named, for a call with this name. In a graph the name of the node counts; eager
    calls without a name are matched in their order."""
    _note_gpus()
    arguments = {'process_set_id': process_set_id(process_set), 'token': token(),
                 'ignore_name_scope': bool(ignore_name_scope)}
    if tf.executing_eagerly():
        arguments.update(eager=True, tensor_name=name or '?')
        return arguments
    if name is None:
        name = '{}_{}'.format(operation, normalized(getattr(tensor, 'name', 'tensor')))
    graph = tf.compat.v1.get_default_graph()
    _check_not_for_xla(graph, operation)
    # So that two nodes are never merged as the same computation.
    arguments.update(name=name, unique_name=graph.unique_name(name, mark_as_used=False))
    return arguments


def _check_not_for_xla(graph, operation):
    """A collective is no computation that XLA could compile. TensorFlow would say that there is no kernel for it."""
    from tensorflow.python.ops import control_flow_util
    while graph is not None:
        context = graph._get_control_flow_context()
        if context is not None and control_flow_util.GetContainingXLAContext(context) is not None:
            raise NotImplementedError(
                '{} cannot be part of a function that XLA compiles (jit_compile=True), since it talks to other processes. Compile the '
                'computation of the loss and its gradients alone, and call the collective outside of it; models of Keras take '
                'compile(jit_compile=False).'.format(operation))
        graph = getattr(graph, 'outer_graph', None)


_has_noted_gpus = False


def _note_gpus():
    global _has_noted_gpus
    if not _has_noted_gpus:
        _has_noted_gpus = True
        if tf.config.list_physical_devices('GPU'):
            _warn('horovod.tensorflow copies tensors on GPUs through the memory of the host.')


def normalized(name):
    """A name of a tensor as a name of a node."""
    return ''.join(letter if letter.isalnum() and letter.isascii() else '_' for letter in name)
