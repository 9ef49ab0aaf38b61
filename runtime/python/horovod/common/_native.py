"""libhvd.so, loaded once, and those of its functions that take and return plain integers.

This is what a process pays for before hvd.init() returns, so it asks Python for nothing but the C half of ctypes;
structs, strings and exceptions are in _library, which is imported when the first of them is needed. Everything may be
called from any thread; the interpreter lock is released during each call.
"""

import os
import sys

ABI_VERSION = 1

OK = 0
FORKED = 9

FORKED_SENTENCE = (
    'This process was forked from one that had called hvd.init() and is no rank itself: it can ask for rank(), size() and '
    'other places, but hvd.init() and collectives belong into the process that called hvd.init().')

path = None  # of the loaded library
handle = None  # of dlopen
alone = None  # horovod.common._alone.World if there is no library
_call = None  # (address, arguments) -> int
_addresses = {}
_init_pid = None  # the process that called hvd_init(); a forked child differs from it


def _candidates():
    """Where the runtime may be, in order. A wheel has lib/libhvd.so in the package, which has a second folder, before or after its
    own, where it was installed as editable. An installed tree is PREFIX/lib/libhvd.so beside PREFIX/lib/hvdrun/python/horovod;
    in a build tree that last folder is a symbolic link, so both the path as it was imported and the resolved one are tried."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [os.path.join(folder, 'lib', 'libhvd.so') for folder in [package] + list(sys.modules['horovod'].__path__)]
    paths += [os.path.normpath(os.path.join(folder, '..', '..', '..', 'libhvd.so')) for folder in (package, os.path.realpath(package))]
    return list(dict.fromkeys(paths))


def find():
    """Path of libhvd.so; ImportError with one sentence when there is none."""
    named = os.environ.get('HVD_RUNTIME')
    if named:
        if os.path.isfile(named):
            return named
        raise ImportError('The hvd runtime is not at {}, which the environment variable HVD_RUNTIME names; set it to '
                          'the path of libhvd.so or unset it.'.format(named))
    if _is_pure():
        from horovod.common._alone import sentence
        raise ImportError(sentence())
    paths = _candidates()
    for candidate in paths:
        if os.path.isfile(candidate):
            return candidate
    raise ImportError('The hvd runtime, libhvd.so, was not found at {}; start the script with hvdrun, or set the '
                      'environment variable HVD_RUNTIME to its path.'.format(' or '.join(paths)))


def _is_pure():
    """Whether this is the wheel for systems that the runtime is not built for: it has this file in the place of the library."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return not os.environ.get('HVD_RUNTIME') and os.path.exists(os.path.join(package, 'lib', 'world_of_one'))


def _load_alone():
    global handle, alone, _call
    from horovod.common import _alone
    alone = _alone.World()
    handle, _call = 0, lambda function, arguments: function(*arguments)


def _overlaid(found):
    """A warning if the distribution `horovod` is installed beside a wheel; hvdrun passes it to its workers."""
    package = os.path.dirname(os.path.dirname(found))
    if os.environ.get('HVD_RUNTIME') or os.path.basename(package) != 'horovod':
        return ''
    packages = os.path.dirname(package)
    if any(name.startswith('horovod-') and name.endswith('.dist-info') and not name.endswith('+hvdrun.dist-info')
           for name in os.listdir(packages)):
        return ('the distributions horovod and hvdrun are both installed in {}, and each has overwritten files of the other in its '
                'folder horovod; mend it with: pip uninstall -y horovod hvdrun && pip install hvdrun'.format(packages))
    return ''


def load():
    """Loads the runtime once. ImportError with one sentence if it cannot be loaded."""
    global path, handle, _call
    if handle is not None:
        return
    if _is_pure():
        _load_alone()
        return
    import _ctypes  # importing ctypes takes as long as everything else that init needs
    found = find()
    try:
        opened = _ctypes.dlopen(found, 0)
        version = _ctypes.call_cdeclfunction(_ctypes.dlsym(opened, 'hvd_abi_version'), ())
    except OSError as error:
        raise ImportError('The hvd runtime at {} cannot be used: {}.'.format(found, error)) from None
    if version != ABI_VERSION:
        raise ImportError('The hvd runtime at {} has ABI version {}, but this package needs {}; use the package and '
                          'the library of one build.'.format(found, version, ABI_VERSION))
    path, _call, handle = found, _ctypes.call_cdeclfunction, opened
    overlaid = _overlaid(found)
    if overlaid:
        import warnings
        warnings.warn(overlaid, RuntimeWarning, stacklevel=2)


def call(name, *arguments):
    """Calls hvd_<name>, which takes 32-bit integers, bytes or None and returns a 32-bit integer."""
    address = _addresses.get(name)
    if address is None:
        load()
        if alone is None:
            import _ctypes
            address = _addresses[name] = _ctypes.dlsym(handle, 'hvd_' + name)
        else:
            address = _addresses[name] = getattr(alone, 'hvd_' + name)
    return _call(address, arguments)


def launcher_decides():
    """Whether the launcher chooses the commit at which all ranks act: in a world of `hvdrun --elastic`."""
    return handle is not None and call('elastic') == 1


def is_elastic():
    """Whether a new world follows a failure."""
    return os.environ.get('HOROVOD_ELASTIC') == '1' or launcher_decides()


def is_forked_child():
    return _init_pid is not None and _init_pid != os.getpid()


def note_joined():
    """Remembers that this process has called hvd_init() with success."""
    global _init_pid
    _init_pid = os.getpid()


def note_left():
    """Remembers that this process has called hvd_shutdown() with success."""
    global _init_pid
    _init_pid = None


def place_in_child(name):
    """What a child of a rank answers to a query. Replaced by horovod.common._children."""
    return None


def refusal_in_child():
    """The exception of a child of a rank for what only a rank can do; None in a rank. Replaced as well."""
    return None


def query(name):
    """An integer about the world; ValueError before init(). Children of a rank know its place, and nothing else
    (RuntimeError)."""
    value = call(name)
    if value < 0:
        value = place_in_child(name)
        if value is None:
            raise refusal_in_child() or ValueError('Horovod has not been initialized; call hvd.init() first.')
    return value


if _is_pure():
    import warnings
    from horovod.common._alone import sentence
    warnings.warn(sentence(), RuntimeWarning, stacklevel=2)
