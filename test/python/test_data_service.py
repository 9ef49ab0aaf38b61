"""horovod.tensorflow.data: a job of dispatchers and workers of tf.data's service beside a job that trains."""

import importlib.util
import os
import re
import signal
import stat
import subprocess
import sys

import pytest

import jobs

SCRIPTS = {'checks': os.path.join(jobs.HERE, 'tf_checks', 'data_service.py'),
           'example': os.path.join(jobs.ROOT, 'examples', 'tensorflow_data_service.py')}

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec('tensorflow') is None, reason='TensorFlow is not installed for this Python'),
    pytest.mark.deadline(300),
]


def start_workers(path, *arguments, ranks=2):
    return subprocess.Popen([jobs.find_hvdrun(), '-np', str(ranks), sys.executable, '-m', 'horovod.tensorflow.data.compute_worker',
                             str(path)] + [str(argument) for argument in arguments], env=jobs.environment(TF_CPP_MIN_LOG_LEVEL='2'),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                            start_new_session=True)


def output_of(process):
    try:
        return process.communicate(timeout=jobs.scaled(90))[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + '\n(killed: it did not end)'


def train_beside(workers, script, *arguments):
    training = None
    try:
        training = jobs.run_job(2, script, *arguments, timeout_s=150, expect_success=False)
    finally:
        if training is None or training.returncode != 0:
            workers.send_signal(signal.SIGTERM)  # nobody else ends it
        output = output_of(workers)
    return training, output


# name of the script, the job that has the dispatchers, how many
VARIANTS = [('checks', 'compute', 1), ('checks', 'training', 2), ('checks', 'compute', 2), ('checks', 'training', 1), ('example', 'compute', 1)]


@pytest.mark.parametrize('script, side, dispatchers', VARIANTS)
def test_workers_of_another_job_prepare_the_data(hvdrun, tmp_path, script, side, dispatchers):
    if script == 'example':
        pytest.importorskip('sklearn')
    path = tmp_path / 'service.json'
    workers = start_workers(path, '--dispatchers', dispatchers, '--dispatcher-side', side)
    training, output = train_beside(workers, SCRIPTS[script], path)
    if script == 'example':
        found = re.search(r'test accuracy: (\S+)', training.output)
        assert found and float(found.group(1)) > 0.9, '{}\n{}'.format(training, output)
    else:
        assert len(re.findall(r'\bok$', training.output, re.MULTILINE)) == 2, '{}\n{}'.format(training, output)
    assert workers.returncode == 0, output
    assert not path.exists(), 'the key of a service that is gone lies about'


def test_a_wrong_number_of_ranks_is_refused(hvdrun, tmp_path):
    workers = start_workers(tmp_path / 'service.json', '--dispatchers', 3)
    assert 'The number of ranks, 2, cannot be divided by that of dispatchers, 3.' in output_of(workers)
    assert workers.returncode == 1


def test_the_configuration_is_a_file_for_its_user_alone(tmp_path):
    from horovod.tensorflow.data.compute_service import TfDataServiceConfig
    config = TfDataServiceConfig(1, 2, 'compute', {'lo': [('127.0.0.1', 1)]}, b'\x00key', 5)
    assert TfDataServiceConfig.from_dict(config.to_dict()) == config
    path = str(tmp_path / 'config.json')
    config.write(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert TfDataServiceConfig.read(path, wait_for_file_creation=True) == config
    assert os.listdir(tmp_path) == ['config.json']
    assert 'key' not in repr(config)
    with pytest.raises(ValueError, match='dispatcher_side'):
        TfDataServiceConfig(1, 2, 'both', {}, b'')
