"""Training that outlives changes of the world: states of TensorFlow and the loop around a training function."""

import contextlib
import functools

import numpy as np
import tensorflow as tf

from horovod.common.elastic import ObjectState, State, on_stop, reset_world, run_fn, stop_grace  # noqa: F401
from horovod.common.exceptions import HorovodInternalError
from horovod.tensorflow.functions import _variable_of, broadcast_object, broadcast_variables
from horovod.tensorflow.mpi_ops import global_process_set, rank

_BROKEN = (tf.errors.UnknownError, tf.errors.AbortedError)


def _translated(error):
    """HorovodInternalError for the failure of a collective inside TensorFlow, else None. Callbacks (python_operations.py) have the kind
    of an error in its text."""
    text = str(error)
    return HorovodInternalError(text) if 'Horovod' in text and 'FailedPreconditionError:' not in text else None


@contextlib.contextmanager
def _translating():
    """Raises failures of collectives as the HorovodInternalError that the loop around a training function knows."""
    try:
        yield
    except _BROKEN as error:
        broken = _translated(error)
        if broken is None:
            raise
        raise broken from error


def run(func):
    """Decorator of a training function that continues after each change of the world.

    Gives all ranks the state of rank 0 and calls the function; see horovod.common.elastic.run_fn.

    Args:
        func: The training function; its first argument is a State, such as TensorFlowKerasState.

    Returns: The wrapped function.
    """
    @functools.wraps(func)
    def translating(state, *args, **kwargs):
        with _translating():
            return func(state, *args, **kwargs)
    return run_fn(translating, reset_world)


def _broadcast_object(obj, root_rank=0, name=None):
    return broadcast_object(obj, root_rank, name=name)


class _VariablesState(ObjectState):
    """The values of variables, kept as arrays, and plain values."""

    def _variables(self):
        raise NotImplementedError()

    def _read(self, variables):
        return [np.array(variable) if session is None else session.run(variable)
                for session in [self._session] for variable in variables]

    def _assign(self, variables, values):
        for variable, value in zip(variables, values):
            if self._session is None:
                variable.assign(value)
            else:
                variable.load(value, self._session)

    _session = None

    def save(self):
        """Keeps the present values."""
        self._saved_values = self._read(self._variables())
        super().save()

    def restore(self):
        """Sets the values that save() kept."""
        variables = self._variables()
        if len(variables) == len(self._saved_values):
            self._assign(variables, self._saved_values)
        super().restore()

    def _kept(self):
        return dict(super()._kept(), variables=self._saved_values)

    def _use_kept(self, kept):
        self._saved_values = kept['variables']
        if len(self._variables()) != len(self._saved_values):
            self._build(len(self._saved_values))
        if len(self._variables()) != len(self._saved_values):
            raise ValueError('The kept commit has {} variables, the state {}; build model and optimizer before the state is '
                             'made.'.format(len(self._saved_values), len(self._variables())))
        super()._use_kept(kept)

    def sync(self):
        """Broadcasts the values of rank 0 to all ranks, and saves them. A collective."""
        with _translating():  # the new world may break, too, before the training function is called
            self._sync_variables()
        self._saved_values = self._read(self._variables())
        super().sync()

    def _sync_variables(self):
        variables = self._variables()
        if self._session is None:
            # The number may differ: a new rank's optimizer has not been built.
            numbers = _broadcast_object([(tuple(variable.shape), str(variable.dtype)) for variable in variables],
                                        name='elastic.variables')
            if len(numbers) == len(variables):
                with tf.init_scope():
                    broadcast_variables(variables, 0)
            else:
                values = _broadcast_object(self._read(variables), name='elastic.values')
                self._build(len(numbers))
                self._assign(self._variables(), values)
                if len(self._variables()) != len(values):
                    raise ValueError('rank {} has {} variables of the state, rank 0 has {}; build model and optimizer before '
                                     'the state is made.'.format(rank(), len(self._variables()), len(values)))
        else:
            values = _broadcast_object(self._read(variables), name='elastic.values')
            self._assign(variables, values)

    def _build(self, count):
        pass


class TensorFlowKerasState(_VariablesState):
    """The state of a model of Keras and its optimizer, and plain values.

    Args:
        model: A model whose variables exist.
        optimizer: Its optimizer; by default model.optimizer.
        backend: Ignored, but in graphs with sessions, where it is the backend of Keras.
        kwargs: Further values, by the names of attributes.

    Raises:
        ValueError: The model has not been built.
    """

    def __init__(self, model, optimizer=None, backend=None, **kwargs):
        if not getattr(model, 'built', True):
            raise ValueError('Model must be built first. Run `model.build(input_shape)`.')
        self.model = model
        self.optimizer = optimizer or getattr(model, 'optimizer', None)
        if backend is not None and not tf.executing_eagerly() and hasattr(backend, 'get_session'):
            self._session = backend.get_session()
        self._saved_values = self._read(self._variables())
        super().__init__(bcast_object=_broadcast_object, get_rank=rank, **kwargs)

    def _variables(self):
        variables = [] if self.optimizer is None else self.optimizer.variables
        variables = variables() if callable(variables) else variables
        added, chosen = set(), []
        for variable in list(self.model.weights) + list(variables):
            if id(variable) not in added:
                added.add(id(variable))
                chosen.append(_variable_of(variable))
        return chosen

    def _build(self, count):
        build = getattr(self.optimizer, 'build', None)
        if build is not None and not getattr(self.optimizer, 'built', False):
            build(self.model.trainable_variables)


class TensorFlowState(_VariablesState):
    """The state of variables of TensorFlow, and plain values.

    Args:
        variables: A list of variables; by default, in graphs, all global ones.
        session: The session of the graph; None in eager mode.
        kwargs: Further values, by the names of attributes.
    """

    def __init__(self, variables=None, session=None, **kwargs):
        if variables is None:
            variables = tf.compat.v1.global_variables()
        self.variables = list(variables)
        self._session = session
        if session is None and not tf.executing_eagerly():
            self._session = tf.compat.v1.get_default_session()
        self._saved_values = self._read(self.variables)
        super().__init__(bcast_object=_broadcast_object, get_rank=rank, **kwargs)

    def _variables(self):
        return self.variables
