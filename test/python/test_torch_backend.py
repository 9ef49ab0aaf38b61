"""The backend `hvd` of torch.distributed (horovod/torch/process_group.py), in jobs of their own: they end and begin worlds."""

import os
import subprocess
import sys

import jobs
import pytest

torch = pytest.importorskip('torch')
if not hasattr(torch._C._distributed_c10d, 'Backend') or not hasattr(torch.distributed, 'all_gather_into_tensor') or tuple(
        int(part) for part in torch.__version__.split('.')[:2]) < (2, 6):
    pytest.skip('PyTorch {} has no c10d Backend that a Python class can extend'.format(torch.__version__), allow_module_level=True)

if jobs.find_runtime() is None or jobs.find_hvdrun() is None:
    pytest.skip('libhvd.so or hvdrun is not built', allow_module_level=True)

WORKER = jobs.worker('torch_backend.py')


def run(processes, *checks, **more):
    result = jobs.run_job(processes, WORKER, *checks, timeout_s=120, **more)
    assert result.output.count('done ') == processes, str(result)


def test_two_ranks():
    run(2, 'collectives', 'messages', 'ddp', 'join', 'fsdp', 'errors')


def test_four_ranks():
    run(4, 'collectives', 'messages', 'groups', 'ddp', 'fsdp', 'errors')


def test_two_hosts():
    run(4, 'collectives', 'messages', 'groups', 'ddp', hosts=2)


def test_world_of_one():
    run(1, 'collectives')


def test_a_device_in_the_name():
    run(2, 'collectives', 'devices')


def test_ended_and_begun_again():
    run(2, 'again')


def test_a_killed_rank_ends_the_others_with_its_name():
    result = jobs.run_job(3, jobs.worker('torch_backend_killed.py'), expect_success=False)
    assert result.returncode != 0
    assert 'rank 1' in result.output and 'SIGKILL' in result.output, str(result)


def test_it_is_not_imported_with_horovod_torch():
    code = 'import horovod.torch, sys; assert not [name for name in sys.modules if "group_" in name and "horovod" in name or ' \
           '"process_group" in name and "horovod" in name]; import torch.distributed as dist; ' \
           'assert "HVD" in dist.Backend._plugins'
    subprocess.run([sys.executable, '-c', code], env=jobs.environment(), check=True, cwd=os.path.dirname(WORKER))
