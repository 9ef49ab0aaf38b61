"""PyTorch's own tests of a backend of torch.distributed, which its wheel has, over the backend `hvd` in the place of gloo.

    torch_suite.py [NAME...]

Runs all tests, or those of these names, each with ranks that it forks, and prints what failed. NOT_OURS has those that cannot hold.
"""

import multiprocessing
import os
import sys
import tempfile
import unittest

RANKS = 4

os.environ.update(BACKEND='gloo', WORLD_SIZE=str(RANKS), MASTER_ADDR='127.0.0.1', HOROVOD_TORCH_BACKEND='hvd',
                  DISTRIBUTED_TESTS_DEFAULT_TIMEOUT='60')
os.environ.setdefault('TEMP_DIR', tempfile.mkdtemp())
for name in ('barrier', 'init_dir'):
    os.makedirs(os.path.join(os.environ['TEMP_DIR'], name), exist_ok=True)

import torch.distributed as dist  # noqa: E402
from horovod.common import _torch_backend  # noqa: E402

_torch_backend.replace()
dist.init_process_group = dist.distributed_c10d.init_process_group
dist.new_group = dist.distributed_c10d.new_group

from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402

# name of a test: why it does not apply
NOT_OURS = {name: reason for reason, names in {
    'c10d asks no backend in Python whether a work is completed': 'test_irecv test_isend test_isend_autograd_profiler test_isend_torch_profiler',
    'the messages of gloo; ours name the ranks that are missing': 'test_barrier_timeout_full_group test_monitored_barrier_gloo '
        'test_monitored_barrier_gloo_rank_0_timeout test_monitored_barrier_gloo_subgroup',
    'the name of the backend is hvd': 'test_get_backend',
    'DDP logs "custom" for each backend that is not of PyTorch': 'test_ddp_logging_data_cpu',
    'recv needs the rank of the source': 'test_send_recv_any_source test_send_recv_any_source_autograd_profiler '
        'test_send_recv_any_source_torch_profiler',
}.items() for name in names.split()}


class TestOverHvd(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        if self._testMethodName in NOT_OURS:
            self.skipTest(NOT_OURS[self._testMethodName])
        super().setUp()
        self._start_processes(multiprocessing.get_context('fork').Process)


def main():
    names = sys.argv[1:] or sorted(name for name in dir(TestOverHvd) if name.startswith('test_'))
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite([TestOverHvd(name) for name in names]))
    failed = [test._testMethodName for test, _ in result.failures + result.errors]
    print('passed or skipped by PyTorch: {}; failed: {}'.format(result.testsRun - len(failed), ' '.join(failed) or 'none'))
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
