"""libhvd_jax.so, whose handler XLA calls for the collectives inside compiled programs: loaded, bound to libhvd.so, registered."""

import ctypes
import os

import jax

from horovod.common import _library, _native
from horovod.common.exceptions import HorovodInternalError

TARGET = 'hvd_jax_collective'

OLDEST = (0, 5, 3)  # whose handlers support tokens
NEWEST_TRIED = (0, 12)

_SENTENCE_BYTES = 4096

_library_of_handlers = None
_of_callback = None  # the error of the last callback that failed
_reason = None  # why there are no handlers; '' if there are


def _version():
    return tuple(int(part) for part in jax.__version__.split('.')[:3] if part.isdigit())


def _warn(text):
    import warnings
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _register(capsule):
    try:
        from jax import ffi
    except ImportError:
        from jax.extend import ffi
    ffi.register_ffi_target(TARGET, capsule, platform='cpu')


def _load():
    """Why there can be no handlers, or ''."""
    global _library_of_handlers
    if os.environ.get('HOROVOD_JAX_CALLBACKS') == '1':
        return 'HOROVOD_JAX_CALLBACKS is 1'
    if _version() < OLDEST:
        return 'JAX {} is older than 0.5.3'.format(jax.__version__)
    _library.lib()
    if _native.alone is not None:
        return 'this package has no library'
    path = os.path.join(os.path.dirname(os.path.realpath(_native.path)), 'libhvd_jax.so')
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        return 'libhvd_jax.so cannot be loaded: {}'.format(error)
    addresses = [ctypes.cast(getattr(_library.lib(), name), ctypes.c_void_p)
                 for name in ('hvd_submit', 'hvd_last_error', 'hvd_free')]
    loaded.hvd_jax_bind.argtypes = [ctypes.c_void_p] * 3
    loaded.hvd_jax_bind.restype = None
    loaded.hvd_jax_bind(*addresses)
    loaded.hvd_jax_failure.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    try:
        _register(new_capsule(ctypes.cast(loaded.hvd_jax_collective, ctypes.c_void_p), None, None))
    except Exception as error:  # XLA's exception classes differ between versions
        return 'JAX {} refuses its handlers: {}'.format(jax.__version__, error)
    _library_of_handlers = loaded
    if _version()[:2] > NEWEST_TRIED:
        _warn('horovod.jax was tried with JAX 0.4.31 to {}.{}, and this one is {}.'.format(*NEWEST_TRIED, jax.__version__))
    return ''


def has_handlers():
    """Whether programs can call the runtime without Python. Otherwise they call Python, and one message says so."""
    global _reason
    if _reason is None:
        _reason = _load()
        if not _reason and jax.default_backend() != 'cpu':
            _reason = 'arrays on {} are copied through the host'.format(jax.default_backend())
        if _reason and _native.query('rank') == 0:
            _warn('horovod.jax uses callbacks into Python for its collectives inside jit, which take longer: {}.'.format(
                _reason))
    return not _reason


def note_failure(error):
    """Keeps an error of a callback, of which XLA passes on the text alone."""
    global _of_callback
    _of_callback = error


def pop_failure():
    """The HorovodInternalError of the last collective that failed inside a program, and forgets it; None where none did."""
    global _of_callback
    failure, _of_callback = _of_callback, None
    if failure is not None or _library_of_handlers is None:
        return failure
    sentence = ctypes.create_string_buffer(_SENTENCE_BYTES)
    status = _library_of_handlers.hvd_jax_failure(sentence, _SENTENCE_BYTES)
    if status not in (_library.ABORTED, _library.MISMATCH):
        return None
    failure = HorovodInternalError(sentence.value.decode('utf-8', 'replace'))
    failure.is_disagreement = status == _library.MISMATCH
    return failure
