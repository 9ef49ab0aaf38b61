"""Tensors on GPUs, from horovod.torch to NCCL, in jobs of several processes: on machines without a GPU with the driver and the
NCCL of test/fakes/gpu_libraries, in whose memory torch's tensors of the host stand for those of a device."""

import ctypes
import glob
import json
import os
import sys

import pytest

import jobs
from jobs import FAKE_GPUS
from slowness import scaled

pytestmark = pytest.mark.below_torch

@pytest.fixture
def gpus(fake_gpus):
    """Runs a worker on fake GPUs, in a job of its own."""
    def run(processes, script, *arguments, **more):
        more.setdefault('LD_LIBRARY_PATH', jobs.with_fake_gpus())
        return jobs.run_job(processes, jobs.worker('on_fake_gpus.py'), jobs.worker(script), *arguments, **more)
    return run


# By NCCL; by NCCL with GPUs that begin late; through the host because a setting says so, because the ranks share a GPU,
# because NCCL is too old.
NCCL = {}
SLOW = {'FAKE_GPU_DELAY_US': '300'}
STAGED = {'HOROVOD_GPU_STAGED': '1'}
ONE_GPU = {'FAKE_GPU_SHARED': '1'}
OLD = {'FAKE_NCCL_VERSION': '21200'}
GRAPHS = {'HOROVOD_GPU_GRAPHS': '1'}
on_gpus = pytest.mark.world(gpus=True)


def tensors_on_gpus(in_world, ranks, setting, worlds):
    way = 'nccl' if setting in (NCCL, SLOW, GRAPHS) and ranks > 1 else 'staged'
    result = in_world('gpu.py', way, worlds, HOROVOD_DYNAMIC_PROCESS_SETS='1', **setting)
    # Rank 0 says it once in each world.
    said = result.output.count('of the world travel through the memory of the host, the slow way')
    assert said == (worlds if way == 'staged' and ranks > 1 else 0), str(result)
    assert not glob.glob('/dev/shm/fake-nccl-*')


@on_gpus
@pytest.mark.parametrize('ranks, setting', [
    (1, NCCL), (2, NCCL), (3, NCCL), (4, SLOW), (1, STAGED), (4, STAGED), (2, ONE_GPU), (3, ONE_GPU), (2, OLD), (3, GRAPHS),
], ids=str)
def test_tensors_on_gpus(in_world, ranks, setting):
    tensors_on_gpus(in_world, ranks, setting, worlds=3)


def test_tensors_on_gpus_without_a_goodbye(gpus):
    result = gpus(2, 'gpu.py', 'nccl', 1, GPU_WORKER_ENDS='without shutdown', HOROVOD_DYNAMIC_PROCESS_SETS='1')
    assert result.output.count('ok') == 2, str(result)


@on_gpus
@pytest.mark.parametrize('hosts, ranks, setting', [
    (2, 2, NCCL), (2, 4, SLOW), (3, 5, NCCL), (3, 5, SLOW), (2, 4, STAGED), (3, 5, OLD),
], ids=str)
def test_tensors_on_gpus_of_several_hosts(in_world, hosts, ranks, setting):
    tensors_on_gpus(in_world, ranks, setting, worlds=2)


@on_gpus
@pytest.mark.parametrize('hosts, ranks, setting', [(1, 2, NCCL), (1, 3, SLOW), (1, 2, STAGED), (2, 4, SLOW)], ids=str)
def test_averages_of_integers_are_exact_on_gpus(in_world, hosts, ranks, setting):
    in_world('integer_averages.py', timeout_s=100, **setting)


# Rules for the tensors of a processor hold for these, too. The staged path is one for all that is above it, so a few of the scripts take it.
SUITE = [
    ('collectives.py',), ('groups.py',), ('process_sets.py',), ('names.py',), ('disagree.py',), ('optimizer.py',), ('dynamic_sets.py',),
    ('join.py', 'neutral'), ('join.py', 'others'), ('join.py', 'last'), ('join.py', 'training'), ('duplicate.py', 'everywhere')]
ON_ONE_HOST = [
    ('autograd.py',), ('not_scattered.py',), ('optimizer.py', 'buckets'), ('adasum_optimizer.py',), ('sparse.py',), ('buckets.py',),
    ('sync_batch_norm.py',), ('elastic_state.py',), ('duplicate.py', 'poll'), ('duplicate.py', 'threads')]
STAGED_SUITE = [('collectives.py',), ('groups.py',), ('dynamic_sets.py',), ('join.py', 'others')]
STAGED_ON_ONE_HOST = [('disagree.py',), ('sparse.py',), ('sync_batch_norm.py',), ('duplicate.py', 'threads')]


@pytest.mark.long
@pytest.mark.world(ranks=4, hosts=2, gpus=True)
@pytest.mark.parametrize('setting, script', [(SLOW, script) for script in SUITE] + [(STAGED, script) for script in STAGED_SUITE], ids=str)
def test_the_suite_of_torch_on_gpus_of_several_hosts(in_world, script, setting):
    in_world(*script, **setting)


# collectives.py expects averages that float32 has exactly: of two ranks.
@on_gpus
@pytest.mark.parametrize('ranks, setting, script', [
    (2 if script == ('collectives.py',) else 3, setting, script)
    for setting, scripts in ((SLOW, SUITE + ON_ONE_HOST), (STAGED, STAGED_SUITE + STAGED_ON_ONE_HOST)) for script in scripts], ids=str)
def test_the_suite_of_torch_on_gpus(in_world, ranks, script, setting):
    in_world(*script, **setting)


@pytest.mark.parametrize('processes, hosts, setting', [
    (1, 1, NCCL), (3, 1, NCCL), (3, 1, SLOW), (3, 2, SLOW), (2, 1, STAGED),
], ids=str)
def test_a_process_with_tensors_on_several_gpus(gpus, processes, hosts, setting):
    """Also a group of them, a model whose layers are on two, and a name whose tensor is on another GPU each time."""
    way = 'staged' if setting is STAGED or processes == 1 else 'nccl'
    result = gpus(processes, 'gpu_devices.py', way, hosts=hosts, HOROVOD_DYNAMIC_PROCESS_SETS='1', **setting)
    assert result.output.count('ok') == processes, str(result)


@pytest.mark.parametrize('setting, cuda, nccl', [
    ({'LD_LIBRARY_PATH': FAKE_GPUS, 'FAKE_NCCL_VERSION': '22809'}, True, 22809),
    ({'LD_LIBRARY_PATH': FAKE_GPUS, 'FAKE_NCCL_VERSION': '21200'}, True, 0),
    ({'LD_LIBRARY_PATH': '{elsewhere}'}, False, 0), ({'LD_LIBRARY_PATH': '{only nccl}'}, False, 0),
], ids=['all', 'old nccl', 'nothing', 'no driver'])
def test_what_is_built_is_what_can_be_used(gpus, tmp_path, setting, cuda, nccl):
    """nccl_built() and cuda_built(), before init() and in a world, and in a process that has asked for nothing else."""
    try:
        ctypes.CDLL('libcuda.so.1')
        if not cuda:
            pytest.skip('this machine has a driver of its own')
    except OSError:
        pass
    (tmp_path / 'only nccl').mkdir()
    (tmp_path / 'only nccl' / 'libnccl.so.2').symlink_to(os.path.join(FAKE_GPUS, 'libnccl.so.2'))
    setting = dict(setting, LD_LIBRARY_PATH=setting['LD_LIBRARY_PATH'].replace('{', str(tmp_path) + '/').replace('}', ''))
    code = ('import horovod.torch as hvd\n'
            'from horovod.common import util\n'
            'def told(): return hvd.cuda_built(), hvd.nccl_built(), util.nccl_built(), hvd.rocm_built()\n'
            'before = told(); hvd.init(); assert told() == before; print(*before)\n')
    result = jobs.run([sys.executable, '-c', code], 60, **setting)
    assert result.returncode == 0 and result.output == '{} {} {} False\n'.format(cuda, nccl, nccl), str(result)


@pytest.mark.parametrize('setting', [NCCL, SLOW], ids=str)
def test_batches_that_come_again_are_launched_as_graphs(gpus, tmp_path, setting):
    launches = tmp_path / 'launches'
    result = gpus(3, 'gpu_graphs.py', launches, FAKE_GPU_LAUNCHES=str(launches), **GRAPHS, **setting)
    assert result.output.count('ok') == 3, str(result)
    assert not glob.glob('/dev/shm/fake-nccl-*')


def test_a_hundred_worlds_on_gpus(gpus):
    gpus(2, 'many_worlds.py', 100, timeout_s=100, HOROVOD_DYNAMIC_PROCESS_SETS='1')


@pytest.mark.parametrize('setting, mode, hosts', [
    (NCCL, 'small', 1), (NCCL, 'large', 1), (NCCL, 'waiting', 1), (NCCL, 'peer', 1), (NCCL, 'small', 3), (NCCL, 'large', 2),
    (STAGED, 'waiting', 1), (STAGED, 'large', 2),
], ids=str)
def test_a_rank_that_is_killed_leaves_no_gpu_waiting(gpus, tmp_path, mode, hosts, setting):
    """The survivors' processors wait for their GPUs, and these for the dead rank: its death has to abort NCCL first."""
    gpus(3, 'killed.py', tmp_path / 'answer', mode, 'token', timeout_s=40, expect_success=False, hosts=hosts, **setting)
    for rank in range(2):
        seconds, error, again = (tmp_path / 'answer.{}'.format(rank)).read_text().splitlines()[:3]
        assert error.startswith('HorovodInternalError: rank 2 on host '), error
        assert 'died in the middle of the job' in error and again == 'HorovodInternalError', (error, again)
        assert float(seconds) < scaled(1.0), (seconds, error)


@pytest.mark.parametrize('hosts', [1, 2])
@pytest.mark.parametrize('setting', [NCCL, {'HOROVOD_ENABLE_ASYNC_COMPLETION': '0'}, STAGED], ids=['nccl', 'waits', 'staged'])
def test_survivors_train_on_their_gpus_within_a_second(gpus, tmp_path, hosts, setting):
    result = gpus(3, 'gpu_elastic.py', tmp_path, flags=['--min-np', '2'], timeout_s=90, hosts=hosts, **setting)
    assert result.output.count('ok') >= 2, str(result)
    seconds = [float(file.read_text()) for file in tmp_path.glob('went_on.*')]
    assert len(seconds) == 2 and max(seconds) < scaled(1.0), (seconds, str(result))


def test_a_start_of_nccl_that_fails_names_rank_text_and_remedy(gpus, tmp_path):
    script = tmp_path / 'start.py'
    script.write_text(
        'import torch, horovod.torch as hvd\n'
        'hvd.init()\n'
        'hvd.allreduce(torch.ones(3), name="x")\n')
    text = 'Bootstrap : no socket interface found'
    result = gpus(3, str(script), FAKE_NCCL_START_FAILS='2 ' + text, expect_success=False)
    said = str(result)
    assert 'rank 2 on CUDA device 2' in said and 'ncclCommInitRankConfig answered' in said, said
    assert text in said and 'NCCL_SOCKET_IFNAME' in said, said


def test_without_a_gpu_it_is_one_sentence_on_all_ranks(gpus, tmp_path):
    script = tmp_path / 'no_driver.py'
    script.write_text(
        'import torch, horovod.torch as hvd\n'
        'hvd.init()\n'
        'try:\n'
        '    hvd.allreduce(torch.ones(3), name="x")\n'
        'except (NotImplementedError, hvd.HorovodInternalError) as error:\n'
        '    print("said: {}".format(error), flush=True)\n'
        'print(hvd.allgather_object(hvd.rank()), flush=True)\n')
    result = gpus(2, str(script), FAKE_GPU_COUNT='0')
    assert result.output.count('said: ') == 2, str(result)
    assert 'CUDA cannot be used because the driver sees no GPU' in result.output, str(result)
    assert result.output.count('[0, 1]') == 2, str(result)


def test_a_stream_that_is_captured_is_refused_on_all_ranks(gpus, tmp_path):
    script = tmp_path / 'captured.py'
    script.write_text(
        'import os, torch, horovod.torch as hvd\n'
        'hvd.init()\n'
        'if hvd.rank() == 1:\n'
        '    os.environ["FAKE_GPU_CAPTURED"] = "1"\n'
        'try:\n'
        '    hvd.allreduce(torch.ones(3), name="x")\n'
        'except NotImplementedError as error:\n'
        '    print("said: {}".format(error), flush=True)\n'
        'os.environ.pop("FAKE_GPU_CAPTURED", None)\n'
        'print("then", hvd.allreduce(torch.ones(3), op=hvd.Sum, name="x").tolist(), flush=True)\n')
    result = gpus(2, str(script))
    assert result.output.count('said: ') == 2 and result.output.count('is being captured for a CUDA graph') == 2, str(result)
    assert result.output.count('then [2.0, 2.0, 2.0]') == 2, str(result)
def test_kernels_that_the_driver_refuses_are_compiled_on_the_spot(gpus):
    result = gpus(2, 'gpu.py', 'nccl', 1, HOROVOD_DYNAMIC_PROCESS_SETS='1', FAKE_GPU_REFUSES_KERNELS='1')
    assert result.output.count('ok') == 2, str(result)


def test_kernels_that_nothing_compiles_are_one_sentence(gpus, tmp_path):
    script = tmp_path / 'no_kernels.py'
    script.write_text(
        'import torch, horovod.torch as hvd\n'
        'hvd.init()\n'
        'try:\n'
        '    hvd.allreduce(torch.ones(3), name="x")\n'
        'except (NotImplementedError, hvd.HorovodInternalError) as error:\n'
        '    print("said: {}".format(error), flush=True)\n')
    result = gpus(2, str(script), FAKE_GPU_REFUSES_KERNELS='1', FAKE_NVRTC_FAILS='1')
    assert result.output.count('said: ') == 2, str(result)
    assert 'cuModuleLoadData answered' in result.output, str(result)
    assert 'NVRTC_ERROR_COMPILATION (6): kernels.cu(7): error: the fake compiles nothing' in result.output, str(result)


def test_a_profiler_sees_collectives_as_ranges(gpus, tmp_path):
    profiler = os.path.join(FAKE_GPUS, 'libfake_nvtx.so')
    lines = tmp_path / 'ranges'
    result = gpus(2, 'gpu.py', 'nccl', 1, flags=['--nvtx-ranges'], HOROVOD_DYNAMIC_PROCESS_SETS='1', FAKE_NVTX_FILE=str(lines),
                  NVTX_INJECTION64_PATH=profiler)
    assert result.output.count('ok') == 2, str(result)
    ranges = lines.read_text().splitlines()
    assert ranges.count('hvdrun allreduce 4') == 2 and ranges.count('hvdrun alltoall 16') == 2, ranges
    assert all(line.startswith('hvdrun ') for line in ranges), ranges


def test_without_a_profiler_it_is_said_once(gpus):
    result = gpus(2, 'gpu.py', 'nccl', 1, flags=['--nvtx-ranges'], HOROVOD_DYNAMIC_PROCESS_SETS='1')
    assert result.output.count('no NVTX ranges are shown because there is no profiler') == 1, str(result)


@pytest.mark.deadline(300)
@pytest.mark.soak
def test_the_script_for_machines_with_gpus(hvdrun, gpus, tmp_path):
    """test/gpu/gpu_suite.py, which scripts/test_gpu.sh runs there, over GPUs that are played. The workers have tests of their own
    in this file, so only HVD_SOAK=1 runs all of them here, too."""
    build = os.path.dirname(os.path.dirname(hvdrun))
    if not os.path.exists(os.path.join(build, 'bin', 'hvd_perf')):
        pytest.skip('hvd_perf is not beside hvdrun')
    summary = tmp_path / 'gpu.json'
    summary.write_text('{"device": "of an earlier part"}')
    script = os.path.join(jobs.ROOT, 'test', 'gpu', 'gpu_suite.py')
    smi = tmp_path / 'smi'
    smi.write_text('#!/bin/sh\necho 100\necho 20\n')
    smi.chmod(0o755)
    short = [] if os.environ.get('HVD_SOAK') else ['--short']
    for part in ('suite', 'perf'):
        result = jobs.run([sys.executable, script, '--fakes', '--build', build, '--json', str(summary), '--part', part,
                           '--smi', str(smi)] + short, 200)
        assert result.returncode == 0, str(result)
    said = json.loads(summary.read_text())
    assert said['device'] == 'of an earlier part' and all(row['ok'] for row in said['suite'])
    assert {row['way'] for row in said['suite']} == {'alone', 'staged', 'nccl'}
    killed = [row for row in said['suite'] if row['name'].startswith('killed.py')]
    assert killed and all(row['memory_left_mib'] == 0 for row in killed), killed
    assert [(row['step'], row['ranks'], row['tensors']) for row in said['steps']] == [('small', 1, 161), ('small', 2, 161)]
    assert all(row['correct'] and 'nccl_us' in row and 'nccl_packed_us' in row for row in said['steps'])
    # With played GPUs none of them means anything, and a missed one is no failure.
    assert {'step of small, 2 ranks, over raw NCCL', 'small, 2 ranks: pack + call + unpack over un-packed',
            'us of the host over raw NCCL, 2 ranks, 8 bytes'} <= {goal['goal'] for goal in said['goals']}
    assert {row['ranks'] for row in said['perf']} == {1, 2} and all('nccl_us' in row for row in said['perf'])


def test_the_script_finds_memory_that_a_killed_rank_has_left(tmp_path):
    """Machine.note_memory of gpu_suite.py, beside a GPU whose memory is not given back."""
    smi = tmp_path / 'smi'
    smi.write_text('#!/bin/sh\necho 150\n')
    smi.chmod(0o755)
    code = ('import sys, types, time; sys.path.insert(0, sys.argv[1]); import gpu_suite\n'
            'time.sleep = lambda seconds: None\n'
            'm = gpu_suite.Machine.__new__(gpu_suite.Machine)\n'
            'm.options = types.SimpleNamespace(smi=sys.argv[2]); m.left_out = []\n'
            'm.results = [{"name": "killed", "ok": True}]\n'
            'm.note_memory(100); print(m.results)\n'
            'm.results = [{"name": "killed", "ok": True}]; m.note_memory(140); print(m.results)\n'
            'm.note_memory(None); m.note_memory(None); print(len(m.left_out))\n')
    result = jobs.run([sys.executable, '-c', code, os.path.join(jobs.ROOT, 'test', 'gpu'), str(smi)], 30)
    assert "FAILED killed: 50 MiB of GPU memory are left" in result.output, str(result)
    assert "'ok': False, 'memory_left_mib': 50" in result.output and "'ok': True, 'memory_left_mib': 10" in result.output
    assert result.output.splitlines()[-1] == '1', str(result)


def test_the_script_says_what_it_leaves_out(hvdrun, tmp_path):
    torch = pytest.importorskip('torch')
    if torch.cuda.is_available():
        pytest.skip('this machine has a GPU')
    summary = tmp_path / 'gpu.json'
    script = os.path.join(jobs.ROOT, 'test', 'gpu', 'gpu_suite.py')
    result = jobs.run([sys.executable, script, '--build', os.path.dirname(os.path.dirname(hvdrun)), '--json', str(summary)], 60)
    assert result.returncode == 0 and 'left out: tensors of PyTorch on GPUs, because the PyTorch of ' in result.output
    assert json.loads(summary.read_text())['suite'] == []
