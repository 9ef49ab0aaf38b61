"""Small helpers without a framework that adapters, launchers and tests of scripts use."""

import contextlib
import functools
import os
import re
import sysconfig
import warnings
from collections.abc import Iterable

EXTENSIONS = ['tensorflow', 'torch', 'mxnet']


def is_iterable(x):
    return isinstance(x, Iterable)


def get_ext_suffix():
    """File ending of compiled extensions of this interpreter. This package has none; kept for callers."""
    return sysconfig.get_config_var('EXT_SUFFIX') or '.so'


def _cache(f):
    """Remembers the result for each list of arguments."""
    results = {}

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        key = (args, frozenset(kwargs.items()))
        if key not in results:
            results[key] = f(*args, **kwargs)
        return results[key]

    return wrapper


def _built(feature):
    from horovod.common import _library
    try:
        return _library.built(feature)
    except ImportError:
        return None


def mpi_built(verbose=False):
    return _built('mpi')


def gloo_built(verbose=False):
    """Also true in a worker that a launcher started with HOROVOD_RANK: what Horovod needs Gloo for there, worlds
    without MPI, this runtime does itself."""
    built = _built('gloo')
    return True if built is False and 'HOROVOD_RANK' in os.environ else built


def nccl_built(verbose=False):
    built = _built('nccl')
    return built if built is None else int(built)


def ddl_built(verbose=False):
    return _built('ddl')


def ccl_built(verbose=False):
    return _built('ccl')


@_cache
def extension_available(ext_base_name, verbose=False):
    """Whether horovod.<ext_base_name> can be imported: there is such a package here, and its framework is installed."""
    if ext_base_name not in EXTENSIONS:
        return False
    from importlib.util import find_spec
    if find_spec('horovod.' + ext_base_name) is None:
        return False
    found = find_spec(ext_base_name) is not None
    if verbose and not found:
        print('horovod.{0} cannot be used: {0} is not installed.'.format(ext_base_name))
    return found


@_cache
def gpu_available(ext_base_name, verbose=False):
    """Whether the framework sees a GPU that collectives can use; False in a runtime without CUDA."""
    return bool(_built('cuda'))


def check_extension(ext_name, ext_env_var, pkg_path, *args):
    """ImportError when the runtime is missing; there is no compiled extension for each framework."""
    from horovod.common import _native
    _native.load()


def get_extension_full_path(pkg_path, *args):
    """Path of what serves as the compiled extension of every framework: the runtime."""
    from horovod.common import _native
    return _native.find()


def check_installed_version(name, version, exception=None):
    """Nothing to check: this package is not compiled against any framework."""


@contextlib.contextmanager
def env(**kwargs):
    """Sets environment variables for the block, and removes those given as None."""
    before = {name: os.environ.get(name) for name in kwargs}

    def assign(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    assign(kwargs)
    try:
        yield
    finally:
        assign(before)


def get_average_backwards_compatibility_fun(reduce_ops):
    """A function (op, average) -> op that understands the deprecated argument `average`."""

    def handle_average_backwards_compatibility(op, average):
        if op is not None:
            if average is not None:
                raise ValueError('The argument average is deprecated and cannot be given together with op; give op '
                                 'only.')
            return op
        if average is not None:
            warnings.warn('The argument average is deprecated; use op=hvd.Average or op=hvd.Sum instead.',
                          DeprecationWarning, stacklevel=3)
            return reduce_ops.Average if average else reduce_ops.Sum
        return reduce_ops.Average

    return handle_average_backwards_compatibility


def num_rank_is_power_2(num_rank):
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l, n):
    """n consecutive chunks whose lengths differ by at most one."""
    length, longer = divmod(len(l), n)
    chunks = []
    begin = 0
    for i in range(n):
        end = begin + length + (1 if i < longer else 0)
        chunks.append(l[begin:end])
        begin = end
    return chunks


def is_version_greater_equal_than(ver, target):
    """Whether version `ver`, which may carry suffixes such as 1.2.3+cpu or 1.2.0rc1, is at least `target` (x.y.z)."""
    if not isinstance(ver, str) or not isinstance(target, str):
        raise ValueError('Versions are strings such as "1.2.3", but {!r} and {!r} were given.'.format(ver, target))
    if not re.match(r'^\d+\.\d+\.\d+$', target):
        raise ValueError('The version to compare with must look like "1.2.3", but is {!r}.'.format(target))
    numbers = []
    for part in ver.split('.')[:3]:
        digits = re.match(r'\d+', part)
        numbers.append(int(digits.group()) if digits else 0)
    numbers += [0] * (3 - len(numbers))
    return numbers >= [int(part) for part in target.split('.')]
