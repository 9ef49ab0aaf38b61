"""Small helpers without a framework that adapters, launchers and tests of scripts use."""

import contextlib
import functools
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable

EXTENSIONS = ['tensorflow', 'torch', 'mxnet']


def is_iterable(x):
    """Returns whether an object can be iterated over.

    Args:
        x: Any object.

    Returns: True or False.
    """
    return isinstance(x, Iterable)


def get_ext_suffix():
    """File ending of compiled extensions of this interpreter. This package has none.

    Returns: A string.
    """
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
    """Returns whether this build of the runtime has support for MPI.

    Args:
        verbose: Ignored; there for scripts written for Horovod.

    Returns: True or False. None when the runtime cannot be loaded.
    """
    return _built('mpi')


def gloo_built(verbose=False):
    """Returns whether worlds without MPI are possible, for which Horovod needs Gloo.

    Also true in a worker whose launcher has set HOROVOD_RANK, since this runtime makes such worlds
    itself.

    Args:
        verbose: Ignored; there for scripts written for Horovod.

    Returns: True or False. None when the runtime cannot be loaded.
    """
    built = _built('gloo')
    return True if built is False and 'HOROVOD_RANK' in os.environ else built


def nccl_built(verbose=False):
    """Returns which NCCL the tensors on GPUs of this process would use.

    Args:
        verbose: Ignored; there for scripts written for Horovod.

    Returns: Its version as an int, 22809 for 2.28.9; 0 if there is none, or none that can be used.
    None when the runtime cannot be loaded.
    """
    from horovod.common import _library
    try:
        return _library.built_version('nccl')
    except ImportError:
        return None


def ddl_built(verbose=False):
    """Returns whether this build of the runtime has DDL.

    Args:
        verbose: Ignored; there for scripts written for Horovod.

    Returns: True or False. None when the runtime cannot be loaded.
    """
    return _built('ddl')


def ccl_built(verbose=False):
    """Returns whether this build of the runtime has oneCCL.

    Args:
        verbose: Ignored; there for scripts written for Horovod.

    Returns: True or False. None when the runtime cannot be loaded.
    """
    return _built('ccl')


@_cache
def extension_available(ext_base_name, verbose=False):
    """Returns whether horovod.<ext_base_name> can be imported: its adapter exists and its framework is installed.

    Args:
        ext_base_name: The framework, such as 'torch'.
        verbose: Print a line when the framework is missing.

    Returns: True or False.
    """
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
    """Returns whether collectives can use a GPU; never, in a runtime without CUDA.

    Args:
        ext_base_name: The framework, such as 'torch'.
        verbose: Ignored; there for scripts written for Horovod.

    Returns: True or False.
    """
    return bool(_built('cuda'))


def check_extension(ext_name, ext_env_var, pkg_path, *args):
    """Checks that the runtime can be loaded. There is no compiled extension for each framework.

    Args:
        ext_name: Ignored.
        ext_env_var: Ignored.
        pkg_path: Ignored.
        args: Ignored.

    Raises:
        ImportError: The runtime cannot be found or loaded.
    """
    from horovod.common import _native
    _native.load()


def get_extension_full_path(pkg_path, *args):
    """Path of libhvd.so, which serves as the compiled extension of every framework.

    Args:
        pkg_path: Ignored.
        args: Ignored.

    Returns: A string.

    Raises:
        ImportError: The runtime cannot be found.
    """
    from horovod.common import _native
    return _native.find()


def check_installed_version(name, version, exception=None):
    """Does nothing: this package is not compiled against any framework.

    Args:
        name: Ignored.
        version: Ignored.
        exception: Ignored.
    """


@contextlib.contextmanager
def env(**kwargs):
    """Sets environment variables for a `with` block and restores them afterwards.

    Args:
        kwargs: The variables by name; None removes one.

    Returns: A context manager.

    Example:

        with env(HOROVOD_RANK='0', HOROVOD_SIZE=None):
            ...
    """
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


def stack_level_of_caller():
    """For warnings.warn(): the number of frames up to the first that is not of this package.

    Returns: An int, for the function that calls this one.
    """
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get('__name__', '').split('.')[0] == 'horovod':
        level, frame = level + 1, frame.f_back
    return level


def get_average_backwards_compatibility_fun(reduce_ops):
    """Makes the function that understands the deprecated argument `average`.

    Args:
        reduce_ops: An object with the attributes Average and Sum.

    Returns: A function (op, average) -> op, which raises ValueError when both are given.
    """

    def handle_average_backwards_compatibility(op, average):
        if op is not None:
            if average is not None:
                raise ValueError('The argument average is deprecated and cannot be given together with op; give op '
                                 'only.')
            return op
        if average is not None:
            warnings.warn('The argument average is deprecated; use op=hvd.Average or op=hvd.Sum instead.',
                          DeprecationWarning, stacklevel=stack_level_of_caller())
            return reduce_ops.Average if average else reduce_ops.Sum
        return reduce_ops.Average

    return handle_average_backwards_compatibility


def num_rank_is_power_2(num_rank):
    """Returns whether a number of ranks is a power of two.

    Args:
        num_rank: An int.

    Returns: True or False.
    """
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l, n):
    """Cuts a list into consecutive chunks whose lengths differ by at most one.

    Args:
        l: The list.
        n: How many chunks, at least 1.

    Returns: A list of n lists.
    """
    length, longer = divmod(len(l), n)
    chunks = []
    begin = 0
    for i in range(n):
        end = begin + length + (1 if i < longer else 0)
        chunks.append(l[begin:end])
        begin = end
    return chunks


def is_version_greater_equal_than(ver, target):
    """Compares two versions.

    Args:
        ver: A version that may carry suffixes, such as 1.2.3+cpu or 1.2.0rc1.
        target: A version x.y.z.

    Returns: Whether ver is at least target.

    Raises:
        ValueError: One of the two is not such a string.
    """
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
