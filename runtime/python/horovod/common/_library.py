"""The C ABI (hvd.h) by ctypes: its structs and codes, and its statuses as exceptions.

The only file that knows them. Everything may be called from any thread; the interpreter lock is released during
each call.
"""

import ctypes

from horovod.common import _native, _waiting
from horovod.common.exceptions import HorovodInternalError

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
DISMISSED = 11

# hvd_update
UPDATE_REMOVED = 1
UPDATE_ADDED = 2
UPDATE_STOP = 4

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
FLOAT8_E4M3 = 11
FLOAT8_E5M2 = 12

# hvd_request_flag: a scale factor of 0.0 is one
EXACT_SCALES = 1

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

DEVICE_CUDA = 1

MAX_DIMENSIONS = 8

# Waits are split into slices of this length, so that Ctrl-C and Python's signal handlers are served.
WAIT_SLICE_MS = 200

_int32, _int64, _uint32, _pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32, ctypes.c_void_p


class _InitOptions(ctypes.Structure):
    _fields_ = [
        ('struct_size', _uint32),
        ('flags', _uint32),
        ('timeout_ms', _int64),
        ('process_set_ranks', _pointer),
        ('process_set_sizes', _pointer),
        ('process_set_count', _int32),
        ('reserved', _int32),
        ('mpi_comm', _pointer),
        ('ranks', _pointer),
        ('rank_count', _int32),
        ('reserved2', _int32),
    ]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ('struct_size', _uint32),
        ('dtype', _int32),
        ('input', _pointer),
        ('output', _pointer),
        ('shape', _pointer),
        ('ndim', _int32),
        ('device_kind', _int32),
        ('device_index', _int32),
        ('reserved', _int32),
        ('stream', _pointer),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        ('struct_size', _uint32),
        ('collective', _int32),
        ('name', ctypes.c_char_p),
        ('tensor', _pointer),
        ('reduce_op', _int32),
        ('root_rank', _int32),
        ('process_set', _int32),
        ('flags', _uint32),
        ('prescale', ctypes.c_double),
        ('postscale', ctypes.c_double),
        ('tensor_count', _int32),
        ('splits_count', _int32),
        ('splits', _pointer),
        ('members_hash', ctypes.c_uint64),
        ('members', ctypes.c_char_p),
        ('on_done', _pointer),
        ('on_done_arg', _pointer),
        ('on_done_wait_us', _int64),
    ]


class _Output(ctypes.Structure):
    _fields_ = [
        ('struct_size', _uint32),
        ('ndim', _int32),
        ('data', _pointer),
        ('shape', _int64 * MAX_DIMENSIONS),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        ('struct_size', _uint32),
        ('output_count', _int32),
        ('outputs', _pointer),
        ('received_splits', _pointer),
        ('received_splits_count', _int32),
        ('last_joined_rank', _int32),
    ]


_TENSOR_SIZE = ctypes.sizeof(_Tensor)
_MOST_BYTES_OF_NAMES = 64 << 10
_REQUEST_SIZE = ctypes.sizeof(_Request)


def _declare(lib):
    prototypes = {
        'last_error': (ctypes.c_char_p, []),
        'status_name': (ctypes.c_char_p, [_int32]),
        'built': (_int32, [ctypes.c_char_p]),
        'enabled': (_int32, [ctypes.c_char_p]),
        'init': (_int32, [_pointer]),
        'generation': (_int64, []),
        'give_up': (_int32, []),
        'commit': (_int32, [_int64, _pointer]),
        'stop_grace_ms': (_int64, []),
        'process_set_size': (_int32, [_int32]),
        'process_set_rank': (_int32, [_int32]),
        'process_set_ids': (_int32, [_pointer, _int32]),
        'process_set_ranks': (_int32, [_int32, _pointer, _int32]),
        'add_process_set': (_int32, [_pointer, _int32, _pointer]),
        'remove_process_set': (_int32, [_int32]),
        'submit': (_int32, [_pointer, _pointer]),
        'run_for': (_int32, [_pointer, _int64, _pointer]),
        'poll': (_int32, [ctypes.c_uint64, _pointer]),
        'wait': (_int32, [ctypes.c_uint64, _int64]),
        'wait_result': (_int32, [ctypes.c_uint64, _int64, _pointer]),
        'alloc': (_pointer, [ctypes.c_size_t]),
        'free': (_int32, [_pointer]),
        'is_registered': (_int32, [_pointer, ctypes.c_size_t]),
    }
    for name, (result, arguments) in prototypes.items():
        function = getattr(lib, 'hvd_' + name)
        function.restype = result
        function.argtypes = arguments


def _load():
    _native.load()
    if _native.alone is not None:
        _native.alone.tensor_type, _native.alone.output_type = _Tensor, _Output
        return _native.alone
    loaded = ctypes.CDLL(_native.path, handle=_native.handle)
    try:
        _declare(loaded)
    except AttributeError as error:
        raise ImportError('The hvd runtime at {} cannot be used: {}; use the package and the library of one build.'
                          .format(_native.path, error)) from None
    return loaded


_lib = None


def lib():
    """The loaded library. ImportError with one sentence if it cannot be loaded."""
    global _lib
    if _lib is None:
        _lib = _load()
    return _lib


def last_error(status):
    """The runtime's sentence about the last failure of this thread."""
    text = lib().hvd_last_error().decode('utf-8', 'replace')
    if text:
        return text
    return 'the hvd runtime answered {}'.format(lib().hvd_status_name(status).decode('ascii', 'replace'))


def error(status):
    """The exception for a status of the runtime; to be created by the thread that got the status."""
    if status == FORKED:
        return RuntimeError(_native.FORKED_SENTENCE)
    text = last_error(status)
    if status == NOT_INITIALIZED:
        return _native.refusal_in_child() or ValueError(text)
    if status in (INVALID_ARGUMENT, DUPLICATE_NAME):
        return ValueError(text)
    if status == UNSUPPORTED:
        return NotImplementedError(text)
    failure = HorovodInternalError(text)
    failure.is_disagreement = status == MISMATCH
    return failure


def init_error(status):
    """The exception for a failure of hvd_init(); to be created by the thread that got the status."""
    if status == FORKED:
        return RuntimeError(_native.FORKED_SENTENCE)
    if status == DISMISSED:
        return SystemExit(0)  # the job continues without this process, which the runtime has logged
    return ValueError('Horovod initialization failed: {}'.format(last_error(status)))


def built(feature):
    return built_version(feature) > 0


def built_version(feature):
    """Of 'nccl' its version; of others 1 if they are there. 0 if it is not."""
    return lib().hvd_built(feature.encode('ascii'))


def enabled(feature):
    """Whether the feature carries data of this world; ValueError before init()."""
    _native.query('rank')
    return lib().hvd_enabled(feature.encode('ascii')) == 1


# ---- elastic worlds


def _slice_ms():
    return _waiting.SLICE_MS if _waiting.watchers else WAIT_SLICE_MS


def commit():
    """Comes to the next commit of this rank; gives the bits of hvd_update that all ranks act on there, usually 0."""
    update = _int32()
    reference = ctypes.byref(update)
    hvd_commit = lib().hvd_commit
    while True:
        status = hvd_commit(_slice_ms(), reference)
        if status == OK:
            return update.value
        if status != IN_PROGRESS:
            raise error(status)
        _waiting.tick()


def give_up():
    """Fails what is pending and what comes later in this world, which is not left by that."""
    lib().hvd_give_up()


def stop_grace_ms():
    return lib().hvd_stop_grace_ms()


# ---- process sets


def _int32_array(numbers):
    return (_int32 * max(len(numbers), 1))(*numbers)


def init(rank_lists, mpi_comm=None, world_ranks=()):
    """Joins the world with these process sets. The communicator at this address is the world, or these of the ranks."""
    ranks = _int32_array([rank for ranks in rank_lists for rank in ranks])
    sizes = _int32_array([len(ranks) for ranks in rank_lists])
    world = _int32_array(world_ranks)
    options = _InitOptions(ctypes.sizeof(_InitOptions), 0, 0, ctypes.addressof(ranks), ctypes.addressof(sizes),
                           len(rank_lists), 0, mpi_comm, ctypes.addressof(world), len(world_ranks), 0)
    status = lib().hvd_init(ctypes.byref(options))
    if status != OK:
        raise init_error(status)
    _native.note_joined()


def add_process_set(ranks):
    """Registers a set on all ranks and returns its id."""
    array, number = _int32_array(ranks), _int32()
    _waiting.tick()  # one call, without slices
    status = lib().hvd_add_process_set(array, len(ranks), ctypes.byref(number))
    if status != OK:
        raise error(status)
    return number.value


def remove_process_set(process_set_id):
    """Removes a set on all ranks."""
    _waiting.tick()  # one call, without slices
    status = lib().hvd_remove_process_set(process_set_id)
    if status != OK:
        raise error(status)


def _all_numbers(function):
    """The numbers that function(array, capacity) writes; it returns how many there are."""
    capacity = 64
    while True:
        array = (_int32 * capacity)()
        count = function(array, capacity)
        if count <= capacity:
            return array[:max(count, 0)]
        capacity = count


def process_sets():
    """{id: ranks} of all sets, ascending."""
    _native.query('rank')
    library = lib()
    return {number: _all_numbers(lambda array, capacity: library.hvd_process_set_ranks(number, array, capacity))
            for number in _all_numbers(library.hvd_process_set_ids)}


# ---- collectives


def _hash_of(members):
    """Names as a request has them: their hash, and one per line. Of very many only the first ones, for a message."""
    if members is None:
        return 0, None
    import hashlib
    text = '\n'.join(str(name).replace('\n', ' ').replace('\0', ' ') for name in members).encode('utf-8', 'replace')
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), 'little') or 1, text[:_MOST_BYTES_OF_NAMES]


class Request:
    """One collective, described once and submitted any number of times.

    It owns the C structures, so it must not be submitted by two threads at once. name None: the runtime numbers
    the unnamed collectives of the process. parts: (dtype, shape) of each tensor; more than one make a group. members:
    the names of what it combines, which have to be the same on all ranks, or None.
    """

    __slots__ = ('_tensors', '_addresses', '_shapes', '_splits', '_request', '_request_ref', '_handle',
                 '_handle_ref')

    def __init__(self, collective, name, parts, reduce_op=SUM, root_rank=0, process_set=0, prescale=1.0,
                 postscale=1.0, splits=None, members=None):
        self._tensors = tensors = (_Tensor * len(parts))() if parts else None
        self._addresses = ()  # those in _tensors
        self._shapes = []
        for index, (dtype, shape) in enumerate(parts):
            ndim = len(shape)
            if ndim > MAX_DIMENSIONS:  # the others are equivalent to one
                last = 1
                for extent in shape[MAX_DIMENSIONS - 1:]:
                    last *= extent
                shape = tuple(shape[:MAX_DIMENSIONS - 1]) + (last,)
                ndim = MAX_DIMENSIONS
            extents = (_int64 * ndim)(*shape)
            self._shapes.append(extents)
            tensor = tensors[index]
            tensor.struct_size = _TENSOR_SIZE
            self._describe_type(tensor, dtype)
            tensor.shape = ctypes.addressof(extents)
            tensor.ndim = ndim
        self._splits = None if splits is None else (_int64 * max(len(splits), 1))(*splits)
        self._request = _Request(
            _REQUEST_SIZE, collective, None if name is None else name.encode('utf-8'),
            ctypes.addressof(tensors) if parts else None, reduce_op, root_rank, process_set, EXACT_SCALES, prescale, postscale,
            len(parts), 0 if splits is None else len(splits),
            None if splits is None else ctypes.addressof(self._splits), *_hash_of(members))
        self._request_ref = ctypes.byref(self._request)
        self._handle = ctypes.c_uint64()
        self._handle_ref = ctypes.byref(self._handle)

    @staticmethod
    def _describe_type(tensor, dtype):
        tensor.dtype = dtype

    def submit(self, *addresses):
        """Starts the collective and returns its handle. addresses: those of input and output of each tensor in turn;
        an output of None leaves it to the runtime to make the memory. The memory must live until the handle is done.
        """
        if addresses != self._addresses:
            self._place(addresses)
        status = _lib.hvd_submit(self._request_ref, self._handle_ref)
        if status != OK:
            raise error(status)
        return self._handle.value

    def _place(self, addresses):
        """Writes the addresses; they are usually those of the last call, and comparing them is faster."""
        for tensor, input, output in zip(self._tensors, addresses[::2], addresses[1::2]):
            tensor.input = input
            tensor.output = output
        self._addresses = addresses

    def run(self, *addresses):
        """submit() and wait() of one tensor in one call, which is faster. Returns None if it is done, or the
        handle of a collective still in flight after a moment, so that signal handlers can run before the caller
        waits on."""
        if addresses != self._addresses:
            self._place(addresses)
        status = _lib.hvd_run_for(self._request_ref, _slice_ms(), self._handle_ref)
        if status == OK:
            return None
        if status == IN_PROGRESS:
            return self._handle.value
        raise error(status)

    def rename(self, name):
        """Another name, as bytes, for the calls to come."""
        self._request.name = name

    def under_way(self):
        """The handle of the collective that run() left in flight, or None: also if a signal handler ended run() by an exception, which
        comes after the call of the runtime and before its result."""
        return self._handle.value or None


class DeviceRequest(Request):
    """The same for tensors on a CUDA device: each dtype is a pair of the type and the device's index. stream(index)
    gives the handle of the stream that the caller works in there, which streams has by the collective's handle."""

    __slots__ = ('_stream', '_index', '_streams')

    def __init__(self, stream, index, streams, *description):
        Request.__init__(self, *description)
        self._stream = stream
        self._index = index
        self._streams = streams

    @staticmethod
    def _describe_type(tensor, dtype):
        tensor.dtype, tensor.device_index = dtype
        tensor.device_kind = DEVICE_CUDA

    def submit(self, *addresses):
        stream = self._stream(self._index)
        for tensor in self._tensors:
            tensor.stream = stream
        handle = Request.submit(self, *addresses)
        self._streams[handle] = (self._index, stream)
        return handle

    def run(self, *addresses):
        """As that of a Request, but always the handle: the wait that follows takes care of the streams."""
        return self.submit(*addresses)


def runner(tensor_type, collective, operation, slice_ms=WAIT_SLICE_MS):
    """A function (input, output, name, reduce_op, root_rank, process_set, prescale, postscale) that runs a blocking
    collective on two tensors of this type, or on one in place, faster than a Request. It returns 0 if it is done, the
    handle of a collective still in flight after slice_ms, a status as a negative number, for error(), or None, with nothing
    submitted, when only a Request can tell. slice_ms 0: it starts the collective and gives its handle.

    None if there is no such function: the interpreter is another one than CPython, there is no library, or the framework does not show
    where its tensors are (DLPack's exchange in C)."""
    if _native.alone is not None:
        return None
    make = ctypes.PyDLL(_native.path, handle=_native.handle).hvd_python_runner
    make.argtypes = [ctypes.py_object, _int32, ctypes.c_char_p, _int64]
    make.restype = _pointer  # must not be NULL as an object: ctypes of Python 3.11 takes a reference from it
    function = make(tensor_type, collective, operation.encode('ascii'), slice_ms)
    return None if function is None else ctypes.cast(function, ctypes.py_object).value


def poll(handle):
    """True when wait() would return at once."""
    done = _int32()
    status = _lib.hvd_poll(handle, ctypes.byref(done))
    if status != OK:
        raise error(status)
    return done.value != 0


def wait(handle):
    """Waits until the handle is done, and returns the exception to raise, or None."""
    hvd_wait = _lib.hvd_wait
    while True:
        status = hvd_wait(handle, _slice_ms())
        if status == OK:
            return None
        if status != IN_PROGRESS:
            return error(status)
        _waiting.tick()


class ResultRoom:
    """Where the runtime writes a result."""

    __slots__ = ('_outputs', '_splits', '_result', 'each', 'ref')

    def __init__(self, output_count, splits_count):
        self._outputs = outputs = (_Output * max(output_count, 1))()
        for output in outputs:
            output.struct_size = ctypes.sizeof(_Output)
        self.each = tuple([(outputs[index], outputs[index].shape) for index in range(output_count)])
        self._splits = (_int64 * max(splits_count, 1))()
        self._result = _Result(ctypes.sizeof(_Result), 0, ctypes.addressof(outputs), ctypes.addressof(self._splits))
        self.ref = ctypes.byref(self._result)

    def empty(self, output_count, splits_count):
        result = self._result
        result.output_count = output_count
        result.received_splits_count = splits_count
        result.last_joined_rank = -1

    def splits(self, count):
        return self._splits[:count]

    def last_joined_rank(self):
        return self._result.last_joined_rank


_KEPT_OUTPUTS = 16
# (output_count, splits_count) -> unused result structs with few outputs
_rooms = {}


class Outcome:
    """The results of a finished collective besides the bytes in the caller's memory."""

    __slots__ = ('error', 'outputs', 'received_splits', 'last_joined_rank')


def wait_result(handle, output_count=0, splits_count=0, answers=True):
    """wait() that also returns the result. outputs: (address, rows) of each; memory at an address is the caller's, and
    has to go back by hvd_free; it is None when there is not one element."""
    idle = _rooms.setdefault((output_count, splits_count), []) if output_count <= _KEPT_OUTPUTS else []
    try:
        room = idle.pop()
    except IndexError:
        room = ResultRoom(output_count, splits_count)
    room.empty(output_count, splits_count)
    hvd_wait_result = _lib.hvd_wait_result
    while True:
        status = hvd_wait_result(handle, _slice_ms(), room.ref)
        if status != IN_PROGRESS:
            break
        if answers:
            _waiting.tick()
    outcome = Outcome()
    outcome.error = None if status == OK else error(status)
    outcome.outputs = [(output.data, shape[0]) for output, shape in room.each]
    outcome.received_splits = room.splits(splits_count)
    outcome.last_joined_rank = room.last_joined_rank()
    idle.append(room)
    return outcome
