"""The package without a world: finding the runtime, names and signatures, helpers."""

import ast
import inspect
import os
import sys

import pytest

import jobs


def run_code(code, **env):
    return jobs.run([sys.executable, '-c', code], 60, **env)


def test_importing_horovod_imports_no_framework():
    result = run_code('import sys, horovod, horovod.common.util, horovod.common.exceptions\n'
                      'print(horovod.__version__, sorted({"torch", "tensorflow", "numpy"} & set(sys.modules)))')
    assert result.returncode == 0, str(result)
    assert result.output.split() == ['0.28.1', '[]']


def test_missing_runtime_is_one_sentence():
    result = run_code('import horovod.common._native as l\ntry:\n  l.load()\nexcept ImportError as e:\n  print(e)',
                      HVD_RUNTIME='/nonexistent/libhvd.so')
    assert result.returncode == 0, str(result)
    assert result.output.count('\n') == 1 and '/nonexistent/libhvd.so' in result.output
    assert 'HVD_RUNTIME' in result.output


def test_an_older_pytorch_is_refused_in_one_sentence(tmp_path):
    (tmp_path / 'torch').mkdir()
    (tmp_path / 'torch' / '__init__.py').write_text("__version__ = '1.8.1'\n")
    code = f'import sys; sys.path.insert(0, {str(tmp_path)!r})\ntry:\n  import horovod.torch\nexcept ImportError as e:\n  print(e)'
    result = run_code(code)
    assert result.output == 'horovod.torch needs PyTorch 1.10 or newer, and this one is 1.8.1\n'


NUMPY_ALONE = """
import sys
import numpy
import horovod.numpy as hvd
hvd.init()
total = hvd.allreduce(numpy.arange(3.0) + hvd.rank(), op=hvd.Sum)
names = hvd.allgather_object('rank %d' % hvd.rank())
first = hvd.broadcast_object({'step': hvd.rank() + 7}, root_rank=0)
hvd.barrier()
print(total.tolist(), names, first, sorted({'torch', 'tensorflow', 'jax', 'mxnet'} & set(sys.modules)))
hvd.shutdown()
"""
# As one that was built for another Python or another C++ library, that lacks a library of its own, and one that takes the process along.
BROKEN = {'undefined symbol': "raise ImportError('/x/libtorch_python.so: undefined symbol: _ZN3c106detail14torchCheckFailE')",
          'no library': "import ctypes\nctypes.CDLL('/x/libtorch_global_deps.so')",
          'abort': 'import os\nos.abort()'}


def broken_frameworks(folder, how):
    for name in ('torch', 'tensorflow', 'jax', 'mxnet'):
        (folder / name).mkdir()
        (folder / name / '__init__.py').write_text(BROKEN[how] + '\n')
    return os.pathsep.join([jobs.PACKAGES, str(folder)])


@pytest.mark.skipif(jobs.find_runtime() is None, reason='the runtime is not built')
def test_numpy_works_beside_frameworks_that_cannot_be_imported(tmp_path):
    """Not even one whose import ends the process is in its way: none is imported."""
    pytest.importorskip('numpy')
    path = broken_frameworks(tmp_path, 'abort')
    assert run_code('import torch', PYTHONPATH=path).returncode != 0, 'it is the broken one'
    (tmp_path / 'train.py').write_text(NUMPY_ALONE)
    result = jobs.run([jobs.find_hvdrun(), '-np', '2', '--prefix', '', sys.executable, str(tmp_path / 'train.py')], 60, PYTHONPATH=path)
    assert result.returncode == 0, str(result)
    assert result.output.splitlines() == ["[1.0, 3.0, 5.0] ['rank 0', 'rank 1'] {'step': 7} []"] * 2, str(result)


@pytest.mark.parametrize('how, reason', [('undefined symbol', 'undefined symbol: _ZN3c106detail14torchCheckFailE'),
                                         ('no library', '/x/libtorch_global_deps.so: cannot open shared object file')])
def test_a_pytorch_that_cannot_be_imported_says_its_own_reason(tmp_path, how, reason):
    result = run_code('import horovod.torch', PYTHONPATH=broken_frameworks(tmp_path, how))
    assert result.returncode == 1 and reason in result.output.splitlines()[-1], str(result)


def test_file_that_is_no_library_is_one_sentence(tmp_path):
    path = tmp_path / 'libhvd.so'
    path.write_text('nothing')
    result = run_code('import horovod.common._native as l\ntry:\n  l.load()\nexcept ImportError as e:\n  print(e)',
                      HVD_RUNTIME=str(path))
    assert result.returncode == 0, str(result)
    assert result.output.count('\n') == 1 and str(path) in result.output


@pytest.mark.parametrize('layout', ['installed', 'link'])
def test_runtime_is_found_beside_the_package(tmp_path, layout):
    """PREFIX/lib/hvdrun/python/horovod finds PREFIX/lib/libhvd.so, as a copy and as a link to the sources."""
    prefix = tmp_path / 'prefix'
    (prefix / 'lib' / 'hvdrun').mkdir(parents=True)
    (prefix / 'lib' / 'libhvd.so').write_text('')
    python = prefix / 'lib' / 'hvdrun' / 'python'
    if layout == 'installed':
        import shutil
        shutil.copytree(jobs.PACKAGES, str(python))
    else:
        python.mkdir()
        (python / 'horovod').symlink_to(os.path.join(jobs.PACKAGES, 'horovod'))
    result = jobs.run([sys.executable, '-c',
                       'import sys; sys.path.insert(0, sys.argv[1])\n'
                       'import horovod.common._native as l; print(l.find())', str(python)],
                      60, HVD_RUNTIME=None, PYTHONPATH=None)
    assert result.returncode == 0, str(result)
    assert result.output.strip() == str(prefix / 'lib' / 'libhvd.so')


WHEEL_SIGNPOST = os.path.join(jobs.ROOT, 'packaging', 'wheel', 'python')


@pytest.mark.parametrize('layout', ['wheel', 'editable'])
def test_the_folder_of_a_wheel_for_workers_leads_to_the_package(tmp_path, layout):
    """PACKAGES/horovod/lib/python holds `horovod` alone, and that is the package beside lib/, or the sources that it names."""
    import shutil
    package = tmp_path / 'site-packages' / 'horovod'
    inside = package / 'lib'
    sources = package
    if layout == 'wheel':
        shutil.copytree(os.path.join(jobs.PACKAGES, 'horovod'), str(package))
    else:
        sources = tmp_path / 'sources' / 'horovod'
        shutil.copytree(os.path.join(jobs.PACKAGES, 'horovod'), str(sources))
    shutil.copytree(WHEEL_SIGNPOST, str(inside / 'python'))
    (inside / 'libhvd.so').write_text('')
    if layout == 'editable':
        (inside / 'sources').write_text('{}\n'.format(sources))
    result = jobs.run([sys.executable, '-c',
                       'import horovod, horovod.common._native as l, horovod.common.util as util, importlib.util, pickle\n'
                       'import horovod.runner.util\n'
                       'print(l.find()); print(horovod.__file__); print(util.__file__); print(horovod.__version__)\n'
                       'print(importlib.util.find_spec("horovod.common").origin, pickle.loads(pickle.dumps(horovod.run)).__name__)'],
                      60, HVD_RUNTIME=None, PYTHONPATH=str(inside / 'python'))
    assert result.returncode == 0, str(result)
    assert result.output.split() == [str(inside / 'libhvd.so'), str(sources / '__init__.py'), str(sources / 'common' / 'util.py'),
                                     '0.28.1', str(sources / 'common' / '__init__.py'), 'run']


def sources():
    for folder, _, files in os.walk(os.path.join(jobs.PACKAGES, 'horovod')):
        for name in files:
            if name.endswith('.py'):
                path = os.path.join(folder, name)
                with open(path) as file:
                    yield path, file.read()


def test_sources_parse_as_python_3_8():
    for path, text in sources():
        ast.parse(text, path, feature_version=(3, 8))


# Names that Python 3.9 and later have and 3.8 has not, as far as this package could want them.
NEWER = {'functools.cache', 'math.lcm', 'random.randbytes', 'itertools.pairwise', 'contextlib.aclosing',
         'types.NoneType', 'enum.StrEnum', 'itertools.batched', 'os.process_cpu_count', 'contextlib.chdir', 'sys.exception'}
NEWER_METHODS = {'removeprefix', 'removesuffix', 'bit_count', 'is_relative_to', 'cancel_join_thread', 'exc_add_note'}
# ... and what newer ones do not have any more.
REMOVED_MODULES = {'imp', 'distutils', 'asyncore', 'pipes', 'cgi', 'pkg_resources'}


def test_sources_use_nothing_that_only_some_pythons_have():
    for path, text in sources():
        for node in ast.walk(ast.parse(text, path)):
            where = '{}:{}'.format(path, getattr(node, 'lineno', 0))
            if isinstance(node, ast.Attribute):
                owner = node.value.id if isinstance(node.value, ast.Name) else ''
                assert '{}.{}'.format(owner, node.attr) not in NEWER and node.attr not in NEWER_METHODS, where
            elif isinstance(node, ast.Import):
                assert not REMOVED_MODULES & {alias.name.split('.')[0] for alias in node.names}, where
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or '').split('.')[0] not in REMOVED_MODULES, where
                names = {'{}.{}'.format(node.module, alias.name) for alias in node.names}
                assert not NEWER & names, where


def interpreters():
    """Every other Python of this machine from 3.8 on, found as python3.N or among those of pyenv."""
    found = {}
    versions = os.path.join(os.environ.get('PYENV_ROOT') or os.path.expanduser('~/.pyenv'), 'versions')
    names = os.listdir(versions) if os.path.isdir(versions) else []
    folders = [os.path.join(versions, name, 'bin') for name in names]
    folders += [folder for folder in os.environ.get('PATH', '').split(os.pathsep) if 'shims' not in folder]
    for folder in folders:
        for minor in range(8, 15):
            path = os.path.join(folder, 'python3.{}'.format(minor))
            if os.access(path, os.X_OK):
                found.setdefault(minor, path)
    return [found[minor] for minor in sorted(found)]


@pytest.mark.parametrize('python', interpreters(), ids=os.path.basename)
def test_every_python_of_this_machine_runs_what_needs_no_framework(runtime, python):
    result = jobs.run([python, '-W', 'error', jobs.worker('pure_python.py')], 60, HVD_AGENT=None)
    assert result.returncode == 0 and result.output.strip() == 'ok', str(result)


def test_joining_a_world_imports_next_to_nothing(runtime):
    """Each worker pays for it before it can begin."""
    code = ('import sys\nbefore = set(sys.modules)\n'
            'from horovod.common.basics import HorovodBasics\n'
            'h = HorovodBasics()\nh.init()\nh.rank()\nh.size()\nh.shutdown()\n'
            'print(*sorted(set(sys.modules) - before))')
    result = run_code(code, HVD_AGENT=None)
    assert result.returncode == 0, str(result)
    assert result.output.split() == ['__future__', '_ctypes', 'atexit', 'horovod', 'horovod.common', 'horovod.common._children',
                                     'horovod.common._native', 'horovod.common.basics'], str(result)


def test_importing_horovod_torch_imports_next_to_nothing_that_torch_has_not(runtime, torch):
    """What it costs beside PyTorch: test/bench/imports.py."""
    code = ('import sys, torch\nbefore = set(sys.modules)\nimport horovod.torch\n'
            'print(*sorted(m for m in set(sys.modules) - before if m.partition(".")[0] != "horovod"))')
    result = run_code(code)
    assert result.returncode == 0, str(result)
    assert set(result.output.split()) <= {'sysconfig'}, str(result)


def test_exceptions():
    from horovod.common import exceptions
    assert issubclass(exceptions.HorovodInternalError, RuntimeError)
    assert issubclass(exceptions.HostsUpdatedInterrupt, RuntimeError)
    assert exceptions.HostsUpdatedInterrupt(True).skip_sync is True
    error = exceptions.HorovodVersionMismatchError('torch', '2.0', '1.0')
    assert isinstance(error, ImportError)
    assert str(error) == exceptions.get_version_mismatch_message('torch', '2.0', '1.0')


def test_util_helpers():
    from horovod.common import util
    assert util.split_list(list(range(10)), 4) == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]
    assert [n for n in range(9) if util.num_rank_is_power_2(n)] == [1, 2, 4, 8]
    assert util.is_iterable([]) and not util.is_iterable(1)
    assert util.is_version_greater_equal_than('1.12.1+cpu', '1.12.0')
    assert util.is_version_greater_equal_than('2.0.0', '1.13.1')
    assert not util.is_version_greater_equal_than('1.9.0', '1.12.0')
    with pytest.raises(ValueError):
        util.is_version_greater_equal_than('1.2.3', '1.2')
    calls = []
    cached = util._cache(lambda x: calls.append(x) or x)
    assert (cached(1), cached(1), cached(2)) == (1, 1, 2) and calls == [1, 2]


def test_env_sets_and_restores(monkeypatch):
    from horovod.common import util
    monkeypatch.setenv('HVD_TEST_A', '1')
    monkeypatch.delenv('HVD_TEST_B', raising=False)
    with util.env(HVD_TEST_A=None, HVD_TEST_B='2'):
        assert 'HVD_TEST_A' not in os.environ and os.environ['HVD_TEST_B'] == '2'
    assert os.environ['HVD_TEST_A'] == '1' and 'HVD_TEST_B' not in os.environ


def test_what_is_built(monkeypatch, runtime):
    from horovod.common import util
    monkeypatch.delenv('HOROVOD_RANK', raising=False)
    plain = util.gloo_built()
    assert isinstance(plain, bool) and isinstance(util.mpi_built(), bool) and isinstance(util.nccl_built(), int)
    monkeypatch.setenv('HOROVOD_RANK', '0')
    assert util.gloo_built(verbose=True)
    util.check_extension('horovod.torch', 'HOROVOD_WITH_PYTORCH', __file__, 'mpi_lib_v2')
    assert util.extension_available('mxnet') is False
    assert not util.extension_available('nothing')


def test_average_backwards_compatibility():
    from horovod.common import util

    class Ops(object):
        Average, Sum = 0, 1

    convert = util.get_average_backwards_compatibility_fun(Ops)
    assert convert(None, None) == 0 and convert(1, None) == 1
    with pytest.warns(DeprecationWarning):
        assert convert(None, False) == 1
    with pytest.warns(DeprecationWarning):
        assert convert(None, True) == 0
    with pytest.raises(ValueError):
        convert(1, True)


# The parameters that scripts pass by position or by name, with the defaults they rely on.
SIGNATURES = {
    'init': '(comm=None, process_sets=None)',
    'start_timeline': '(file_path, mark_cycles=False)',
    'allreduce': '(tensor, average=None, name=None, compression=none, op=None, prescale_factor=1.0, '
                 'postscale_factor=1.0, process_set=gps)',
    'allreduce_': '(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, '
                  'process_set=gps)',
    'allreduce_async': '(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, '
                       'process_set=gps)',
    'allreduce_async_': '(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, '
                        'process_set=gps)',
    'grouped_allreduce': '(tensors, average=None, name=None, compression=none, op=None, prescale_factor=1.0, '
                         'postscale_factor=1.0, process_set=gps)',
    'grouped_allreduce_': '(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, '
                          'process_set=gps)',
    'grouped_allreduce_async': '(tensors, average=None, name=None, op=None, prescale_factor=1.0, '
                               'postscale_factor=1.0, process_set=gps)',
    'grouped_allreduce_async_': '(tensors, average=None, name=None, op=None, prescale_factor=1.0, '
                                'postscale_factor=1.0, process_set=gps)',
    'sparse_allreduce_async': '(tensor, name, op, process_set=gps)',
    'allgather': '(tensor, name=None, process_set=gps)',
    'allgather_async': '(tensor, name=None, process_set=gps)',
    'grouped_allgather': '(tensors, name=None, process_set=gps)',
    'grouped_allgather_async': '(tensors, name=None, process_set=gps)',
    'broadcast': '(tensor, root_rank, name=None, process_set=gps)',
    'broadcast_': '(tensor, root_rank, name=None, process_set=gps)',
    'broadcast_async': '(tensor, root_rank, name=None, process_set=gps)',
    'broadcast_async_': '(tensor, root_rank, name=None, process_set=gps)',
    'alltoall': '(tensor, splits=None, name=None, process_set=gps)',
    'alltoall_async': '(tensor, splits=None, name=None, process_set=gps)',
    'reducescatter': '(tensor, name=None, compression=none, op=0, process_set=gps, prescale_factor=1.0, '
                     'postscale_factor=1.0)',
    'reducescatter_async': '(tensor, name=None, op=0, process_set=gps, prescale_factor=1.0, postscale_factor=1.0)',
    'grouped_reducescatter': '(tensors, name=None, compression=none, op=0, process_set=gps, prescale_factor=1.0, '
                             'postscale_factor=1.0)',
    'grouped_reducescatter_async': '(tensors, name=None, op=0, process_set=gps, prescale_factor=1.0, '
                                   'postscale_factor=1.0)',
    'join': '(device=-1)',
    'barrier': '(process_set=gps)',
    'poll': '(handle)',
    'synchronize': '(handle)',
    'broadcast_parameters': '(params, root_rank)',
    'broadcast_optimizer_state': '(optimizer, root_rank, model=None)',
    'broadcast_object': '(obj, root_rank=0, name=None, process_set=gps)',
    'allgather_object': '(obj, name=None, process_set=gps)',
    'DistributedOptimizer': '(optimizer, named_parameters=None, compression=none, backward_passes_per_step=1, op=0, '
                            'gradient_predivide_factor=1.0, num_groups=0, groups=None, sparse_as_dense=False, '
                            'process_set=gps, gradient_as_bucket_view=False)',
    'SyncBatchNorm': '(num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)',
}


@pytest.mark.parametrize('name', sorted(SIGNATURES))
def test_signature(runtime, torch, name):
    import horovod.torch as hvd
    parts = []
    for parameter in inspect.signature(getattr(hvd, name)).parameters.values():
        if parameter.default is inspect.Parameter.empty:
            parts.append(parameter.name)
        else:
            default = parameter.default
            text = ('gps' if default is hvd.global_process_set else
                    'none' if default is hvd.Compression.none else repr(default))
            parts.append('{}={}'.format(parameter.name, text))
    assert '({})'.format(', '.join(parts)) == SIGNATURES[name]


def test_names(runtime, torch):
    import horovod.torch as hvd
    for name in ('shutdown is_initialized stop_timeline size local_size cross_size rank local_rank cross_rank '
                 'mpi_threads_supported mpi_enabled mpi_built gloo_enabled gloo_built nccl_built ddl_built ccl_built '
                 'cuda_built rocm_built is_homogeneous ProcessSet add_process_set remove_process_set elastic '
                 'HorovodInternalError Compression _check_has_gpu mpi_ops functions optimizer sync_batch_norm '
                 'compression').split():
        assert hasattr(hvd, name), name
    for name in ('is_homogeneous _basics handle_average_backwards_compatibility HorovodAllreduce HorovodBroadcast '
                 '_handle_map allreduce').split():
        assert hasattr(hvd.mpi_ops, name), name
    assert (hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize('name', ['spark', 'ray'])
def test_what_is_not_here_yet_says_so(name):
    with pytest.raises(ModuleNotFoundError, match='horovod.{} is not part of hvdrun yet'.format(name)):
        __import__('horovod.' + name)
