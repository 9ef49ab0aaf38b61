"""The package where there is no runtime: a world of one, with the numbers of the runtime, and never a part of a larger one."""

import os
import shutil
import subprocess
import sys

import jobs
import pytest

np = pytest.importorskip('numpy')

SOURCES = os.path.join(jobs.ROOT, 'runtime', 'python', 'horovod')
# Prints a hash of every result.
NUMBERS = '''
import hashlib, itertools, sys
import numpy as np
import horovod.numpy as hvd

def show(*words):
    print(*words)

def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12], array.dtype.str, array.shape

hvd.init()
show(hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous())
random = np.random.default_rng(1)
for name in ('float16', 'float32', 'float64', 'uint8', 'int8', 'uint16', 'int16', 'int32', 'int64', 'bool'):
    for shape in ((), (0,), (1,), (7, 3)):
        array = (random.standard_normal(shape) * 100).astype(name)
        for number, (pre, post) in enumerate(itertools.product((1.0, 0.0, -0.3, 7.7), repeat=2)):
            if name == 'bool' and pre < 0:
                continue
            show(name, shape, pre, post, digest(np.asarray(hvd.allreduce(array, op=hvd.Sum, name='s%s' % number, prescale_factor=pre,
                                                              postscale_factor=post))))
        if name != 'bool':
            show('average', name, digest(np.asarray(hvd.allreduce(array, name='a'))))
        if shape:
            show('gather', digest(hvd.allgather(array, name='g')), digest(hvd.reducescatter(array, name='r', op=hvd.Sum)))
            show('all', digest(hvd.alltoall(array, name='all')))
        show('broadcast', digest(np.asarray(hvd.broadcast(array, 0, name='b'))))
if True:
    extremes = np.array([np.inf, -np.inf, np.nan, 65504.0, 1e-8, -0.0], dtype='float16')
    for factor in (1.0, 2.0, 0.1):
        show('extremes', digest(hvd.allreduce(extremes, op=hvd.Sum, name='e', prescale_factor=factor)))
    show([digest(each) for each in hvd.grouped_allreduce([np.ones(3), np.arange(4.)], name='group')])
    show(hvd.alltoall(np.arange(6), splits=[4], name='splits'))
for wrong in (lambda: hvd.broadcast(np.ones(2), 1, name='root'), lambda: hvd.allreduce(np.ones(2), name='set', process_set=7),
              lambda: hvd.alltoall(np.ones(2), splits=[3], name='many')):
    try:
        wrong()
    except Exception as error:
        show(type(error).__name__)
show(hvd.join(), hvd.barrier())
handle = hvd.allreduce_async(np.ones(2), name='twice')
try:
    hvd.allreduce_async(np.ones(2), name='twice')
    show('no error')
except ValueError:
    show('ValueError')
show(hvd.synchronize(handle).tolist())
hvd.shutdown()
hvd.init()
show(hvd.size())
'''


@pytest.fixture(scope='module')
def pure(tmp_path_factory):
    """A folder with the package as the pure wheel has it."""
    folder = tmp_path_factory.mktemp('pure')
    shutil.copytree(SOURCES, folder / 'horovod', ignore=shutil.ignore_patterns('__pycache__'))
    (folder / 'horovod' / 'lib').mkdir()
    (folder / 'horovod' / 'lib' / 'world_of_one').touch()
    return folder


def run(folder, code, expected=0, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith(('HVD_', 'HOROVOD_', 'OMPI_', 'PMI', 'SLURM_'))}
    env.update(variables, PYTHONPATH=str(folder))
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=100, env=env)
    assert done.returncode == expected, done.stdout + done.stderr
    return done


def test_it_has_the_numbers_of_the_runtime(pure):
    own = run(pure, NUMBERS)
    runtime = run(jobs.PACKAGES, NUMBERS, HVD_RUNTIME=jobs.find_runtime())
    assert own.stdout.splitlines() == runtime.stdout.splitlines()
    assert len(own.stdout.splitlines()) > 500


def test_importing_it_says_once_what_it_is(pure):
    done = run(pure, 'import horovod.numpy as hvd; hvd.init(); hvd.shutdown(); hvd.init()')
    assert done.stderr.count('this installation of hvdrun has no runtime for ') == 1
    assert 'RuntimeWarning' in done.stderr


@pytest.mark.parametrize('size, rank', [('OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_RANK'), ('HOROVOD_SIZE', 'HOROVOD_RANK'),
                                        ('PMI_SIZE', 'PMI_RANK'), ('WORLD_SIZE', 'RANK'), ('SLURM_STEP_NUM_TASKS', 'SLURM_PROCID')])
def test_a_part_of_a_larger_world_is_refused(pure, size, rank):
    code = 'import horovod.numpy as hvd\ntry:\n    hvd.init()\nexcept ValueError as error:\n    print(error)\n'
    assert '{}=2 says that there are more'.format(size) in run(pure, code, **{size: '2', rank: '0'}).stdout
    assert run(pure, code, **{size: '1', rank: '0'}).stdout == ''


def test_a_rank_of_hvdrun_is_refused(pure):
    code = 'import horovod.numpy as hvd\ntry:\n    hvd.init()\nexcept ValueError as error:\n    print(error)\n'
    assert 'hvdrun has started this rank' in run(pure, code, HVD_AGENT='x').stdout


def test_what_windows_lacks_is_not_needed(pure):
    code = ('import sys\nfor name in ("fcntl", "resource", "pwd", "grp", "termios"):\n    sys.modules[name] = None\n'
            'import horovod.numpy as hvd, numpy as np\nhvd.init()\nprint(hvd.allreduce(np.ones(2), name="a").tolist())\n')
    assert run(pure, code).stdout == '[1.0, 1.0]\n'


def test_its_hvdrun_runs_one_process(pure):
    program = 'from horovod.runner._world_of_one import main; import sys; sys.exit(main({!r}))'.format
    one = [sys.executable, '-c', 'import sys; print(sys.argv[1:]); sys.exit(7)', '-np', '3']
    for words in (one, ['-np', '1'] + one, ['-np=1', '--'] + one):
        assert run(pure, program(words), expected=7).stdout == "['-np', '3']\n"
    for words in (['-np', '2'] + one, ['-H', 'a,b'] + one, ['--elastic'] + one, ['-np', '1']):
        done = run(pure, program(words), expected=2)
        assert 'makes worlds of one process' in done.stderr and done.stdout == '', words
    assert run(pure, program(['no-such-program']), expected=127).stderr.count('no-such-program') >= 1


def test_the_optimizer_of_torch_trains(pure):
    pytest.importorskip('torch')
    code = '''
import torch, horovod.torch as hvd
hvd.init()
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
x, y = torch.randn(32, 3), torch.randn(32, 1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
x = torch.randn(1000).to(torch.bfloat16)
assert torch.equal(hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.3), (x.float() * torch.tensor(0.3)).to(torch.bfloat16))
print(losses[-1] < losses[0], hvd.broadcast_object({'a': 1}), hvd.allgather_object(3), hvd.allreduce(torch.ones(2, dtype=torch.bfloat16)).tolist())
'''
    assert run(pure, code).stdout == "True {'a': 1} [3] [1.0, 1.0]\n"
