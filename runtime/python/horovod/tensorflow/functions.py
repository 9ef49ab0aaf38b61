"""Broadcasting variables and any Python object."""

import tensorflow as tf

from horovod.common import objects
from horovod.tensorflow import mpi_ops
from horovod.tensorflow.mpi_ops import global_process_set


def _variable_of(variable):
    """Of a variable of Keras 3, that of TensorFlow."""
    value = getattr(variable, 'value', None)
    return variable if value is None or callable(value) else value


def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """Gives variables on every rank the values of one.

    Args:
        variables: A list of variables, the same on every rank.
        root_rank: The rank of the world whose values are sent.
        process_set: The ranks that take part.
        inplace: Accepted for compatibility; the values are assigned either way.

    Returns: In eager mode None; in a graph the operation that does it.

    Example:

        hvd.broadcast_variables(model.variables, root_rank=0)
    """
    variables = [_variable_of(variable) for variable in variables]
    if not variables:
        return None if tf.executing_eagerly() else tf.no_op()
    # bool is sent as it is; a type that no collective supports, such as a string, is left alone.
    values = mpi_ops._grouped_broadcast([tf.convert_to_tensor(variable) for variable in variables], root_rank,
                                        process_set=process_set)
    assigned = [variable.assign(value) for variable, value in zip(variables, values)]
    return None if tf.executing_eagerly() else tf.group(*assigned)


def broadcast_object(obj, root_rank=0, session=None, name=None, process_set=global_process_set):
    """Gives every rank a copy of an object of one.

    Args:
        obj: Any object that can be pickled; on other ranks than the root it is ignored.
        root_rank: The rank of the world whose object is sent.
        session: Ignored; no graph is needed.
        name: Matches the calls of the ranks.
        process_set: The ranks that take part.

    Returns: The root's object.
    """
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    """A function that calls broadcast_object() with these arguments.

    Args:
        root_rank: See broadcast_object().
        session: Ignored.
        name: See broadcast_object().
        process_set: See broadcast_object().

    Returns: A function of the object.
    """
    def broadcast(obj):
        return broadcast_object(obj, root_rank, session, name, process_set)
    return broadcast


def allgather_object(obj, session=None, name=None, process_set=global_process_set):
    """Gives every rank the objects of all.

    Args:
        obj: Any object that can be pickled.
        session: Ignored; no graph is needed.
        name: Matches the calls of the ranks.
        process_set: The ranks that take part.

    Returns: A list of the objects, in order of rank.
    """
    return objects.allgather_object(obj, name, process_set)


def broadcast_global_variables(root_rank):
    """Gives all variables of the graph the values of one rank. For graphs with sessions.

    Args:
        root_rank: The rank of the world whose values are sent.

    Returns: The operation that does it.

    Raises:
        RuntimeError: TensorFlow executes eagerly, where a graph has no variables.
    """
    if tf.executing_eagerly():
        raise RuntimeError('hvd.broadcast_global_variables() does not support eager execution. Please use '
                           '`hvd.broadcast_variables(<model/optimizer variables>)` instead.')
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """For sessions: gives all variables the values of one rank when a session is created.

    Args:
        root_rank: The rank of the world whose values are sent.
        device: Where to place the operation.
    """

    def __init__(self, root_rank, device=''):
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op = None

    def begin(self):
        """Adds the operation to the graph."""
        if self.bcast_op is None or self.bcast_op.graph != tf.compat.v1.get_default_graph():
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session, coord):
        """Runs it.

        Args:
            session: The session.
            coord: Ignored.
        """
        session.run(self.bcast_op)
