"""Small helpers of horovod.tensorflow that scripts written for Horovod import."""

import tensorflow as tf

from horovod.common.util import _cache  # noqa: F401 (part of the interface)


def _executing_eagerly():
    """Whether the caller is neither in a graph nor in a tf.function."""
    return tf.executing_eagerly()


def _make_subgraph(f):
    return tf.function(f)


def vars_to_refs(vars):
    """Variables as keys of a dictionary, which variables themselves are not.

    Args:
        vars: A variable, or a list or tuple of them, which may be nested.

    Returns: The same with their references: a tuple for a list.
    """
    if isinstance(vars, (list, tuple)):
        return tuple(vars_to_refs(variable) for variable in vars)
    return _Ref(vars) if not hasattr(vars, 'ref') else vars.ref()


def refs_to_vars(refs):
    """Undoes vars_to_refs().

    Args:
        refs: What vars_to_refs() returned.

    Returns: The variables: a list for a tuple.
    """
    if isinstance(refs, (list, tuple)):
        return [refs_to_vars(ref) for ref in refs]
    return refs.deref()


class _Ref:
    """As the reference of a tf.Variable, of a variable of Keras 3, which has none."""

    def __init__(self, variable):
        self._variable = variable

    def deref(self):
        return self._variable

    def __hash__(self):
        return id(self._variable)

    def __eq__(self, other):
        return isinstance(other, _Ref) and other._variable is self._variable


def ref_of(variable):
    """A key of a dictionary for one variable.

    Args:
        variable: A variable of TensorFlow, or of Keras 3, or a tensor.

    Returns: An object that is equal for the same variable.
    """
    value = getattr(variable, 'value', None)
    if value is not None and not callable(value):
        variable = value  # of Keras 3, whose variables hold one of TensorFlow
    return vars_to_refs(variable)


gradients = {}  # operation -> the function of its gradient


def gradient(operation):
    """A decorator of the function of the gradient of an operation of ours.

    Args:
        operation: The name of the operation.

    Returns: The decorator.
    """
    def register(function):
        gradients[operation] = function
        return tf.RegisterGradient(operation)(function)
    return register
