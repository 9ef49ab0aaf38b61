"""Rank 1 ends in the middle of training; rank 0 shows the error of its collective."""

import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
import tensorflow as tf  # noqa: E402

import horovod.tensorflow as hvd  # noqa: E402

hvd.init()


def step(xs):
    return [hvd.allreduce(x, op=hvd.Sum) for x in xs]


if sys.argv[1] == 'function':
    step = tf.function(step)
values = [tf.ones([100]) for _ in range(20)]
state = hvd.elastic.TensorFlowState([tf.Variable(values[0])])
try:
    for number in range(10):  # rank 1 may be gone before rank 0 has the result of the last one
        step(values)
    if hvd.rank() == 1:
        if sys.argv[1] == 'sync':  # in its middle
            hvd.elastic._broadcast_object(None, name='elastic.variables')
        os._exit(7)
    while True:
        state.sync() if sys.argv[1] == 'sync' else step(values)
except (tf.errors.OpError, hvd.HorovodInternalError) as error:
    print(type(error).__name__, error, flush=True)
    sys.exit(1)
