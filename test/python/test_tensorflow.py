"""horovod.tensorflow and Keras in jobs of two and three ranks. All checks of a file run in one job (tf_checks/checks.py), because
importing TensorFlow takes seconds."""

import importlib.util
import os
import re
import shutil
import sys

import pytest

import jobs

FOLDER = os.path.join(jobs.HERE, 'tf_checks')
sys.path.append(FOLDER)
import checks  # noqa: E402

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec('tensorflow') is None, reason='TensorFlow is not installed for this Python'),
    pytest.mark.deadline(400),
]
_results = {}


def path_of(file):
    return os.path.join(FOLDER, file)


def result_of(file, ranks, *arguments, **extra):
    key = (file, ranks, arguments, tuple(sorted(extra.items())))
    if key not in _results:
        _results[key] = jobs.run_job(ranks, path_of(file), *arguments, timeout_s=300, expect_success=False, **extra)
    return _results[key]


def expect(result, ranks, line):
    assert len(re.findall(r'\b{}$'.format(line), result.output, re.MULTILINE)) == ranks, result.output[-6000:]


@pytest.mark.parametrize('name', checks.names_of(path_of('operations.py')))
def test_operations(hvdrun, name):
    expect(result_of('operations.py', 2), 2, 'passed ' + name)


def test_without_its_library_callbacks_are_used(hvdrun, tmp_path):
    runtime = shutil.copy(jobs.find_runtime(), tmp_path / 'libhvd.so')
    code = ('import tensorflow as tf, horovod.tensorflow as hvd; hvd.init(); '
            'print(tf.function(hvd.allreduce)(tf.ones(2)).numpy().tolist())')
    result = jobs.run([sys.executable, '-c', code], 60, HVD_AGENT=None, HVD_RUNTIME=str(runtime))
    assert result.returncode == 0 and '[1.0, 1.0]' in result.output, str(result)
    assert result.output.count('take longer: libhvd_tf.so is not beside') == 1, str(result)


def test_a_package_without_a_runtime_has_a_world_of_one(tmp_path):
    code = ('import tensorflow as tf, horovod.tensorflow as hvd; hvd.init(); x = tf.ones([2, 2])\n'
            'for f in (hvd.allreduce, hvd.allgather, hvd.reducescatter, hvd.alltoall, lambda x: hvd.broadcast(x, 0)):\n'
            '    assert (f(x).numpy() == 1).all() and (tf.function(f)(x).numpy() == 1).all()\n'
            'print("sizes", hvd.size(), int(hvd.size_op()))')
    result = jobs.run([sys.executable, '-c', code], 60, HVD_AGENT=None, HVD_RUNTIME=None, PYTHONPATH=jobs.package_without_runtime(tmp_path))
    assert result.returncode == 0 and 'sizes 1 1' in result.output, str(result)


@pytest.mark.long
@pytest.mark.parametrize('callbacks', [True, False])
def test_operations_of_three_ranks(hvdrun, callbacks):
    result = result_of('operations.py', 3, HOROVOD_TENSORFLOW_CALLBACKS='1' if callbacks else None)
    expect(result, 3, 'ok')
    assert result.output.count('take longer: HOROVOD_TENSORFLOW_CALLBACKS is 1') == callbacks, result.output[-4000:]


@pytest.mark.parametrize('name', checks.names_of(path_of('keras_models.py')))
def test_keras(hvdrun, name):
    expect(result_of('keras_models.py', 2), 2, 'passed ' + name)


def test_keras_2(hvdrun):
    pytest.importorskip('tf_keras', reason='tf-keras, which is Keras 2, is not installed for this Python')
    expect(result_of('keras_models.py', 2, TF_USE_LEGACY_KERAS='1'), 2, 'ok')


@pytest.mark.parametrize('backend', ['torch', 'jax', 'tensorflow'])
def test_keras_on_each_backend(hvdrun, backend):
    for name in (backend, 'keras'):
        if importlib.util.find_spec(name) is None:
            pytest.skip(name + ' is not installed for this Python')
    expect(result_of('keras_backend.py', 2, backend, KERAS_BACKEND=backend), 2, 'ok')


@pytest.mark.parametrize('how', ['loop', 'fit'])
def test_elastic_training_loses_no_step(hvdrun, how, tmp_path):
    result = jobs.run_job(2, path_of('elastic_training.py'), how, tmp_path / 'died', timeout_s=200,
                          flags=('--elastic', '--min-np', '1'))
    assert (tmp_path / 'died').exists() and 'result 30.0 of' in result.output, result.output[-4000:]


def test_the_example_learns(hvdrun):
    pytest.importorskip('sklearn')
    result = jobs.run_job(2, os.path.join(jobs.ROOT, 'examples', 'tensorflow_digits.py'), '--epochs', 6, timeout_s=300)
    assert float(re.search(r'test accuracy: (\S+)', result.output).group(1)) > 0.93, result.output[-3000:]


@pytest.mark.parametrize('how, kind', [('eager', 'UnknownError'), ('function', 'UnknownError'), ('sync', 'HorovodInternalError')])
def test_a_death_ends_what_is_in_flight_with_its_cause(hvdrun, how, kind):
    result = result_of('death.py', 2, how)
    assert result.returncode == 7, result.output[-4000:]
    assert re.search(r'(?m):{} '.format(kind), result.output) and 'rank 1' in result.output, result.output[-4000:]
