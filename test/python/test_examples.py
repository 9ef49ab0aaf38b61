"""Every script in examples/ runs, and does what its README says. pytorch_digits.py has test_training.py."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import jobs
import tiers
import worlds
from elastic_rig import ADDED, STOP, Rig

EXAMPLES = os.path.join(jobs.ROOT, 'examples')


@pytest.fixture(scope='module', autouse=True)
def needs(hvdrun, torch):
    pytest.importorskip('sklearn', reason='scikit-learn is not installed for this Python')


def example(name):
    return os.path.join(EXAMPLES, name)


def run(processes, name, *arguments, **options):
    return jobs.run_job(processes, example(name), *arguments, **options).output


@pytest.fixture
def shared(request):
    """shared(name, *arguments): the output of an example in a world that tests share, since importing takes it longest."""
    ranks, hosts, _ = tiers.world_of(request.node)

    def run(name, *arguments):
        result = worlds.run(ranks, hosts, example(name), *arguments, timeout_s=90)
        assert result.returncode == 0, str(result)
        return result.output

    return run


def run_beside_gloo(processes, name, *arguments, rounds=6):
    """As run, for scripts that use PyTorch's Gloo. PyTorch 2.15 aborts in a quarter of the runs, under torchrun as well, where
    Python ends before a thread of its Gloo has freed a tensor. Such a run says nothing about hvdrun and is made again."""
    for _ in range(rounds):
        result = jobs.run_job(processes, example(name), *arguments, expect_success=False)
        if result.returncode != 134 or 'terminate called without an active exception' not in result.output:
            break
    assert result.returncode == 0, str(result)
    return result.output


def numbers(pattern, output):
    """The texts that the pattern's group matched, as numbers."""
    return [float(text) for text in re.findall(pattern, output)]


def hashes(output):
    return re.findall(r'ends with parameters ([0-9a-f]{16})', output)


def test_each_example_is_listed_and_tested():
    scripts = sorted(name for name in os.listdir(EXAMPLES) if name.endswith('.py'))
    with open(os.path.join(EXAMPLES, 'README.md')) as file:
        readme = file.read()
    tests = ''
    for test in glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'test_*.py')):
        with open(test) as file:
            tests += file.read()
    assert [name for name in scripts if name not in readme] == []
    assert [name for name in scripts if name not in tests] == []


@pytest.mark.long
@pytest.mark.world(2)
def test_recipe_resumes_where_it_stopped(shared, tmp_path):
    """Two epochs and two more end exactly where four in a row do."""
    checkpoint = tmp_path / 'digits.pt'
    first = shared('pytorch_recipe.py', '--epochs', 2, '--checkpoint', checkpoint)
    assert 'resuming' not in first
    second = shared('pytorch_recipe.py', '--epochs', 4, '--checkpoint', checkpoint)
    assert 'resuming after epoch 2' in second
    assert re.findall(r'epoch (\d)/4', second) == ['3', '4']
    at_once = shared('pytorch_recipe.py', '--epochs', 4)
    assert len(hashes(second)) == 2 and len(set(hashes(second))) == 1
    assert hashes(at_once) == hashes(second)
    assert numbers(r'test accuracy (\d+\.\d) %', at_once)[-1] >= 85.0
    assert [entry.name for entry in tmp_path.iterdir()] == ['digits.pt']


@pytest.mark.parametrize('ranks', [1, 2])
def test_recipe_warms_up_to_the_scaled_rate(shared, ranks):
    rates = numbers(r'learning rate (0\.\d+)', shared('pytorch_recipe.py', '--epochs', 3, '--base-lr', 0.01))
    if ranks == 1:
        assert rates == [0.01, 0.01, 0.01]
    else:
        assert 0.01 < rates[0] < rates[1] < rates[2] == 0.02


@pytest.mark.below_torch
def test_recipe_leaves_a_whole_checkpoint_when_killed(tmp_path, torch):
    """Killed at any moment: the file is not there yet, or it is a whole one."""
    checkpoint = tmp_path / 'digits.pt'
    command = [jobs.find_hvdrun(), '-np', '2', sys.executable, example('pytorch_recipe.py'), '--epochs', '1000',
               '--checkpoint', str(checkpoint)]
    process = subprocess.Popen(command, env=jobs.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + 60
        while not checkpoint.exists() and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert torch.load(str(checkpoint))['epoch'] >= 1


@pytest.mark.world(2)
def test_recipe_in_half_the_bytes(shared):
    output = shared('pytorch_recipe.py', '--epochs', 2, '--fp16-allreduce')
    assert len(set(hashes(output))) == 1
    assert numbers(r'test accuracy (\d+\.\d) %', output)[-1] >= 60.0


@pytest.mark.world(2)
@pytest.mark.parametrize('option', [[], ['--fp16-allreduce'], ['--use-adasum']], ids=['', 'fp16', 'adasum'])
def test_synthetic_benchmark(shared, option):
    output = shared('pytorch_synthetic_benchmark.py', '--small', '--batch-size', 2, '--num-warmup-batches', 1,
                    '--num-batches-per-iter', 1, '--num-iters', 2, *option)
    assert len(numbers(r'measurement \d: (\d+\.\d) images/s per process', output)) == 2
    per_process, = numbers(r'per process: (\d+\.\d) \+- ', output)
    total, = numbers(r'total of 2 processes: (\d+\.\d) \+- ', output)
    assert per_process > 0 and abs(total - 2 * per_process) <= 0.2


def test_synthetic_benchmark_has_the_shape_of_resnet50():
    count = 'import sys; sys.argv[1:] = []; from pytorch_synthetic_benchmark import resnet50; ' \
            'p = list(resnet50().parameters()); print(len(p), sum(t.numel() for t in p))'
    result = jobs.run([sys.executable, '-c', count], 60, HVD_AGENT=None,
                      PYTHONPATH=os.pathsep.join([EXAMPLES, jobs.PACKAGES]))
    assert result.output.split() == ['161', '25557032'], str(result)


@pytest.mark.world(2)
def test_gpt_learns(shared):
    output = shared('pytorch_gpt.py', '--steps', 41, '--width', 32, '--layers', 1, '--batch-size', 8, '--context', 32)
    losses = numbers(r'loss (\d+\.\d+)', output)
    assert len(losses) == 3 and 3.0 < losses[0] < 4.0 and losses[2] < losses[1] < losses[0] - 0.5
    assert 'it writes: b' in output


@pytest.mark.world(2)
def test_gpt_accumulates(shared):
    output = shared('pytorch_gpt.py', '--steps', 21, '--accumulate', 2, '--width', 32, '--layers', 1, '--batch-size', 4,
                    '--context', 32)
    losses = numbers(r'loss (\d+\.\d+)', output)
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.world(2)
def test_adasum_learns(shared):
    output = shared('pytorch_adasum.py', '--compare')
    adasum, = numbers(r'Adasum after 4 epochs on 2 processes: accuracy (\d+\.\d) %', output)
    average, = numbers(r'average after 4 epochs on 2 processes: accuracy (\d+\.\d) %', output)
    assert adasum >= 85.0 and average >= 80.0


@pytest.mark.parametrize('ranks', [2, 3])
def test_process_sets_train_two_models(shared, ranks):
    output = shared('pytorch_process_sets.py')
    accuracies = numbers(r'accuracy (\d+\.\d) %', output)
    assert len(accuracies) == 2 and min(accuracies) >= 85.0, output
    assert 'odd ranks {}'.format(list(range(1, ranks, 2))) in output


@pytest.mark.below_torch
def test_process_sets_need_two_processes():
    output = run(1, 'pytorch_process_sets.py', expect_success=False)
    assert 'needs two processes' in output


@pytest.mark.world(2)
def test_sparse_embeddings_learn_as_dense_ones_do(shared):
    arguments = ('--steps', 40, '--lr', 1.0)
    sparse = shared('pytorch_sparse_embeddings.py', *arguments)
    dense = shared('pytorch_sparse_embeddings.py', '--sparse-as-dense', *arguments)
    losses = [numbers(r'loss (\d+\.\d+)', output) for output in (sparse, dense)]
    assert len(losses[0]) == 4 and losses[0][3] < losses[0][0] - 0.1
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)
    touched, = numbers(r'changed (\d+) of', sparse)
    assert 0 < touched < 2000


def test_torch_distributed_needs_no_horovod():
    with open(example('torch_distributed.py')) as file:
        assert 'import horovod' not in file.read()
    output = run_beside_gloo(2, 'torch_distributed.py')
    assert numbers(r'2 processes, local rank 0: accuracy (\d+\.\d) %', output)[0] >= 90.0


@pytest.mark.parametrize('parallel', ['ddp', 'fsdp'])
def test_both_backends_of_torch_distributed_train_the_same_model(parallel):
    import torch
    if tuple(int(part) for part in torch.__version__.split('.')[:2]) < (2, 6):
        pytest.skip('the backend hvd needs PyTorch 2.6')
    output = run_beside_gloo(2, 'torch_backends.py', '--parallel', parallel, '--epochs', 2)
    assert min(numbers(r'accuracy (\d+\.\d) %', output)) >= 85.0
    ours, gloo = re.findall(r'parameters ([0-9a-f]{16})', output)
    assert ours == gloo, output


@pytest.mark.below_torch
@pytest.mark.parametrize('processes', [1, 2])
def test_mpi4py_is_in_the_same_world(processes):
    pytest.importorskip('mpi4py', reason='mpi4py is not installed for this Python')
    jobs.skip_without('libhvd_mpi.so', 'makes worlds of MPI')
    if shutil.which('mpirun') is None:
        pytest.skip('there is no mpirun')
    command = ['mpirun', '-np', str(processes), '--oversubscribe', '--mca', 'mpi_yield_when_idle', '1',
               sys.executable, example('pytorch_mpi4py.py')]
    result = jobs.run(command, 60, HVD_AGENT=None, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
    assert result.returncode == 0, str(result)
    assert '{} processes found weights 2.000, -1.000, 0.500 and bias 3.000'.format(processes) in result.output


def epochs_of(output):
    """(epoch, size, steps, loss) of each line of pytorch_elastic_digits.py."""
    found = re.findall(r'epoch (\d+)/\d+  size (\d+)  steps (\d+)  loss (\d+\.\d+)', output)
    return [(int(epoch), int(size), int(steps), float(loss)) for epoch, size, steps, loss in found]


@pytest.mark.world(2)
def test_elastic_digits_in_a_world_of_fixed_size(shared):
    twice = [shared('pytorch_elastic_digits.py', '--epochs', 5) for _ in range(2)]
    epochs = epochs_of(twice[0])
    assert [epoch[:3] for epoch in epochs] == [(number, 2, 45) for number in range(1, 6)]
    assert epochs_of(twice[1]) == epochs, 'the same layout gives the same losses'
    assert numbers(r'test accuracy (\d+\.\d) %', twice[0])[-1] >= 93.0


@pytest.mark.long
def test_elastic_digits_survives_a_death_and_grows(tmp_path):
    """A rank dies in the middle of an epoch; later another comes."""
    with Rig(tmp_path, example('pytorch_elastic_digits.py'), '--epochs', 20) as rig:
        for slot in range(4):
            rig.start(slot, 3)
        rig.begin(0, 1, 2)
        rig.pump(lambda: min(rig.commits()) >= 40, '40 steps')
        rig.kill(1)
        rig.begin(0, 2)
        rig.pump(lambda: min(rig.commits()) >= 60, '60 steps')
        rig.await_join(3)
        rig.act(ADDED)
        rig.begin(0, 2, 3)
        assert [rig.wait(slot) for slot in (0, 2, 3)] == [0, 0, 0], rig.output(0)
        epochs = epochs_of(rig.output(0))
        assert [epoch[0] for epoch in epochs] == list(range(1, 21))
        assert {2, 3} == {epoch[1] for epoch in epochs}
        assert {epoch[2] for epoch in epochs if epoch[1] == 3} >= {30}
        assert numbers(r'test accuracy (\d+\.\d) %', rig.output(0))[-1] >= 90.0  # how many steps two ranks take depends on when the death is seen


@pytest.mark.long
def test_elastic_digits_stops_and_resumes_where_it_was(tmp_path):
    """Stopped in the middle of an epoch, and started again: the losses are those of one run."""
    arguments = (example('pytorch_elastic_digits.py'), '--epochs', 4, '--checkpoint', tmp_path / 'digits.pt')
    with Rig(tmp_path, *arguments) as rig:
        rig.start(0)
        rig.begin(0)
        rig.pump(lambda: rig.commits()[0] >= 130, '130 steps')
        rig.act(STOP)
        assert rig.wait(0) == 75, rig.output(0)
        stopped = epochs_of(rig.output(0))
    with Rig(tmp_path, *arguments) as rig:
        rig.start(1)
        rig.begin(1)
        assert rig.wait(1) == 0, rig.output(1)
        assert 'resuming after step' in rig.output(1)
        resumed = epochs_of(rig.output(1))
    at_once = epochs_of(run(1, 'pytorch_elastic_digits.py', '--epochs', 4))
    assert [epoch[0] for epoch in stopped + resumed] == [1, 2, 3, 4]
    assert stopped + resumed == at_once
    assert not (tmp_path / 'digits.pt').exists()


def test_ddp_elastic_goes_on_after_its_checkpoint(tmp_path):
    """As a launcher would: all processes are started again after a failure, with another world."""
    with open(example('pytorch_ddp_elastic.py')) as file:
        assert 'import horovod' not in file.read()
    arguments = ('pytorch_ddp_elastic.py', '--checkpoint', tmp_path / 'ddp.pt')
    first = run(2, *arguments, '--fail-in-epoch', 3, expect_success=False)
    assert re.findall(r'epoch (\d)/4  size 2', first) == ['1', '2']
    second = run(1, *arguments)
    assert 'with 1 processes after epoch 2' in second
    assert re.findall(r'epoch (\d)/4  size 1', second) == ['3', '4']
    assert numbers(r'accuracy (\d+\.\d) % after', second)[0] >= 90.0
