"""Thousands of steps with every collective of a framework: afterwards the process has neither more memory nor more descriptors.

    leaks.py tensorflow|tensorflow-function|jax|jax-outside|mxnet|numpy STEPS [BYTES]    BYTES: what the script itself leaks in each step
"""

import gc
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
WHAT, STEPS, LEAKED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
MOST_BYTES_PER_STEP, MOST_BYTES = 768, 2 << 20  # TensorFlow 2.13 alone leaks 200 bytes in a step of this kind


def tensorflow(is_function=False):
    import horovod.tensorflow as hvd
    import tensorflow as tf
    hvd.init()
    x, rows = tf.ones([1000, 4]), tf.ones([10 + hvd.rank(), 3])
    splits = tf.constant([1] * hvd.size())
    variable = tf.Variable(tf.ones([100]))

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable * variable)
        gradient = hvd.DistributedGradientTape(tape).gradient(loss, variable)
        results = [hvd.allreduce(x), hvd.allgather(rows), hvd.broadcast(x, 0), hvd.reducescatter(x),
                   hvd.alltoall(tf.ones([hvd.size(), 5]), splits=splits)[0]] + hvd.grouped_allreduce([x, rows[:10]])
        variable.assign_sub(0.001 * gradient)
        return results
    return tf.function(step) if is_function else step


def jax(is_compiled=True):
    import horovod.jax as hvd
    import jax
    import jax.numpy as jnp
    hvd.init()
    x = jnp.ones((1000, 4))

    def step(x):
        gradient = jax.grad(lambda x: hvd.allreduce((x * x).sum()))(x)
        return (gradient, hvd.allgather(x), hvd.broadcast(x, 0), hvd.reducescatter(x), hvd.alltoall(x), hvd.allreduce({'a': x, 'b': x[0]}))
    compiled = jax.jit(step) if is_compiled else step
    return lambda: jax.block_until_ready(compiled(x))


def mxnet():
    import horovod.mxnet as hvd
    import mxnet as mx
    hvd.init()
    x = mx.nd.ones((1000, 4))
    net = mx.gluon.nn.Dense(4)
    net.initialize()
    net(x)
    hvd.broadcast_parameters(net.collect_params(), 0)
    trainer = hvd.DistributedTrainer(net.collect_params(), 'sgd', {'learning_rate': 1e-6})

    def step():
        with mx.autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)
        for result in [hvd.allreduce(x), hvd.allgather(x), hvd.broadcast(x, 0), hvd.reducescatter(x), hvd.alltoall(x)] + \
                hvd.grouped_allreduce([x, x[0]]):
            result.wait_to_read()
    return step


def numpy():
    import horovod.numpy as hvd
    import numpy as np
    hvd.init()
    x = np.ones((1000, 4), 'f4')

    def step():
        for function in (hvd.allreduce, hvd.allgather, hvd.reducescatter, hvd.alltoall):
            function(x)
        hvd.grouped_allreduce([x, x[0]])
    return step


STEP_OF = {'tensorflow': tensorflow, 'tensorflow-function': lambda: tensorflow(True), 'jax': jax, 'jax-outside': lambda: jax(False),
           'mxnet': mxnet, 'numpy': numpy}


def in_use():
    """(bytes of memory that is no page of a file, descriptors)."""
    gc.collect()
    with open('/proc/self/status') as status:
        pages = [line.split() for line in status if line.startswith('RssAnon')]
    return int(pages[0][1]) << 10, len(os.listdir('/proc/self/fd'))


def main():
    step = STEP_OF[WHAT]()
    held = []
    warm_up = STEPS // 5
    for number in range(STEPS):
        if number == warm_up:
            before = in_use()
        step()
        if LEAKED:
            held.append(os.urandom(LEAKED))
    after = in_use()
    growth = after[0] - before[0]
    print('{}: {} steps: {} KiB before, {} KiB more after, descriptors {} and {}'.format(
        WHAT, STEPS - warm_up, before[0] >> 10, growth >> 10, before[1], after[1]), flush=True)
    assert growth < max(MOST_BYTES, MOST_BYTES_PER_STEP * (STEPS - warm_up)), growth
    assert after[1] <= before[1] + 2, (before, after)
    print('steady', flush=True)


if __name__ == '__main__':
    main()
