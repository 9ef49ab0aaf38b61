"""The operations of horovod.tensorflow: values, types, shapes, gradients, mistakes; eager, in tf.function and in graphs with sessions."""

import os
import sys
import tempfile

import checks
import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd

tf.get_logger().setLevel('ERROR')
hvd.init(process_sets=[hvd.ProcessSet([0])])
RANK, SIZE = hvd.rank(), hvd.size()
CALLBACKS = os.environ.get('HOROVOD_TENSORFLOW_CALLBACKS') == '1'  # then tf.py_function passes on the text of an error, not its kind
TYPES = [tf.uint8, tf.int8, tf.int32, tf.int64, tf.float16, tf.bfloat16, tf.float32, tf.float64]


def same(tensor, expected):
    np.testing.assert_allclose(np.array(tf.cast(tensor, tf.float64)), np.array(expected, np.float64))


def modes(function):
    """The function itself, and compiled."""
    return [function, tf.function(function)]


def both(function, *arguments):
    """The results of a function, eager and compiled."""
    return [mode(*arguments) for mode in modes(function)]


def fails(kinds, function):
    try:
        function()
    except kinds as error:
        return str(error)
    raise AssertionError('no error')


def check_allreduce_of_every_type():
    for dtype in TYPES:
        x = tf.cast(tf.reshape(tf.range(6), [2, 3]) + RANK, dtype)
        expected = np.arange(6).reshape(2, 3) * SIZE + sum(range(SIZE))
        for result in both(lambda x: hvd.allreduce(x, op=hvd.Sum), x):
            assert result.dtype == dtype
            same(result, expected)
    for op, function in ((hvd.Min, min), (hvd.Max, max), (hvd.Product, lambda *numbers: np.prod(numbers))):
        same(hvd.allreduce(tf.constant([RANK + 2.0]), op=op), [function(*[rank + 2.0 for rank in range(SIZE)])])
    assert hvd.allreduce(tf.constant([True, False]), op=hvd.Max).numpy().tolist() == [True, False]


def check_allreduce_of_scalars_lists_and_nothing():
    for shape in ((), (0,), (3, 0, 2), (1, 1)):
        for result in both(lambda x: hvd.allreduce(x, op=hvd.Average), tf.ones(shape)):
            assert result.shape == shape
    same(hvd.allreduce([1.0, RANK], op=hvd.Sum), [SIZE, sum(range(SIZE))])
    same(hvd.allreduce(3.0), 3.0)
    same(hvd.allreduce(tf.Variable([1.0])), [1.0])


def check_scale_factors_have_all_their_digits():
    x = tf.constant([1.0], tf.float64)
    assert hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.1, postscale_factor=1.0).numpy()[0] == SIZE * 0.1
    same(hvd.allreduce(x, op=hvd.Sum, postscale_factor=0.5), [SIZE * 0.5])
    same(hvd.allreduce(tf.constant([3]), op=hvd.Sum, prescale_factor=0.5), [SIZE])
    same(hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.0), [0.0])


def check_average_is_the_deprecated_argument():
    same(hvd.allreduce(tf.constant([4.0]), average=False), [4.0 * SIZE])
    same(hvd.allreduce(tf.constant([4.0]), average=True), [4.0])
    fails(ValueError, lambda: hvd.allreduce(tf.constant([4.0]), average=True, op=hvd.Sum))


def check_many_in_flight():
    xs = [tf.ones([50 + index]) * index for index in range(161)]
    function = tf.function(lambda xs: [hvd.allreduce(x, op=hvd.Sum) for x in xs])
    for _ in range(5):
        for index, result in enumerate(function(xs)):
            same(result, np.ones(50 + index) * index * SIZE)


def check_large_tensors_and_memory():
    x = tf.random.stateless_uniform([1 << 20], [RANK, 0])
    mean = sum(tf.random.stateless_uniform([1 << 20], [rank, 0]) for rank in range(SIZE)) / SIZE
    before = x.numpy().copy()
    for result in both(lambda x: hvd.allreduce(x) + 0 * x, x):
        np.testing.assert_allclose(result, mean, rtol=1e-6)
    assert (x.numpy() == before).all(), 'the input has changed'


def check_an_iteration_meets_the_same_one():
    @tf.function
    def loop(x):
        parts = tf.TensorArray(tf.float32, 40)
        for index in tf.range(40):
            parts = parts.write(index, hvd.allreduce(x * tf.cast(index, tf.float32), op=hvd.Sum))
        return parts.stack()
    same(loop(tf.constant(RANK + 1.0)), np.arange(40.0) * SIZE * (SIZE + 1) / 2)


def check_control_flow():
    @tf.function
    def choose(flag, x):
        if flag:
            return hvd.allreduce(x, op=hvd.Sum)
        return x
    same(choose(tf.constant(True), tf.constant([1.0])), [SIZE])
    same(choose(tf.constant(False), tf.constant([1.0])), [1.0])

    @tf.function
    def inner(x):
        return hvd.allreduce(x, op=hvd.Sum)
    same(tf.function(lambda x: inner(x) + 10 * inner(x + 1))(tf.constant([1.0])), [SIZE * 21.0])


def check_a_result_is_not_folded_into_a_constant():
    function = tf.function(lambda: hvd.allreduce(tf.constant([2.0]), op=hvd.Sum))
    same(function(), [2.0 * SIZE])
    same(function(), [2.0 * SIZE])


def check_grouped_allreduce():
    for results in both(lambda a, b, c: hvd.grouped_allreduce([a, b, c], op=hvd.Sum), tf.ones([3]),
                        tf.constant(RANK), tf.cast(tf.ones([2, 2]), tf.float16)):
        same(results[0], np.ones(3) * SIZE)
        same(results[1], sum(range(SIZE)))
        same(results[2], np.ones((2, 2)) * SIZE)
        assert results[2].dtype == tf.float16
    assert hvd.grouped_allreduce([], op=hvd.Sum) == []


def check_allgather_of_unequal_rows():
    for dtype in TYPES + [tf.bool, tf.uint16, tf.int16]:
        x = tf.cast(tf.ones([RANK + 1, 2]), dtype)
        for result in both(hvd.allgather, x):
            assert result.shape == (SIZE * (SIZE + 1) // 2, 2) and result.dtype == dtype
    function = tf.function(hvd.allgather).get_concrete_function(tf.TensorSpec([None, 2]))
    assert function.structured_outputs.shape.as_list() == [None, 2]
    assert hvd.allgather(tf.zeros([RANK, 3])).shape == (sum(range(SIZE)), 3)
    gathered = hvd.grouped_allgather([tf.fill([RANK + 1], RANK), tf.fill([1], 5.0 + RANK)])
    assert gathered[0].numpy().tolist() == [rank for rank in range(SIZE) for _ in range(rank + 1)]
    same(gathered[1], [5.0 + rank for rank in range(SIZE)])


def check_broadcast():
    for root in range(SIZE):
        for dtype in TYPES + [tf.bool]:
            x = tf.cast(tf.fill([3], RANK), dtype)
            for result in both(lambda x: hvd.broadcast(x, root), x):
                same(result, np.array([root] * 3).astype(dtype.as_numpy_dtype).astype(float))
    variables = [tf.Variable([RANK, 1]), tf.Variable(float(RANK)), tf.Variable([RANK == 0])]
    hvd.broadcast_variables(variables, root_rank=SIZE - 1)
    same(variables[0], [SIZE - 1, 1])
    same(variables[1], SIZE - 1)
    variables[1].assign(RANK)
    hvd.broadcast_(variables[1:2], 0)
    same(variables[1], 0)


def check_alltoall():
    x = tf.repeat(tf.range(SIZE), 2)
    for result in both(hvd.alltoall, x):
        same(result, [RANK] * 2 * SIZE)
    splits = [index + 1 for index in range(SIZE)]
    rows = tf.fill([sum(splits)], float(RANK))
    for result, received in both(lambda x: hvd.alltoall(x, splits=splits), rows):
        assert received.numpy().tolist() == [RANK + 1] * SIZE
        same(result, [rank for rank in range(SIZE) for _ in range(RANK + 1)])
    fails(tf.errors.InvalidArgumentError, lambda: hvd.alltoall(rows, splits=[1000] * SIZE))
    fails((tf.errors.InvalidArgumentError, ValueError), lambda: hvd.alltoall(rows, splits=[[1] * SIZE]))


def check_reducescatter():
    x = tf.reshape(tf.range(2.0 * SIZE + 2), [SIZE + 1, 2])
    mine = np.array_split(x.numpy(), SIZE)[RANK]
    for result in both(lambda x: hvd.reducescatter(x, op=hvd.Sum), x):
        same(result, mine * SIZE)
    same(hvd.reducescatter(x), mine)
    for result in hvd.grouped_reducescatter([x, x], op=hvd.Sum, postscale_factor=0.5):
        same(result, mine * SIZE / 2)


def check_join_and_queries():
    assert hvd.join().numpy() in range(SIZE)
    numbers = tf.function(lambda: (hvd.size_op(), hvd.rank_op(), hvd.local_size_op(), hvd.local_rank_op(),
                                   hvd.process_set_included_op(1)))()
    assert [int(number) for number in numbers] == [SIZE, RANK, SIZE, RANK, RANK == 0]
    fails(tf.errors.FailedPreconditionError, lambda: hvd.size_op(77))
    if RANK == 0:
        same(hvd.allreduce(tf.ones([2]), op=hvd.Sum), [SIZE, SIZE])
        hvd.join()
    else:
        same(hvd.allreduce(tf.ones([2]), op=hvd.Sum), [SIZE, SIZE])
        hvd.join()


def check_process_sets():
    alone = hvd.mpi_ops._temp_process_set_object(1)
    if RANK == 0:
        same(hvd.allreduce(tf.constant([7.0]), op=hvd.Sum, process_set=alone), [7.0])
    else:
        fails((tf.errors.InvalidArgumentError, ValueError),
              lambda: hvd.allreduce(tf.constant([7.0]), op=hvd.Sum, process_set=alone))


def check_mistakes_are_errors_on_every_rank():
    text = fails(tf.errors.FailedPreconditionError, lambda: hvd.allreduce(tf.ones([RANK + 1])))
    assert 'shape' in text
    fails(tf.errors.FailedPreconditionError, lambda: hvd.allreduce(tf.ones([2], tf.int32 if RANK else tf.float32), op=hvd.Sum))
    fails(tf.errors.FailedPreconditionError, lambda: hvd.broadcast(tf.ones([2]), RANK))
    fails((tf.errors.FailedPreconditionError, tf.errors.InvalidArgumentError), lambda: hvd.allgather(tf.constant(1.0)))
    fails((tf.errors.FailedPreconditionError, tf.errors.InvalidArgumentError), lambda: hvd.reducescatter(tf.constant(1.0)))
    function = tf.function(lambda x: hvd.allreduce(x))
    text = fails(tf.errors.UnknownError if CALLBACKS else tf.errors.FailedPreconditionError, lambda: function(tf.ones([RANK + 1])))
    assert 'shape' in text and 'FailedPreconditionError' in text or not CALLBACKS
    fails((TypeError, ValueError, tf.errors.InvalidArgumentError), lambda: hvd.allreduce(tf.constant(['text'])))
    same(hvd.allreduce(tf.ones([2])), [1.0, 1.0])


def gradients(function, x):
    """The gradient of the sum of the function times RANK + 1, eager and compiled."""
    def compute(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
            loss = tf.reduce_sum(y * (RANK + 1.0))
        return tape.gradient(loss, x)
    return both(compute, x)


def check_gradients():
    x = tf.ones([SIZE, 2])
    total, mean = SIZE * (SIZE + 1) / 2, (SIZE + 1) / 2
    for op, expected in ((hvd.Sum, total), (hvd.Average, mean)):
        for grad in gradients(lambda x: hvd.allreduce(x, op=op), x) + gradients(lambda x: hvd.grouped_allreduce([x, x], op=op)[1], x):
            same(grad, np.full((SIZE, 2), expected))
    for grad in gradients(lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0), x):
        same(grad, np.full((SIZE, 2), 6 * total))
    rows = tf.ones([RANK + 2, 3])
    for grad in gradients(hvd.allgather, rows) + gradients(lambda x: hvd.grouped_allgather([x])[0], rows):
        same(grad, np.full((RANK + 2, 3), mean))
    for root in (0, SIZE - 1):
        for grad in gradients(lambda x: hvd.broadcast(x, root), x):
            same(grad, np.full((SIZE, 2), mean if RANK == root else 0))
    for grad in gradients(hvd.alltoall, x):
        same(grad, np.repeat(np.arange(1, SIZE + 1)[:, None], 2, 1))
    splits = tf.constant([index + 1 for index in range(SIZE)])
    for grad in gradients(lambda x: hvd.alltoall(x, splits=splits)[0], tf.ones([SIZE * (SIZE + 1) // 2])):
        same(grad, [rank + 1 for rank in range(SIZE) for _ in range(rank + 1)])
    for op, factor in ((hvd.Sum, SIZE), (hvd.Average, 1)):
        for grad in gradients(lambda x: hvd.reducescatter(x, op=op), x):
            same(grad, np.repeat(np.arange(1, SIZE + 1)[:, None], 2, 1) * factor)
        for grad in gradients(lambda x: hvd.grouped_reducescatter([x, x], op=op)[0], x):
            same(grad, np.repeat(np.arange(1, SIZE + 1)[:, None], 2, 1) * factor)


def check_slices():
    slices = tf.IndexedSlices(tf.fill([RANK + 1, 2], 2.0), tf.range(RANK + 1), dense_shape=tf.constant([SIZE, 2]))
    counts = np.array([[SIZE - row] * 2 for row in range(SIZE)], float)
    for op, factor in ((hvd.Sum, 2.0), (hvd.Average, 2.0 / SIZE)):
        same(tf.convert_to_tensor(hvd.allreduce(slices, op=op)), counts * factor)
    for arguments in ({'op': hvd.Max}, {'op': hvd.Adasum}, {'op': hvd.Sum, 'prescale_factor': 2.0}):
        fails(NotImplementedError, lambda: hvd.allreduce(slices, **arguments))


def check_compression():
    x = tf.constant([1.0, 2.5], tf.float64)
    result = hvd.allreduce(x, op=hvd.Sum, compression=hvd.Compression.fp16)
    assert result.dtype == tf.float64
    same(result, [SIZE, 2.5 * SIZE])


def check_adasum():
    # Of equal vectors it is that vector, of vectors at right angles their sum.
    if hvd.check_num_rank_power_of_2(SIZE):
        same(hvd.allreduce(tf.constant([3.0, 4.0]), op=hvd.Adasum), [3.0, 4.0])
        same(hvd.allreduce(tf.one_hot(RANK, SIZE), op=hvd.Adasum), np.ones(SIZE))
    else:
        fails(NotImplementedError, lambda: hvd.allreduce(tf.constant([3.0, 4.0]), op=hvd.Adasum))


def check_tape():
    variables = [tf.Variable([1.0, 2.0]), tf.Variable(3.0), tf.Variable(tf.ones([SIZE, 2]))]
    unused = tf.Variable(1.0)

    def loss():
        return (tf.reduce_sum(variables[0] * variables[1]) * (RANK + 1.0) +
                tf.reduce_sum(tf.gather(variables[2], [RANK])))

    def step(**arguments):
        with tf.GradientTape() as tape:
            value = loss()
        tape = hvd.DistributedGradientTape(tape, **arguments)
        return tape.gradient(value, variables + [unused])
    mean = (SIZE + 1) / 2
    for arguments in ({}, {'groups': 2}, {'groups': [variables[:2]]}, {'sparse_as_dense': True},
                      {'gradient_predivide_factor': float(SIZE)}, {'compression': hvd.Compression.fp16}):
        for result in both(lambda: step(**arguments)):
            same(result[0], [3 * mean, 3 * mean])
            same(result[1], 3 * mean)
            same(tf.convert_to_tensor(result[2]), np.full((SIZE, 2), 1 / SIZE))
            assert result[3] is None
    single = hvd.DistributedGradientTape(tf.GradientTape())
    with single:
        value = variables[1] * (RANK + 1.0)
    same(single.gradient(value, variables[1]), mean)
    for wrong in ({'groups': 0}, {'groups': 'all'}, {'op': hvd.Sum, 'gradient_predivide_factor': 2.0}):
        fails(ValueError, lambda: hvd.DistributedGradientTape(tf.GradientTape(), **wrong))


def check_local_gradients():
    shared, local = tf.Variable(1.0), tf.Variable(1.0)
    for scale in (True, False):
        with tf.GradientTape() as tape:
            loss = (shared + local) * (RANK + 1.0)
        tape = hvd.DistributedGradientTape(tape, scale_local_gradients=scale)
        tape.register_local_source(local)
        grads = tape.gradient(loss, [shared, local])
        same(grads[0], (SIZE + 1) / 2)
        same(grads[1], (RANK + 1) / (SIZE if scale else 1))
    layer = tf.keras.layers.Dense(1)
    layer.build((None, 2))
    tape = hvd.PartialDistributedGradientTape(tf.GradientTape(), local_layers=layer)
    with tape:
        loss = tf.reduce_sum(layer(tf.ones([1, 2]))) * (RANK + 1.0)
    same(tape.gradient(loss, layer.trainable_weights)[1], [(RANK + 1) / SIZE])
    fails(ValueError, lambda: hvd.PartialDistributedGradientTape(tf.GradientTape(), local_layers=[3]))


def check_optimizers_of_sessions():
    for passes, average in ((1, False), (2, False), (2, True)):
        with tf.Graph().as_default():
            x = tf.compat.v1.get_variable('x', initializer=tf.constant([1.0 + RANK]))
            optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1), backward_passes_per_step=passes,
                                                 average_aggregated_gradients=average)
            train = optimizer.minimize(tf.reduce_sum(x * (RANK + 1.0)))
            with tf.compat.v1.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as session:
                for _ in range(4):
                    session.run(train)
                steps = 4 / passes * (1 if average else passes)
                np.testing.assert_allclose(session.run(x), [1 - steps * 0.1 * (SIZE + 1) / 2], rtol=1e-5)
    fails(RuntimeError, lambda: hvd.broadcast_global_variables(0))
    fails(ValueError, lambda: hvd.DistributedOptimizer('no optimizer'))


def check_adasum_of_steps():
    if not hvd.check_num_rank_power_of_2(SIZE):
        return
    x = tf.Variable([1.0, 1.0])
    optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.5), op=hvd.Adasum)
    optimizer.apply_gradients([(tf.constant([1.0, 0.0]), x)])
    same(x, [0.5, 1.0])


def check_adasum_of_steps_in_a_session():
    if not hvd.check_num_rank_power_of_2(SIZE):
        return
    with tf.Graph().as_default():
        x = tf.compat.v1.get_variable('x', initializer=tf.constant([1.0, 1.0]))
        optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.5), op=hvd.Adasum)
        train = optimizer.minimize(tf.reduce_sum(x * tf.constant([1.0, 0.0])))
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as session:
            for _ in range(2):
                session.run(train)
            np.testing.assert_allclose(session.run(x), [0.0, 1.0])


def check_a_session_is_made_again():
    with tf.Graph().as_default():
        x = tf.compat.v1.get_variable('x', initializer=tf.constant([float(RANK)]))
        total = hvd.allreduce(x + 1, op=hvd.Sum)
        hook = hvd.BroadcastGlobalVariablesHook(SIZE - 1)
        for _ in range(3):
            with tf.compat.v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
                np.testing.assert_allclose(session.run(total), [SIZE * SIZE])


def check_xla_is_refused_with_a_sentence():
    function = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum) + 1, jit_compile=True)
    text = fails(NotImplementedError, lambda: function(tf.ones([2])))
    assert 'jit_compile=True' in text and 'HorovodAllreduce' in text
    inner = tf.function(lambda x: hvd.allgather(x))
    fails(NotImplementedError, lambda: tf.function(lambda x: inner(x), jit_compile=True)(tf.ones([2])))
    compiled = tf.function(lambda x: x * 2, jit_compile=True)  # the rest of a step may be compiled
    same(tf.function(lambda x: hvd.allreduce(compiled(x), op=hvd.Sum))(tf.ones([2])), [2.0 * SIZE] * 2)


def check_kernels_for_gpus_have_their_tensors_in_host_memory():
    """Without a GPU only that TensorFlow has accepted them."""
    if CALLBACKS:
        return
    from tensorflow.python.framework import kernels, op_def_registry
    for name in ('Allreduce', 'GroupedAllreduce', 'Allgather', 'GroupedAllgather', 'Broadcast', 'GroupedBroadcast', 'Alltoall',
                 'Reducescatter', 'GroupedReducescatter', 'Join', 'Size', 'Rank', 'LocalSize', 'LocalRank', 'ProcessSetIncluded', 'Token'):
        found = {kernel.device_type: set(kernel.host_memory_arg)
                 for kernel in kernels.get_registered_kernels_for_op('Horovod' + name).kernel}
        definition = op_def_registry.get('Horovod' + name)
        assert set(found) == {'CPU', 'GPU'}, (name, found)
        assert found['GPU'] == {argument.name for argument in list(definition.input_arg) + list(definition.output_arg)}, (name, found)


def check_a_model_for_serving_has_no_operation_of_ours():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.weight = tf.Variable([1.0 + RANK])

        @tf.function(input_signature=[tf.TensorSpec([None])])
        def serve(self, x):
            return x * self.weight

        @tf.function
        def train(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(self.serve(x))
            self.weight.assign_sub(hvd.DistributedGradientTape(tape).gradient(loss, self.weight))

    model = Model()
    hvd.broadcast_variables(model.trainable_variables, 0)
    model.train(tf.ones([2]))
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, folder, signatures={'serving_default': model.serve})
        served = tf.saved_model.load(folder, tags=None).signatures['serving_default']
        same(list(served(tf.ones([2])).values())[0], [-1.0, -1.0])
        assert not any(node.op.startswith('Horovod') for node in served.graph.as_graph_def().node)


def check_a_child_that_was_forked():
    """As the workers of tf.keras.utils.Sequence are."""
    child = os.fork()
    if child == 0:
        os._exit(int(np.arange(3).sum()))
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 3
    same(hvd.allreduce(tf.constant([1.0]), op=hvd.Sum), [SIZE])


def check_other_frameworks_share_the_world():
    import horovod.numpy as hvd_numpy
    assert (hvd_numpy.rank(), hvd_numpy.size()) == (RANK, SIZE)
    tensors = hvd.allreduce(tf.constant([1.0]), op=hvd.Sum, name='tensors')
    assert hvd_numpy.allreduce(np.ones(1), op=hvd_numpy.Sum).tolist() == tensors.numpy().tolist() == [SIZE]
    sys.path.append('/usr/lib/python3/dist-packages')
    try:
        import torch
    except ImportError:  # built for another NumPy
        return
    finally:
        sys.path.pop()
    import horovod.torch as hvd_torch
    assert (hvd_torch.rank(), hvd_torch.size()) == (RANK, SIZE)
    handle = hvd_torch.allreduce_async(torch.ones(2), op=hvd_torch.Sum, name='beside')
    same(hvd.allreduce(tf.constant([2.0]), op=hvd.Sum), [2 * SIZE])
    assert hvd_torch.synchronize(handle).tolist() == [SIZE, SIZE]


def check_objects():
    assert hvd.broadcast_object({'rank': RANK}, root_rank=SIZE - 1) == {'rank': SIZE - 1}
    assert hvd.broadcast_object_fn(root_rank=0)(RANK) == 0
    assert hvd.allgather_object([RANK] * RANK) == [[rank] * rank for rank in range(SIZE)]


def check_elastic_state():
    variables = [tf.Variable([float(RANK), 2.0]), tf.Variable(RANK)]
    state = hvd.elastic.TensorFlowState(variables, epoch=RANK)
    state.sync()
    same(variables[0], [0.0, 2.0])
    assert state.epoch == 0 and variables[1].numpy() == 0
    variables[1].assign(5)
    state.epoch = 9
    state.restore()
    assert state.epoch == 0 and variables[1].numpy() == 0


def check_sync_batch_norm():
    rows = [np.random.RandomState(rank).rand(3 + rank, 4).astype('f4') for rank in range(SIZE)]
    layer = hvd.SyncBatchNormalization(momentum=0.0, epsilon=1e-3)
    x = tf.constant(rows[RANK])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
        loss = tf.reduce_sum(y * y * (RANK + 1.0))
    everything = np.concatenate(rows)
    expected = (rows[RANK] - everything.mean(0)) / np.sqrt(everything.var(0) + 1e-3)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(layer.moving_mean, everything.mean(0), rtol=1e-4)
    assert np.isfinite(tape.gradient(loss, x)).all()
    for fused in (True, None):
        fails(ValueError, lambda: hvd.SyncBatchNormalization(fused=fused))


def check_threads_and_a_new_world():
    import threading
    results = {}

    def work(number):
        results[number] = [float(hvd.allreduce(tf.constant(1.0), op=hvd.Sum, name='thread{}'.format(number))) for _ in range(20)]
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[number] == [SIZE] * 20 for number in range(4))
    function = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum))
    same(function(tf.constant([1.0])), [SIZE])
    hvd.shutdown()
    fails(tf.errors.FailedPreconditionError, lambda: hvd.size_op())
    hvd.init()
    same(function(tf.constant([1.0])), [SIZE])


if __name__ == '__main__':
    checks.run_all(sys.modules[__name__])
