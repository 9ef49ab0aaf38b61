"""Workers in the worlds of conftest.in_world, and those that need a job of their own since processes die or fork there."""

import glob
import importlib.util
import os
import re
import time
import uuid

import pytest

import jobs
from slowness import scaled


def lines(output, text):
    return [line for line in output.splitlines() if text in line]


def run_ok(processes, name, *arguments, **kwargs):
    """Runs a worker that prints ok on every rank."""
    result = jobs.run_job(processes, jobs.worker(name), *arguments, **kwargs)
    assert len(re.findall(r'\bok$', result.output, re.MULTILINE)) == processes, str(result)
    return result


both = pytest.mark.parametrize('ranks', [2, 4])  # for in_world


@pytest.fixture(params=[2, 4])
def processes(request, hvdrun, torch):
    return request.param


@both
def test_world(in_world, ranks):
    in_world('world.py', ranks)


@both
def test_collectives_against_numpy(in_world, ranks):
    in_world('collectives.py', timeout_s=100)


# Two hosts of one rank exchange the tensors themselves, of two ranks the sums of the hosts.
@pytest.mark.parametrize('ranks, hosts', [(2, 1), (3, 1), (2, 2), (4, 2)])
def test_averages_of_integers_near_the_ends_of_their_types(in_world, ranks, hosts):
    in_world('integer_averages.py', timeout_s=100)


@pytest.mark.parametrize('ranks', [2, 3])
def test_gradients_of_min_max_and_product(in_world, ranks):
    in_world('selections.py')


def test_default_devices_lazy_views_and_tensors_of_other_classes(hvdrun, torch):
    run_ok(2, 'surroundings.py', timeout_s=100)


def test_compiled_functions_are_cut_at_collectives_without_a_warning(hvdrun, torch):
    if not hasattr(torch, 'compile'):
        pytest.skip('this release has no torch.compile')
    run_ok(2, 'surroundings.py', 'compile', timeout_s=100)


@both
def test_objects_parameters_and_optimizer_state(in_world, ranks):
    in_world('objects.py')


@both
def test_distributed_optimizer(in_world, ranks):
    in_world('optimizer.py', timeout_s=180)  # thousands of small votes of four ranks


@pytest.mark.parametrize('ranks, worker', [(3, ('optimizer.py', 'buckets')), (4, ('buckets.py',))])
def test_buckets_of_gradients(in_world, ranks, worker):
    in_world(*worker)


@both
def test_data_loader_processes(in_world, ranks):
    in_world('loader.py')


@pytest.mark.long
@pytest.mark.below_torch
@pytest.mark.parametrize('processes, hosts', [(2, 1), (3, 2)])
def test_children_of_a_rank_know_its_places(hvdrun, torch, processes, hosts):
    run_ok(processes, 'children.py', hosts=hosts, timeout_s=115, HOROVOD_DYNAMIC_PROCESS_SETS='1')


@pytest.mark.below_torch
def test_forked_child_gets_one_sentence(processes):
    run_ok(processes, 'forked_child.py')


@pytest.mark.below_torch
@both
def test_200_cycles_of_init_and_shutdown(in_world, ranks):
    in_world('cycles.py', 200, timeout_s=100)


@pytest.mark.below_torch
@pytest.mark.parametrize('ranks, hosts', [(1, 1), (2, 1), (3, 1), (4, 2)])
def test_a_hundred_worlds_of_errors_and_dropped_handles(in_world, ranks, hosts):
    in_world('many_worlds.py', 100 if hosts == 1 else 20, timeout_s=110, HOROVOD_DYNAMIC_PROCESS_SETS='1')


@pytest.mark.skipif(not os.environ.get('HVD_SOAK'), reason='takes minutes; set HVD_SOAK=1')
@pytest.mark.deadline(900)
@pytest.mark.parametrize('processes, hosts', [(2, 1), (4, 2)])
def test_5000_steps_with_fresh_tensors_leave_nothing_behind(hvdrun, torch, processes, hosts):
    run_ok(processes, 'soak.py', 5000, hosts=hosts, timeout_s=850)


@both
def test_disagreement_reaches_every_rank(in_world, ranks):
    result = in_world('disagree.py')
    for what in ('shape', 'rank', 'dtype', 'op', 'scale', 'gather', 'alltoall', 'scatter', 'scalar', 'root'):
        assert len(lines(result.output, 'got {}: '.format(what))) == ranks, str(result)


@both
def test_signal_handlers_run_during_a_wait(in_world, ranks):
    in_world('signals.py')


@both
def test_duplicate_name(in_world, ranks):
    in_world('duplicate.py', 'first')


@pytest.mark.below_torch
@pytest.mark.parametrize('mode', ['small', 'large', 'waiting', 'peer', 'loader'])
def test_killed_rank_is_named_by_the_survivors(processes, mode, tmp_path):
    path = str(tmp_path / 'answer')
    token = 'token-' + uuid.uuid4().hex
    result = jobs.run_job(processes, jobs.worker('killed.py'), path, mode, token, timeout_s=40, expect_success=False)
    assert result.returncode not in (0, 2, 126, 127), str(result)
    deadline = time.time() + 5
    while jobs.processes_with(token) and time.time() < deadline:
        time.sleep(0.05)
    assert not jobs.processes_with(token), str(result)
    victim = processes - 1
    answers = sorted(glob.glob(path + '.*'))
    assert [os.path.basename(a) for a in answers] == ['answer.{}'.format(r) for r in range(victim)], str(result)
    for answer in answers:
        with open(answer) as file:
            seconds, error, again = file.read().splitlines()[:3]
        assert error.startswith('HorovodInternalError: '), error
        assert 'rank {}'.format(victim) in error, error
        assert float(seconds) < scaled(2.0), (seconds, error)
        assert again == 'HorovodInternalError', again


@pytest.mark.below_torch
@pytest.mark.parametrize('order', ['before', 'after'])
def test_mpi4py_in_a_job_without_mpi_is_told_once(hvdrun, torch, order):
    if importlib.util.find_spec('mpi4py') is None:
        pytest.skip('mpi4py is not installed for this Python')
    result = jobs.run_job(2, jobs.worker('mpi4py_world.py'), order, hosts=1)
    assert result.output.count('The world of mpi4py has 1 of the 2 processes of this job') == 1, str(result)
    assert 'mpirun -np 2' in result.output and '--mpi' in result.output, str(result)


@pytest.mark.parametrize('processes, hosts', [(1, 1), (2, 1), (4, 1), (4, 2)])
def test_scripts_of_torchrun_find_what_it_sets(hvdrun, torch, processes, hosts):
    run_ok(processes, 'torchrun_names.py', hosts=hosts)
