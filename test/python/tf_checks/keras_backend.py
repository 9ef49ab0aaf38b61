"""Keras 3 on the backend that the argument names: gradients are averages, and all ranks have one model."""

import sys

import keras
import numpy as np

import horovod.keras as hvd

assert keras.backend.backend() == sys.argv[1]
hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
keras.utils.set_random_seed(RANK)
for options in ({}, {'compression': getattr(hvd.Compression, 'fp16', hvd.Compression.none)}, {'gradient_predivide_factor': 2.0}):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation='relu'), keras.layers.Dense(1)])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.Adam(0.05), **options), loss='mse')
    x = np.random.rand(64, 4).astype('f4')
    model.fit(x, x.sum(1, keepdims=True), batch_size=8, epochs=2, verbose=0,
              callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()])
    weights = hvd.allgather(np.concatenate([np.ravel(weight) for weight in model.get_weights()]).reshape(1, -1))
    assert np.isfinite(weights).all() and (weights == weights[0]).all()

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer='ones')])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), **options), loss=lambda true, predicted: predicted)
    model.fit(np.full((1, 1), RANK + 1.0, 'f4'), np.zeros((1, 1), 'f4'), epochs=1, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], [[1 - (SIZE + 1) / 2]], rtol=1e-3)
print('ok', flush=True)
