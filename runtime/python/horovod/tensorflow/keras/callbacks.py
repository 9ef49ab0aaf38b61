"""The callbacks; see horovod._keras.callbacks."""

import tensorflow as _tensorflow

from horovod._keras import callbacks as _callbacks

_made = _callbacks.make(_tensorflow.keras)

BroadcastGlobalVariablesCallback = _made['BroadcastGlobalVariablesCallback']
MetricAverageCallback = _made['MetricAverageCallback']
LearningRateScheduleCallback = _made['LearningRateScheduleCallback']
LearningRateWarmupCallback = _made['LearningRateWarmupCallback']
BestModelCheckpoint = _callbacks.make_best_checkpoint(_tensorflow.keras, takes_weights_only=True)
