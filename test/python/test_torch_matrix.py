"""The backend `hvd` of torch.distributed beside gloo in what scripts do, and PyTorch's own tests of a backend: in --soak, minutes each."""

import jobs
import pytest
import test_torch_backend as backend  # skips this file as well, where there is no backend

torch = pytest.importorskip('torch')

CHECKS = ('ddp', 'accumulation', 'buffers', 'join', 'zero', 'localsgd', 'fsdp2', 'fsdp2_registered', 'fsdp1', 'tensor_parallel', 'dtensor',
          'mesh', 'checkpoint', 'pipeline', 'handmade_pipeline', 'objects', 'split', 'functional', 'compile', 'coalesced', 'sparse',
          'monitored', 'again', 'threads', 'many_messages')


@pytest.mark.deadline(300)
@pytest.mark.parametrize('hosts', [1, 2])
@pytest.mark.parametrize('processes', [2, 4])
@pytest.mark.parametrize('check', CHECKS)
def test_the_numbers_are_those_of_gloo(check, processes, hosts):
    result = jobs.run_job(processes, jobs.worker('torch_matrix.py'), check, timeout_s=250, hosts=hosts)
    assert result.output.count('done ') == processes, str(result)


@pytest.mark.deadline(300)
def test_inductor():
    """It compiles C++."""
    result = jobs.run_job(2, jobs.worker('torch_matrix.py'), 'inductor', timeout_s=250)
    assert result.output.count('done ') == 2, str(result)


def test_shards_replicated():
    result = jobs.run_job(4, jobs.worker('torch_matrix.py'), 'hsdp', timeout_s=100)
    assert result.output.count('done ') == 4, str(result)


@pytest.mark.parametrize('where, hosts', [('allreduce', 1), ('allreduce', 2), ('ddp', 2)])
def test_a_killed_rank(where, hosts):
    backend.test_a_killed_rank_ends_the_others_with_its_name(where, hosts)


def test_ranks_of_torchrun_on_two_hosts():
    backend.test_ranks_of_torchrun(2)


def test_scripts_that_ask_for_gloo_on_two_hosts(tmp_path):
    backend.test_scripts_that_ask_for_gloo('hvd', tmp_path, 2)


@pytest.mark.deadline(7200)
def test_the_tests_of_pytorch():
    """Their module, which the wheel has. workers/torch_suite.py has what does not apply."""
    pytest.importorskip('expecttest')
    result = jobs.run([backend.sys.executable, jobs.worker('torch_suite.py')], 7000, HVD_AGENT=None, HVD_HVDRUN=jobs.find_hvdrun())
    assert result.returncode == 0 and 'failed: none' in result.output, result.output[-20000:]
