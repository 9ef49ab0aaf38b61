"""The callbacks; see horovod._keras.callbacks."""

from horovod._keras import callbacks as _callbacks
from horovod._keras.module import keras

_made = _callbacks.make(keras)

BroadcastGlobalVariablesCallback = _made['BroadcastGlobalVariablesCallback']
MetricAverageCallback = _made['MetricAverageCallback']
LearningRateScheduleCallback = _made['LearningRateScheduleCallback']
LearningRateWarmupCallback = _made['LearningRateWarmupCallback']
BestModelCheckpoint = _callbacks.make_best_checkpoint(keras, takes_weights_only=False)
