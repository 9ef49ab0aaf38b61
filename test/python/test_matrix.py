"""Collectives of every kind, type, size and process set against NumPy, drawn from seeds; see workers/matrix.py.

HVD_SOAK=N draws N times as many from seeds of the clock. --hosts-per-machine N spreads the ranks of the rows that name no
hosts over N.
"""

import os
import time

import pytest

pytestmark = pytest.mark.below_torch

SOAK = int(os.environ.get('HVD_SOAK') or 0)


def seeds(ranks):
    if not SOAK:
        return [ranks]
    first = int(time.time()) % 1000000
    return [first + ranks + 10 * i for i in range(SOAK)]


# One host of its own for each of two ranks; a host with one rank and one with more; as many on each; three hosts.
SPREAD = [(2, 2), (3, 2), (4, 2), (5, 2), (5, 3), (8, 2)]


@pytest.mark.deadline(120 + 600 * SOAK)
@pytest.mark.parametrize('ranks, hosts', [(n, None) for n in (1, 2, 3, 4, 5, 8)] + SPREAD)
def test_every_type_operation_and_set(in_world, ranks, hosts):
    for seed in seeds(ranks):
        print('seed', seed)
        # Of many ranks fewer: on two processors they cost more, and few cases need more than three.
        cases, timeout_s = (2000, 500) if SOAK else (min(300, 600 // ranks), 110)
        in_world('matrix.py', seed, cases, timeout_s=timeout_s)
