"""Training by fit() on several ranks: the optimizers, callbacks and states of horovod.tensorflow.keras and horovod.keras."""

import os
import sys
import tempfile
import zipfile

import checks
import numpy as np
import tensorflow as tf

import horovod.keras as plain
import horovod.tensorflow.keras as hvd

keras = tf.keras
hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
RANDOM = np.random.RandomState(RANK)
X = RANDOM.rand(64, 4).astype('f4')
Y = X.sum(1, keepdims=True)


def made_model():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation='relu'), keras.layers.Dense(1)])


def flat(model):
    return np.concatenate([np.ravel(weight) for weight in model.get_weights()])


def differences(model):
    """How far the weights of the ranks are apart."""
    weights = hvd.allgather(flat(model).reshape(1, -1))
    assert np.isfinite(weights).all()
    return np.abs(weights - weights[0]).max()


def fit(optimizer, epochs=2, callbacks=(), **options):
    model = made_model()
    model.compile(optimizer, loss='mse', **options)
    before = flat(model)
    history = model.fit(X, Y, batch_size=16, epochs=epochs, verbose=0,
                        callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)] + list(callbacks))
    assert np.abs(flat(model) - before).max() > 0
    return model, history.history


def check_fit_gives_all_ranks_one_model():
    for package in (hvd, plain):
        for optimizer in (keras.optimizers.SGD(0.05, momentum=0.9), keras.optimizers.Adam(0.01)):
            wrapped = package.DistributedOptimizer(optimizer)
            assert type(wrapped).__name__ == type(optimizer).__name__ and isinstance(wrapped, type(optimizer))
            model, _ = fit(wrapped)
            assert differences(model) == 0


def check_older_optimizers_of_keras_2():
    if hasattr(keras, 'ops'):
        return
    model, _ = fit(hvd.DistributedOptimizer(keras.optimizers.legacy.SGD(0.05, momentum=0.9)))
    assert differences(model) == 0
    wrapped = hvd.DistributedOptimizer(keras.optimizers.legacy.Adam(0.01), backward_passes_per_step=2)
    model, _ = fit(wrapped)
    assert differences(model) == 0


def check_gradients_are_averages():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer='ones')])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(1.0)), loss=lambda true, predicted: predicted)
    model.fit(np.full((1, 1), RANK + 1.0, 'f4'), np.zeros((1, 1), 'f4'), epochs=1, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], [[1 - (SIZE + 1) / 2]])


def check_a_copy_is_distributed_as_well():
    """Tools copy an optimizer by its configuration."""
    wrapped = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01), op=hvd.Sum)
    assert type(wrapped).__module__ == 'horovod._keras'
    for copy in (wrapped.from_config(wrapped.get_config()), type(wrapped).from_config(wrapped.get_config())):
        assert copy.get_config() == wrapped.get_config()
        model, _ = fit(copy)
        assert differences(model) == 0


def check_each_entry_of_keras_2_combines_gradients_once():
    if hasattr(keras, 'ops'):
        return
    for made in (keras.optimizers.SGD(1.0), keras.optimizers.legacy.SGD(1.0)):
        for op, expected in ((hvd.Average, (SIZE + 1) / 2), (hvd.Sum, SIZE * (SIZE + 1) / 2)):
            wrapped, variable = hvd.DistributedOptimizer(made, op=op), tf.Variable([0.0])
            own = tf.constant([RANK + 1.0])

            def stepped():
                np.testing.assert_allclose(variable, [-expected])
                variable.assign([0.0])

            wrapped.minimize(lambda: variable * own, [variable])
            stepped()
            wrapped.apply_gradients([(own, variable)])
            stepped()
            compute = getattr(wrapped, 'compute_gradients', None) or wrapped._compute_gradients
            pairs = compute(lambda: variable * own, [variable])
            np.testing.assert_allclose(pairs[0][0], [expected])
            wrapped.apply_gradients(pairs)
            stepped()
            aggregate = getattr(wrapped, 'aggregate_gradients', None) or wrapped._aggregate_gradients
            wrapped.apply_gradients(aggregate([(own, variable)]), experimental_aggregate_gradients=False)
            stepped()
            wrapped.apply_gradients([(own, variable)])  # nothing is left of the steps before
            stepped()


def check_an_own_optimizer_is_saved_and_loaded():
    class Own(keras.optimizers.SGD):
        pass
    model, _ = fit(hvd.DistributedOptimizer(Own(0.01)))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model.keras')
        model.save(path)
        loaded = hvd.load_model(path, custom_optimizers=[Own])
    assert isinstance(loaded.optimizer, Own) and hasattr(loaded.optimizer, '_hvd')


def check_a_model_for_serving_has_no_operation_of_ours():
    model, _ = fit(hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)))
    with tempfile.TemporaryDirectory() as folder:
        (model.export if hasattr(keras, 'ops') else model.save)(folder)
        with open(os.path.join(folder, 'saved_model.pb'), 'rb') as file:
            assert b'Horovod' not in file.read()


def check_arguments_of_the_optimizer():
    sgd = keras.optimizers.SGD(0.05)
    for options in ({'op': hvd.Sum}, {'groups': 2}, {'gradient_predivide_factor': 2.0}, {'compression': hvd.Compression.fp16},
                    {'sparse_as_dense': True}):
        model, _ = fit(hvd.DistributedOptimizer(sgd, **options), epochs=1)
        assert differences(model) == 0
    for wrong in ({'op': 2}, {'groups': 0}, {'backward_passes_per_step': 0}, {'op': hvd.Sum, 'gradient_predivide_factor': 2.0}):
        try:
            hvd.DistributedOptimizer(sgd, **wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)
    assert not hasattr(sgd, '_hvd'), 'the wrapped one has changed'


def check_a_local_layer_keeps_its_gradients():
    model = made_model()
    wrapped = plain.PartialDistributedOptimizer(keras.optimizers.SGD(0.05), local_layers=model.layers[0])
    model.compile(wrapped, loss='mse')
    model.fit(X, Y, batch_size=16, epochs=1, verbose=0,
              callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0, local_variables=model.layers[0].variables)])
    assert differences(model) > 0
    weights = hvd.allgather(model.get_weights()[2].reshape(1, -1))
    assert np.abs(weights - weights[0]).max() == 0


def check_several_backward_passes():
    wrapped = hvd.DistributedOptimizer(keras.optimizers.SGD(0.05), backward_passes_per_step=2, average_aggregated_gradients=True)
    model, _ = fit(wrapped)
    assert differences(model) == 0
    assert int(np.ravel(hvd_value(wrapped.iterations))[0]) == 8


def hvd_value(variable):
    return variable.numpy()


def check_embeddings_give_slices():
    for dense in (False, True):
        model = keras.Sequential([keras.Input((3,), dtype='int32'), keras.layers.Embedding(10, 2), keras.layers.Flatten(),
                                  keras.layers.Dense(1)])
        model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), sparse_as_dense=dense), loss='mse')
        model.fit(RANDOM.randint(0, 10, (8, 3)), np.ones((8, 1)), batch_size=4, epochs=1, verbose=0,
                  callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
        assert differences(model) == 0


def check_callbacks():
    warmup = hvd.callbacks.LearningRateWarmupCallback(0.05, warmup_epochs=2, verbose=1)
    model, history = fit(hvd.DistributedOptimizer(keras.optimizers.SGD(0.05, momentum=0.9)), 3,
                         [hvd.callbacks.MetricAverageCallback(), warmup])
    np.testing.assert_allclose(history['lr'][1:], [0.05, 0.05], rtol=1e-5)
    assert history['lr'][0] < 0.05
    losses = hvd.allgather(np.array([history['loss']]))
    assert (losses == losses[0]).all()
    schedule = hvd.callbacks.LearningRateScheduleCallback(0.1, lambda epoch: 0.5 ** epoch)
    _, history = fit(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), 3, [schedule])
    np.testing.assert_allclose(history['lr'], [0.1, 0.05, 0.025], rtol=1e-5)


def check_models_are_saved_and_loaded():
    model, _ = fit(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model.keras')
        model.save(path)
        if zipfile.is_zipfile(path):  # else of an older Keras
            with zipfile.ZipFile(path) as file:
                assert b'horovod' not in file.read('config.json'), 'it is opened where there is none'
        assert keras.models.load_model(path, compile=False).predict(X[:2], verbose=0).shape[0] == 2
        unwrapped = keras.models.load_model(path)
        assert not hasattr(unwrapped.optimizer, '_hvd')
        loaded = hvd.load_model(path)
        best = hvd.callbacks.BestModelCheckpoint(monitor='loss')
        best.filepath = os.path.join(folder, 'best.keras' if hasattr(keras, 'ops') else 'best.h5')
        loaded.fit(X, Y, batch_size=16, epochs=1, verbose=0, callbacks=[best])
        assert os.path.exists(best.filepath)
    assert int(np.ravel(hvd_value(loaded.optimizer.iterations))[0]) == 12
    assert differences(loaded) == 0


def check_mixed_precision_skips_a_step_on_all_ranks_together():
    policy = keras.mixed_precision.global_policy() if hasattr(keras.mixed_precision, 'global_policy') else 'float32'
    keras.mixed_precision.set_global_policy('mixed_float16')
    try:
        for wraps_first in (False, True):
            if wraps_first:  # then Keras puts its own optimizer around ours
                keras.mixed_precision.set_global_policy('float32')
            wrapped = hvd.DistributedOptimizer(keras.optimizers.SGD(0.01))
            keras.mixed_precision.set_global_policy('mixed_float16')
            model = made_model()
            model.compile(wrapped, loss='mse')
            model.fit(X, Y, batch_size=16, epochs=1, verbose=0, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
            broken = X.copy()
            if RANK == SIZE - 1:
                broken[0] = np.inf
            model.fit(broken, Y, batch_size=16, epochs=1, verbose=0, shuffle=False)
            assert differences(model) == 0
    finally:
        keras.mixed_precision.set_global_policy(policy)


def check_elastic_state_and_callbacks():
    model, _ = fit(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)))
    state = hvd.elastic.KerasState(model, epoch=RANK, batch=0)
    model.set_weights([weight + RANK for weight in model.get_weights()])
    state.save()
    state.sync()
    assert differences(model) == 0 and state.epoch == 0
    kept = flat(model)
    model.fit(X, Y, batch_size=16, epochs=2, verbose=0, callbacks=[
        hvd.elastic.CommitStateCallback(state, batches_per_commit=3), hvd.elastic.UpdateBatchStateCallback(state),
        hvd.elastic.UpdateEpochStateCallback(state)])
    assert (state.epoch, state.batch) == (2, 0)
    model.set_weights([weight * 0 for weight in model.get_weights()])
    state.restore()
    assert np.abs(flat(model) - kept).max() > 0 and differences(model) == 0
    try:
        hvd.elastic.KerasState(keras.Sequential([keras.layers.Dense(2)]))
    except ValueError:
        return
    raise AssertionError('a model without variables was taken')


def check_a_kept_commit_is_the_whole_state():
    """As hvdrun --keep-commits keeps it, for a process whose optimizer has not been built."""
    from horovod.common import kept_commits
    model, _ = fit(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)))
    state = hvd.elastic.KerasState(model, epoch=3)
    contents = bytearray(b''.join(kept_commits.packed(state._kept(), state._reduce_kept)))
    fresh = keras.models.clone_model(model)
    fresh.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam(0.5)), loss='mse')
    restored = hvd.elastic.KerasState(fresh, epoch=0)
    restored._use_kept(kept_commits.unpacked(contents))
    values, expected = (each._read(each._variables()) for each in (restored, state))
    assert restored.epoch == 3 and len(values) == len(expected) > len(model.get_weights())
    assert all((one == other).all() for one, other in zip(values, expected))


def check_a_plain_optimizer_is_noticed():
    import warnings
    for optimizer, noticed in ((keras.optimizers.SGD(0.05), True), (hvd.DistributedOptimizer(keras.optimizers.SGD(0.05)), False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            fit(optimizer, 1)
        assert any('not combined' in str(warning.message) for warning in caught) == noticed


def check_values():
    assert hvd.allreduce(float(RANK)) == sum(range(SIZE)) / SIZE
    assert hvd.allreduce(RANK, op=hvd.Sum) == sum(range(SIZE))
    assert plain.allreduce(float(RANK), average=False) == sum(range(SIZE))
    assert hvd.allgather([RANK]).tolist() == list(range(SIZE))
    assert hvd.broadcast(RANK, SIZE - 1) == SIZE - 1
    assert hvd.reducescatter(np.ones(SIZE), op=hvd.Sum).tolist() == [SIZE]


def check_slices_of_local_variables():
    table = tf.keras.layers.Embedding(3, 2, embeddings_initializer='zeros')
    model = tf.keras.Sequential([tf.keras.Input((1,)), table])
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0))
    optimizer.register_local_var(table.trainable_weights[0])
    rows = tf.constant([[hvd.rank()]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(rows))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights))
    expected = [[-1.0 / hvd.size() if row == hvd.rank() else 0.0] * 2 for row in range(3)]
    assert table.get_weights()[0].tolist() == expected, table.get_weights()


if __name__ == '__main__':
    checks.run_all(sys.modules[__name__])
