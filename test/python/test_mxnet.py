"""horovod.mxnet: all checks of workers/mxnet_checks.py in one job of two ranks; the example."""

import os
import re

import jobs
import pytest

WORKER = jobs.worker('mxnet_checks.py')

pytestmark = pytest.mark.xdist_group('mxnet')


def names_of_checks():
    with open(WORKER) as source:
        return re.findall(r'^@check\ndef (\w+)', source.read(), re.MULTILINE)


@pytest.fixture(scope='module')
def checked(hvdrun):
    try:
        import mxnet  # noqa: F401
    except Exception as error:  # an AttributeError with a NumPy that is too new
        pytest.skip('MXNet cannot be imported in this Python: {}'.format(error))
    return jobs.run_job(2, WORKER, expect_success=False, timeout_s=100)


@pytest.mark.parametrize('name', names_of_checks())
def test_check(checked, name):
    assert len(re.findall(r'\bpass {}$'.format(name), checked.output, re.MULTILINE)) == 2, str(checked)


def test_all_checks_end(checked):
    assert checked.returncode == 0, str(checked)


def test_the_example_learns(checked):
    pytest.importorskip('sklearn', reason='scikit-learn is not installed for this Python')
    result = jobs.run_job(2, os.path.join(jobs.ROOT, 'examples', 'mxnet_digits.py'))
    assert float(re.search(r'accuracy ([\d.]+)', result.output).group(1)) > 0.9, str(result)
