"""Elastic training by fit(), or by a loop of tf.function: rank 1 of the first world ends in the middle; the loop goes on without a lost step."""

import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import horovod.tensorflow as hvd  # noqa: E402
import horovod.tensorflow.keras as hvd_keras  # noqa: E402

STEPS = 30
FIRST = hvd.init() or hvd.rank()
VICTIM = FIRST == 1 and not os.path.exists(sys.argv[2])


def end_once(step):
    if VICTIM and step == 7:
        open(sys.argv[2], 'w').close()
        os._exit(5)


def loop():
    variable = tf.Variable(0.0)

    @tf.function
    def step(value):
        variable.assign_add(hvd.allreduce(value))
        return variable.read_value()

    @hvd.elastic.run
    def train(state):
        while state.step < STEPS:
            end_once(state.step)
            step(tf.constant(1.0))
            state.step += 1
            state.commit()
        return float(variable)

    return train(hvd.elastic.TensorFlowState([variable], step=0))


def fit():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='zeros')])
    model.compile(hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(1.0)), loss=lambda true, predicted: -predicted)

    class End(tf.keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            end_once(state.epoch * 5 + batch)

    state = hvd_keras.elastic.KerasState(model, epoch=0, batch=0)

    @hvd_keras.elastic.run
    def train(state):
        model.fit(np.ones((5, 1), 'f4'), np.ones((5, 1), 'f4'), batch_size=1, epochs=STEPS // 5 - state.epoch, verbose=0, callbacks=[
            hvd_keras.elastic.UpdateEpochStateCallback(state), End(), hvd_keras.elastic.CommitStateCallback(state, 5)])
        return float(model.get_weights()[0][0, 0])

    return train(state)


if __name__ == '__main__':
    result = {'loop': loop, 'fit': fit}[sys.argv[1]]()
    print('result', result, 'of', hvd.size(), flush=True)
    print('ok', flush=True)
