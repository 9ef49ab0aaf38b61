"""libhvd.so by ctypes: finds it, loads it once, declares its functions, and turns its codes into exceptions.

The only file that knows struct layouts and status codes of the C ABI (hvd.h). Everything may be called from any
thread; the interpreter lock is released during each call.
"""

import ctypes
import os

from horovod.common.exceptions import HorovodInternalError

ABI_VERSION = 1

# hvd_status
OK = 0
IN_PROGRESS = 1
INVALID_ARGUMENT = 2
NOT_INITIALIZED = 3
DUPLICATE_NAME = 4
MISMATCH = 5
ABORTED = 6
UNSUPPORTED = 7
OUT_OF_MEMORY = 8
FORKED = 9
INTERNAL = 10

# hvd_dtype
UINT8 = 0
INT8 = 1
UINT16 = 2
INT16 = 3
INT32 = 4
INT64 = 5
FLOAT16 = 6
FLOAT32 = 7
FLOAT64 = 8
BOOL = 9
BFLOAT16 = 10

# hvd_collective
ALLREDUCE = 0
ALLGATHER = 1
BROADCAST = 2
ALLTOALL = 3
REDUCESCATTER = 4
BARRIER = 5
JOIN = 6

# hvd_reduce_op
AVERAGE = 0
SUM = 1
ADASUM = 2
MIN = 3
MAX = 4
PRODUCT = 5

# A wait is cut into slices of this length, so that Ctrl-C and Python's signal handlers get their turn.
WAIT_SLICE_MS = 200

FORKED_SENTENCE = (
    'This process was forked from one that had called hvd.init() and has no part in the world; use hvd only in the '
    'process that called hvd.init(), or start this one by the "spawn" method.')


class _InitOptions(ctypes.Structure):
    _fields_ = [
        ('struct_size', ctypes.c_uint32),
        ('flags', ctypes.c_uint32),
        ('timeout_ms', ctypes.c_int64),
    ]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ('struct_size', ctypes.c_uint32),
        ('dtype', ctypes.c_int32),
        ('input', ctypes.c_void_p),
        ('output', ctypes.c_void_p),
        ('shape', ctypes.POINTER(ctypes.c_int64)),
        ('ndim', ctypes.c_int32),
        ('device_kind', ctypes.c_int32),
        ('device_index', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('stream', ctypes.c_void_p),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        ('struct_size', ctypes.c_uint32),
        ('collective', ctypes.c_int32),
        ('name', ctypes.c_char_p),
        ('tensor', ctypes.POINTER(_Tensor)),
        ('reduce_op', ctypes.c_int32),
        ('root_rank', ctypes.c_int32),
        ('process_set', ctypes.c_int32),
        ('flags', ctypes.c_uint32),
        ('prescale', ctypes.c_double),
        ('postscale', ctypes.c_double),
    ]


def _candidates():
    """Where the runtime may be, in order. An installed tree is PREFIX/lib/libhvd.so beside
    PREFIX/lib/hvdrun/python/horovod; in a build tree that last folder is a symbolic link, so both the path as it
    was imported and the resolved one are tried."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = []
    for folder in (package, os.path.realpath(package)):
        path = os.path.normpath(os.path.join(folder, '..', '..', '..', 'libhvd.so'))
        if path not in paths:
            paths.append(path)
    return paths


def find():
    """Path of libhvd.so; ImportError with one sentence when there is none."""
    named = os.environ.get('HVD_RUNTIME')
    if named:
        if os.path.isfile(named):
            return named
        raise ImportError('The hvd runtime is not at {}, which the environment variable HVD_RUNTIME names; set it to '
                          'the path of libhvd.so or unset it.'.format(named))
    paths = _candidates()
    for path in paths:
        if os.path.isfile(path):
            return path
    raise ImportError('The hvd runtime, libhvd.so, was not found at {}; start the script with hvdrun, or set the '
                      'environment variable HVD_RUNTIME to its path.'.format(' or '.join(paths)))


def _declare(lib):
    c_int32, c_int64, c_void_p = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
    prototypes = {
        'hvd_version_string': (ctypes.c_char_p, []),
        'hvd_last_error': (ctypes.c_char_p, []),
        'hvd_status_name': (ctypes.c_char_p, [c_int32]),
        'hvd_built': (c_int32, [ctypes.c_char_p]),
        'hvd_init': (c_int32, [ctypes.POINTER(_InitOptions)]),
        'hvd_shutdown': (c_int32, []),
        'hvd_epoch': (c_int64, []),
        'hvd_process_set_size': (c_int32, [c_int32]),
        'hvd_process_set_rank': (c_int32, [c_int32]),
        'hvd_submit': (c_int32, [ctypes.POINTER(_Request), ctypes.POINTER(ctypes.c_uint64)]),
        'hvd_poll': (c_int32, [ctypes.c_uint64, ctypes.POINTER(c_int32)]),
        'hvd_wait': (c_int32, [ctypes.c_uint64, c_int64]),
        'hvd_run': (c_int32, [ctypes.POINTER(_Request)]),
        'hvd_alloc': (c_void_p, [ctypes.c_size_t]),
        'hvd_free': (c_int32, [c_void_p]),
        'hvd_is_registered': (c_int32, [c_void_p, ctypes.c_size_t]),
    }
    for query in ('is_initialized', 'rank', 'size', 'local_rank', 'local_size', 'cross_rank', 'cross_size',
                  'is_homogeneous'):
        prototypes['hvd_' + query] = (c_int32, [])
    for name, (result, arguments) in prototypes.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments


def _load():
    path = find()
    try:
        lib = ctypes.CDLL(path)
        lib.hvd_abi_version.restype = ctypes.c_int32
        lib.hvd_abi_version.argtypes = []
        version = lib.hvd_abi_version()
        if version == ABI_VERSION:
            _declare(lib)
    except (OSError, AttributeError) as error:
        raise ImportError('The hvd runtime at {} cannot be used: {}.'.format(path, error)) from None
    if version != ABI_VERSION:
        raise ImportError('The hvd runtime at {} has ABI version {}, but this package needs {}; use the package and '
                          'the library of one build.'.format(path, version, ABI_VERSION))
    return lib


_lib = None
_init_pid = None  # the process that called hvd_init(); a forked child differs from it


def lib():
    """The loaded library. ImportError with one sentence when it cannot be had."""
    global _lib
    if _lib is None:
        _lib = _load()
    return _lib


def is_forked_child():
    return _init_pid is not None and _init_pid != os.getpid()


def last_error(status):
    """The runtime's sentence about the last failure of this thread."""
    text = lib().hvd_last_error().decode('utf-8', 'replace')
    if text:
        return text
    return 'the hvd runtime answered {}'.format(lib().hvd_status_name(status).decode('ascii', 'replace'))


def error(status):
    """The exception that stands for a status of the runtime; to be made by the thread that got the status."""
    if status == FORKED:
        return RuntimeError(FORKED_SENTENCE)
    text = last_error(status)
    if status in (INVALID_ARGUMENT, NOT_INITIALIZED, DUPLICATE_NAME):
        return ValueError(text)
    if status == UNSUPPORTED:
        return NotImplementedError(text)
    return HorovodInternalError(text)


def init():
    """Joins the world. ValueError when the runtime cannot."""
    global _init_pid
    status = lib().hvd_init(None)
    if status == FORKED:
        raise RuntimeError(FORKED_SENTENCE)
    if status != OK:
        raise ValueError('Horovod initialization failed: {}'.format(last_error(status)))
    _init_pid = os.getpid()


def shutdown():
    """Leaves the world. Nothing happens when there is none, or in a forked child."""
    global _init_pid
    if _lib is None or is_forked_child():
        return
    status = _lib.hvd_shutdown()
    if status not in (OK, FORKED):
        raise error(status)
    _init_pid = None


def query(name):
    """An integer about the world; ValueError before init(), RuntimeError in a forked child."""
    value = getattr(lib(), 'hvd_' + name)()
    if value < 0:
        if is_forked_child():
            raise RuntimeError(FORKED_SENTENCE)
        raise ValueError('Horovod has not been initialized; call hvd.init() first.')
    return value


class Request(object):
    """One collective, described once and submitted any number of times.

    It owns the C structures, so it must not be submitted by two threads at once. name None: the runtime numbers
    the unnamed collectives of the process.
    """

    __slots__ = ('_tensor', '_request', '_request_ref', '_shape', '_handle', '_handle_ref')

    def __init__(self, collective, name, dtype, shape, reduce_op=SUM, root_rank=0, process_set=0, prescale=1.0,
                 postscale=1.0):
        request = _Request()
        request.struct_size = ctypes.sizeof(_Request)
        request.collective = collective
        request.name = None if name is None else name.encode('utf-8')
        request.reduce_op = reduce_op
        request.root_rank = root_rank
        request.process_set = process_set
        request.prescale = prescale
        request.postscale = postscale
        self._tensor = None
        if dtype is not None:
            ndim = len(shape)
            tensor = _Tensor()
            tensor.struct_size = ctypes.sizeof(_Tensor)
            tensor.dtype = dtype
            self._shape = (ctypes.c_int64 * max(ndim, 1))(*shape)
            tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
            tensor.ndim = ndim
            self._tensor = tensor
            request.tensor = ctypes.pointer(tensor)
        self._request = request
        self._request_ref = ctypes.byref(request)
        self._handle = ctypes.c_uint64()
        self._handle_ref = ctypes.byref(self._handle)

    def submit(self, input_address=None, output_address=None):
        """Starts the collective and gives its handle. The memory must live until the handle is done."""
        tensor = self._tensor
        if tensor is not None:
            tensor.input = input_address
            tensor.output = output_address
        status = _lib.hvd_submit(self._request_ref, self._handle_ref)
        if status != OK:
            raise error(status)
        return self._handle.value


def poll(handle):
    """True when wait() would return at once."""
    done = ctypes.c_int32()
    status = _lib.hvd_poll(handle, ctypes.byref(done))
    if status != OK:
        raise error(status)
    return done.value != 0


def wait(handle):
    """Waits until the handle is done, and gives the exception to raise, or None."""
    hvd_wait = _lib.hvd_wait
    while True:
        status = hvd_wait(handle, WAIT_SLICE_MS)
        if status == OK:
            return None
        if status != IN_PROGRESS:
            return error(status)
