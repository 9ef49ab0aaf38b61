"""Elastic training with fit(): the state of a model and the callbacks that keep it up to date."""

from horovod._keras import elastic as _elastic
from horovod._keras.module import keras
from horovod.tensorflow.elastic import TensorFlowKerasState, run  # noqa: F401

_made = _elastic.make(keras)

CommitStateCallback = _made['CommitStateCallback']
UpdateBatchStateCallback = _made['UpdateBatchStateCallback']
UpdateEpochStateCallback = _made['UpdateEpochStateCallback']


class KerasState(TensorFlowKerasState):
    """The state of a model of Keras and its optimizer, and plain values.

    Args:
        model: A model whose variables exist.
        optimizer: Its optimizer; by default model.optimizer.
        kwargs: Further values, by the names of attributes.
    """

    def __init__(self, model, optimizer=None, **kwargs):
        super().__init__(model, optimizer=optimizer, **kwargs)
