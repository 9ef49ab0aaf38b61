"""What an allreduce of one float costs in TensorFlow, Keras, JAX and MXNet beside the framework's own smallest work, in one job:

    hvdrun -np 2 --prefix "" VENV/bin/python test/bench/framework_calls.py tensorflow|keras|jax|mxnet [ROUNDS [CALLS]]

Ours and the framework's own take turns; rank 0 prints medians in us and their ratio, and of Keras those of a step of fit()."""
import statistics
import sys
import time


def timed(call, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls * 1e6


def compared(ours, own, rounds, calls):
    """Medians of us a call, and of the ratio of neighbours."""
    for call in (ours, own):
        timed(call, 3)  # compiles
    pairs = [(timed(ours, calls), timed(own, calls)) for _ in range(rounds)]
    return [statistics.median(column) for column in (*zip(*pairs), [one / other for one, other in pairs])]


def tensorflow():
    import tensorflow as tf
    import horovod.tensorflow as hvd
    hvd.init()
    x = tf.ones(1)
    assert hvd.allreduce(x, op=hvd.Sum, name="right").numpy() == [hvd.size()]

    def reduced():
        return hvd.allreduce(x, op=hvd.Sum, name="x")

    one, many = (tf.function(call) for call in (reduced, lambda: x + x))
    yield "eager allreduce, beside x + x", lambda: reduced().numpy(), lambda: (x + x).numpy()
    yield "allreduce in a tf.function, beside one of x + x", lambda: one().numpy(), lambda: many().numpy()


def keras():
    import numpy as np
    import tensorflow as tf
    import horovod.tensorflow.keras as hvd
    hvd.init()
    x, y = np.ones((64, 8), np.float32), np.ones((64, 1), np.float32)

    def fit(wrap):
        model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
        model.compile(wrap(tf.keras.optimizers.SGD(0.01)), "mse")
        return lambda: model.fit(x, y, batch_size=1, epochs=1, verbose=0, shuffle=False)

    yield "fit() of 64 steps, beside fit() without an exchange", fit(hvd.DistributedOptimizer), fit(lambda optimizer: optimizer)


def jax():
    import jax
    import jax.numpy as jnp
    import numpy as np
    import horovod.jax as hvd
    import horovod.numpy as raw
    hvd.init()
    x, y = jnp.ones(1), np.ones(1, np.float32)
    assert float(hvd.allreduce(x, op=hvd.Sum, name="right")[0]) == hvd.size()
    compiled = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum, name="x"))
    plain = jax.jit(lambda x: x + x)
    yield "allreduce in a jit, beside a jit of x + x", lambda: compiled(x).block_until_ready(), lambda: plain(x).block_until_ready()
    yield "allreduce in a jit, beside horovod.numpy", lambda: compiled(x).block_until_ready(), lambda: raw.allreduce(y, op=raw.Sum, name="y")


def mxnet():
    import mxnet as mx
    import horovod.mxnet as hvd
    hvd.init()
    x = mx.nd.ones(1)
    assert hvd.allreduce(x, op=hvd.Sum, name="right").asnumpy() == [hvd.size()]
    yield "allreduce, beside x + x", lambda: hvd.allreduce(x, op=hvd.Sum, name="x").asnumpy(), lambda: (x + x).asnumpy()


FRAMEWORKS = {"tensorflow": tensorflow, "keras": keras, "jax": jax, "mxnet": mxnet}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in FRAMEWORKS:
        sys.exit(f"usage: framework_calls.py {'|'.join(FRAMEWORKS)} [ROUNDS [CALLS]]")
    name, rounds, calls = sys.argv[1], *[int(word) for word in (sys.argv[2:] + ["15", "200"][len(sys.argv) - 2:])]
    from horovod.common.basics import HorovodBasics
    for what, ours, own in FRAMEWORKS[name]():
        one, other, ratio = compared(ours, own, rounds, 2 if name == "keras" and calls > 2 else calls)
        if HorovodBasics().rank() == 0:
            print(f"{name}: {what}: {one:.1f} us beside {other:.1f} us, {ratio:.2f} times", flush=True)


if __name__ == "__main__":
    main()
