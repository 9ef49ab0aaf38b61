"""Collectives of every kind, type, size and process set against NumPy, drawn from seeds; see workers/matrix.py.

HVD_SOAK=N draws N times as many from seeds of the clock. --hosts-per-machine N spreads the ranks over N hosts.
"""

import os
import re
import time

import pytest

import jobs

SOAK = int(os.environ.get('HVD_SOAK') or 0)


def seeds(processes):
    if not SOAK:
        return [processes]
    first = int(time.time()) % 1000000
    return [first + processes + 10 * i for i in range(SOAK)]


@pytest.mark.deadline(120 + 600 * SOAK)
@pytest.mark.parametrize('processes', [1, 2, 3, 4, 5, 8])
def test_P40_every_type_operation_and_set(hvdrun, processes):
    pytest.importorskip('numpy', reason='NumPy is not installed for this Python')
    for seed in seeds(processes):
        print('seed', seed)
        cases, timeout_s = (2000, 500) if SOAK else (300, 110)
        result = jobs.run_job(processes, jobs.worker('matrix.py'), seed, cases, timeout_s=timeout_s)
        assert len(re.findall(r'\bok$', result.output, re.MULTILINE)) == processes, str(result)
