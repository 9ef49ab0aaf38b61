"""The digits example: it learns, and any number of processes takes the same steps."""

import json
import re
import time

import pytest

import jobs
from slowness import scaled


@pytest.fixture(scope='module', autouse=True)
def needs(hvdrun, torch):
    pytest.importorskip('sklearn', reason='scikit-learn is not installed for this Python')


def losses(tmp_path, processes, *arguments):
    """Losses of 50 steps."""
    path = tmp_path / 'losses.{}.json'.format(processes)
    arguments = ('--steps', 50, '--epochs', 3, '--log-losses', path) + arguments
    if processes == 1:
        jobs.run_alone(jobs.DIGITS, *arguments)
    else:
        jobs.run_job(processes, jobs.DIGITS, *arguments)
    values = json.loads(path.read_text())
    assert len(values) == 50
    return values


def largest_difference(these, those):
    return max(abs(a - b) / abs(a) for a, b in zip(these, those))


def test_accuracy_on_two_processes(tmp_path):
    started = time.time()
    result = jobs.run_job(2, jobs.DIGITS, '--check-hashes')
    seconds = time.time() - started
    epochs = re.findall(r'epoch (\d+)/8  loss (\d+\.\d{4})  test accuracy (\d+\.\d) %', result.output)
    assert [int(epoch[0]) for epoch in epochs] == list(range(1, 9)), str(result)
    assert float(epochs[-1][2]) >= 95.0, str(result)
    assert seconds < scaled(60), seconds


@pytest.mark.long
def test_data_loader_processes_change_nothing(tmp_path):
    assert losses(tmp_path, 2) == losses(tmp_path, 2, '--num-workers', 2)


@pytest.mark.parametrize('dtype, tolerance', [('float32', 1e-5), ('float64', 1e-10)])
@pytest.mark.long
def test_same_losses_on_1_2_and_4_processes(tmp_path, dtype, tolerance):
    one = losses(tmp_path, 1, '--dtype', dtype)
    assert one[-1] < one[0] / 2
    for processes in (2, 4):
        several = losses(tmp_path, processes, '--dtype', dtype, '--check-hashes')
        difference = largest_difference(one, several)
        print('{} {} processes: {:.2e}'.format(dtype, processes, difference))
        assert difference < tolerance


@pytest.mark.long
def test_without_exchange_the_losses_differ(tmp_path):
    assert largest_difference(losses(tmp_path, 1), losses(tmp_path, 2, '--no-exchange')) > 1e-3


@pytest.mark.below_torch
def test_without_exchange_the_parameters_differ():
    result = jobs.run_job(2, jobs.DIGITS, '--epochs', 1, '--check-hashes', '--no-exchange', expect_success=False)
    assert result.returncode != 0 and 'parameters differ' in result.output, str(result)


@pytest.mark.below_torch
def test_batch_that_cannot_be_shared():
    result = jobs.run_job(2, jobs.DIGITS, '--batch-size', 63, expect_success=False)
    assert result.returncode != 0 and '--batch-size 63' in result.output, str(result)
