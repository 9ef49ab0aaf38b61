"""10,000 steps with every collective of a framework leave memory and descriptors as they are. Of scripts/test.sh --soak."""

import importlib.util

import pytest

import jobs

STEPS = 10000
PACKAGE = {'tensorflow': 'tensorflow', 'tensorflow-function': 'tensorflow', 'jax': 'jax', 'jax-outside': 'jax', 'mxnet': 'mxnet',
           'numpy': 'numpy'}

pytestmark = pytest.mark.deadline(700)


@pytest.mark.parametrize('what', list(PACKAGE))
@pytest.mark.parametrize('callbacks', [False, True])
def test_thousands_of_steps_leave_nothing_behind(hvdrun, what, callbacks):
    if importlib.util.find_spec(PACKAGE[what]) is None:
        pytest.skip(PACKAGE[what] + ' is not installed for this Python')
    variable = {'tensorflow': 'HOROVOD_TENSORFLOW_CALLBACKS', 'jax': 'HOROVOD_JAX_CALLBACKS'}.get(PACKAGE[what])
    if callbacks and variable is None:
        pytest.skip(what + ' has no other form of its collectives')
    result = jobs.run_job(2, jobs.worker('leaks.py'), what, STEPS, timeout_s=600, JAX_PLATFORMS='cpu',
                          **({variable: '1'} if callbacks else {}))
    assert result.output.count('steady') == 2, str(result)
    print(result.output)


def test_a_leak_is_seen(hvdrun):
    result = jobs.run_job(2, jobs.worker('leaks.py'), 'numpy', 5000, 2000, expect_success=False)
    assert result.returncode != 0 and 'AssertionError' in result.output and 'steady' not in result.output, str(result)
