"""A world of one rank without libhvd.so: for systems that the runtime is not built for, such as macOS and Windows.

It has the functions of the C ABI (hvd.h) that this package calls, on the same structs. A collective of one rank gives back its
input, scaled as the runtime scales it, and is done when submit returns. Where the environment says that there are more ranks,
init refuses: each of them would train alone, and no number would show it.
"""

import array
import ctypes
import math
import os
import struct
import sys
import threading

# As in _library, which imports the caller of this module.
_OK, _INVALID_ARGUMENT, _NOT_INITIALIZED, _DUPLICATE_NAME, _ABORTED, _UNSUPPORTED = 0, 2, 3, 4, 6, 7
_ALLGATHER, _BROADCAST, _ALLTOALL, _BARRIER, _JOIN = 1, 2, 3, 5, 6
_REDUCING = (0, 4)
_NAMES = ('HVD_OK', 'HVD_IN_PROGRESS', 'HVD_INVALID_ARGUMENT', 'HVD_NOT_INITIALIZED', 'HVD_DUPLICATE_NAME', 'HVD_MISMATCH', 'HVD_ABORTED',
          'HVD_UNSUPPORTED', 'HVD_OUT_OF_MEMORY', 'HVD_FORKED', 'HVD_INTERNAL', 'HVD_DISMISSED')
_SIZES = (1, 1, 2, 2, 4, 8, 2, 4, 8, 1, 2, 1, 1)  # of hvd_dtype, in bytes
_INTEGERS = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'i', 5: 'q'}
_HALF, _FLOAT, _DOUBLE, _BOOL, _BRAIN = 6, 7, 8, 9, 10

# The variables in which launchers pass the number of ranks, and those by which they are recognised.
_LAUNCHERS = (('HOROVOD_SIZE', 'HOROVOD_RANK'), ('OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_RANK'), ('PMI_SIZE', 'PMI_RANK'),
              ('WORLD_SIZE', 'RANK'), ('SLURM_STEP_NUM_TASKS', 'SLURM_PROCID'), ('JSM_NAMESPACE_SIZE', 'JSM_NAMESPACE_RANK'))


def sentence():
    """What this installation is."""
    import platform
    return ('this installation of hvdrun has no runtime for {} on {}, so it makes worlds of one process and no larger ones; '
            'jobs of several processes need Linux with glibc 2.28 or newer, on x86-64 or aarch64 (docs/install.md)'.format(platform.system() or sys.platform, platform.machine() or 'this machine'))


def _float32(value):
    return array.array('f', (value,))[0]


def _scaled(values, pre, post, rounding):
    """pre and post are 1.0 if they are to leave the values alone."""
    if pre != 1.0:
        factor = rounding(pre)
        values = [rounding(value * factor) for value in values]
    if post != 1.0:
        factor = rounding(post)
        values = [rounding(value * factor) for value in values]
    return values


def _whole(value):
    """The integral part; 0 for NaN."""
    return 0 if value != value else int(max(min(value, 2.0 ** 127), -2.0 ** 127))


def _wrapped(value, code):
    bits = 8 * struct.calcsize(code)
    value &= (1 << bits) - 1
    return value - (1 << bits) if code.islower() and value >> (bits - 1) else value


def _to_half(value):
    try:
        return struct.pack('<e', value)
    except OverflowError:
        return struct.pack('<e', math.copysign(math.inf, value))


def _to_brain(value):
    bits, = struct.unpack('<I', array.array('f', (value,)).tobytes())
    if value != value:
        return struct.pack('<H', (bits >> 16) | 0x40)
    return struct.pack('<H', ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) & 0xffff)


def _scale(dtype, data, pre, post):
    """The bytes of the elements after both factors; None for types that are not scaled here."""
    count = len(data) // _SIZES[dtype]
    if dtype in _INTEGERS:
        code = _INTEGERS[dtype]
        values = struct.unpack('={}{}'.format(count, code), data)
        for factor in (pre, post):
            if factor != 1.0:
                values = [_whole(value * factor) for value in values]
        return struct.pack('={}{}'.format(count, code), *[_wrapped(value, code) for value in values])
    if dtype == _FLOAT:
        return array.array('f', _scaled(array.array('f', data), pre, post, _float32)).tobytes()
    if dtype == _DOUBLE:
        return array.array('d', _scaled(array.array('d', data), pre, post, float)).tobytes()
    if dtype == _BOOL:
        return bytes([1 if value and pre * post != 0 else 0 for value in data])
    if dtype == _HALF:
        return b''.join([_to_half(value) for value in _scaled(struct.unpack('<{}e'.format(count), data), pre, post, _float32)])
    if dtype == _BRAIN:
        words = struct.unpack('<{}H'.format(count), data)
        values = array.array('f', struct.pack('<{}I'.format(count), *[word << 16 for word in words]))
        return b''.join([_to_brain(value) for value in _scaled(values, pre, post, _float32)])
    return None


class _Done:
    """A finished collective that has not been waited for."""

    __slots__ = ('name', 'outputs', 'splits', 'joined')

    def __init__(self, name):
        self.name, self.outputs, self.splits, self.joined = name, [], (), -1


class World:
    """The functions of the C ABI, by their names."""

    def __init__(self):
        self._lock = threading.Lock()
        self._thread = threading.local()
        self._is_initialized = False
        self._generation = 0
        self._handles = {}
        self._next = 1
        self._memory = {}  # address -> its buffer

    # ---- errors

    def _fail(self, status, text):
        self._thread.error = text
        return status

    def hvd_last_error(self):
        return getattr(self._thread, 'error', '').encode()

    def hvd_status_name(self, status):
        return _NAMES[status].encode()

    # ---- the world

    def hvd_init(self, options):
        if self._is_initialized:
            return _OK
        if os.environ.get('HVD_AGENT'):
            return self._fail(_INVALID_ARGUMENT, '{}, but hvdrun has started this rank; let it find the package that belongs to that hvdrun'
                              .format(sentence()))
        for size, rank in _LAUNCHERS:
            ranks = os.environ.get(size, '')
            if rank in os.environ and ranks not in ('', '1'):
                return self._fail(_INVALID_ARGUMENT, '{}, but {}={} says that there are more; unset it to train alone'
                                  .format(sentence(), size, ranks))
        options = options._obj if options is not None else None
        if options is not None and options.mpi_comm:
            return self._fail(_UNSUPPORTED, sentence() + ', and so it makes none of a communicator of MPI')
        if options is not None:
            world = list((ctypes.c_int32 * options.rank_count).from_address(options.ranks)) if options.rank_count else [0]
            if world != [0]:
                return self._fail(_INVALID_ARGUMENT, 'the ranks {} are not those of a world of one, which has rank 0 alone'.format(world))
            if options.process_set_count:
                sizes = list((ctypes.c_int32 * options.process_set_count).from_address(options.process_set_sizes))
                ranks = list((ctypes.c_int32 * sum(sizes)).from_address(options.process_set_ranks)) if sum(sizes) else []
                return self._fail(_INVALID_ARGUMENT, 'a world of one has no process set beside the world, which has rank 0; {} cannot be one'
                                  .format(ranks))
        self._is_initialized = True
        self._generation += 1
        return _OK

    def hvd_shutdown(self):
        with self._lock:
            self._handles.clear()
        self._is_initialized = False
        return _OK

    def hvd_give_up(self):
        return _OK

    def hvd_is_initialized(self):
        return int(self._is_initialized)

    def _place(self, value):
        return value if self._is_initialized else -1

    def hvd_rank(self):
        return self._place(0)

    hvd_local_rank = hvd_cross_rank = hvd_elastic = hvd_should_stop = hvd_update_pending = hvd_rank

    def hvd_size(self):
        return self._place(1)

    hvd_local_size = hvd_cross_size = hvd_is_homogeneous = hvd_size

    def hvd_generation(self):
        return self._place(self._generation)

    def hvd_stop_grace_ms(self):
        return -1

    def hvd_built(self, _feature):
        return 0

    def hvd_enabled(self, _feature):
        return self._place(0)

    def hvd_commit(self, _timeout_ms, update):
        if not self._is_initialized:
            return self._not_initialized()
        update._obj.value = 0
        return _OK

    def hvd_start_timeline(self, _path, _mark_cycles):
        return self._fail(_UNSUPPORTED, sentence() + ', and it records no timeline')

    def hvd_stop_timeline(self):
        return _OK

    def hvd_note_step(self):
        return _OK

    def hvd_note_stacks(self, _number, _file):
        return _OK

    # ---- process sets

    def hvd_process_set_size(self, number):
        return self._place(1 if number == 0 else -1)

    def hvd_process_set_rank(self, number):
        return self._place(0 if number == 0 else -1)

    def hvd_process_set_ids(self, ids, capacity):
        if capacity > 0 and self._is_initialized:
            ids[0] = 0
        return self._place(1)

    def hvd_process_set_ranks(self, number, ranks, capacity):
        if number != 0 or not self._is_initialized:
            return -1
        if capacity > 0:
            ranks[0] = 0
        return 1

    def hvd_add_process_set(self, ranks, count, _number):
        return self._fail(_INVALID_ARGUMENT, 'a world of one has no process set beside the world, which has rank 0; {} cannot be one'
                          .format(list(ranks[:count])))

    def hvd_remove_process_set(self, number):
        return self._fail(_INVALID_ARGUMENT, 'there is no process set {} that can be removed in a world of one'.format(number))

    # ---- collectives

    def _not_initialized(self):
        return self._fail(_NOT_INITIALIZED, 'Horovod has not been initialized; call hvd.init() first.')

    def _refusal(self, request):
        """The error in a request; '' if there is none."""
        if request.process_set != 0:
            return 'there is no process set {}; a world of one has the world alone, 0'.format(request.process_set)
        if request.collective == _BROADCAST and request.root_rank != 0:
            return 'the root rank {} is not in the world, which has rank 0 alone'.format(request.root_rank)
        if request.collective == _ALLTOALL and request.splits_count not in (0, 1):
            return 'alltoall has {} splits for a world of one'.format(request.splits_count)
        return ''

    def _run_tensor(self, request, tensor, done):
        shape = list((ctypes.c_int64 * tensor.ndim).from_address(tensor.shape)) if tensor.ndim else []
        if request.collective == _ALLTOALL:
            rows = shape[0] if shape else 0
            if request.splits_count:
                sent = ctypes.c_int64.from_address(request.splits).value
                if not 0 <= sent <= rows:
                    return self._fail(_INVALID_ARGUMENT, 'alltoall sends {} rows of a tensor that has {}'.format(sent, rows))
                rows = sent
            done.splits = (rows,)
            shape = [rows] + shape[1:]
        elements = 1
        for extent in shape:
            elements *= extent
        size = elements * _SIZES[tensor.dtype]
        scales = (request.prescale, request.postscale) if request.collective in _REDUCING else (1.0, 1.0)
        data = None
        if scales != (1.0, 1.0) and size:
            data = _scale(tensor.dtype, ctypes.string_at(tensor.input, size), *scales)
            if data is None:
                return self._fail(_UNSUPPORTED, sentence() + ', and it does not scale tensors of 8-bit floats')
        output, made = tensor.output, None
        if not output and size:
            output = made = self.hvd_alloc(size)
        if size and data is not None:
            ctypes.memmove(output, data, size)
        elif size and output != tensor.input:
            ctypes.memmove(output, tensor.input, size)
        done.outputs.append((made, shape))
        return _OK

    def hvd_submit(self, request, handle):
        if not self._is_initialized:
            return self._not_initialized()
        request = request._obj
        why = self._refusal(request)
        if why:
            return self._fail(_INVALID_ARGUMENT, why)
        done = _Done(request.name)
        with self._lock:
            if done.name is not None and any(other.name == done.name for other in self._handles.values()):
                return self._fail(_DUPLICATE_NAME, 'a tensor named {} is in flight already; wait for it first, or give this one another name'
                                  .format(done.name.decode('utf-8', 'replace')))
        if request.collective == _JOIN:
            done.joined = 0
        if request.collective not in (_BARRIER, _JOIN) and request.tensor:
            tensor_type = self.tensor_type
            for index in range(max(request.tensor_count, 1)):
                tensor = tensor_type.from_address(request.tensor + index * ctypes.sizeof(tensor_type))
                status = self._run_tensor(request, tensor, done)
                if status != _OK:
                    return status
        with self._lock:
            number = self._next
            self._next += 1
            self._handles[number] = done
        handle._obj.value = number
        return _OK

    def hvd_run_for(self, request, _timeout_ms, handle):
        status = self.hvd_submit(request, handle)
        if status == _OK:
            status = self.hvd_wait(handle._obj.value, -1)
        handle._obj.value = 0
        return status

    def hvd_poll(self, handle, done):
        if handle not in self._handles:
            return self._fail(_INVALID_ARGUMENT, 'there is no handle {}'.format(handle))
        done._obj.value = 1
        return _OK

    def _pop(self, handle):
        with self._lock:
            return self._handles.pop(handle, None)

    def hvd_wait(self, handle, _timeout_ms):
        done = self._pop(handle)
        if done is None:
            return self._fail(_INVALID_ARGUMENT, 'there is no handle {}'.format(handle))
        for made, _ in done.outputs:
            self.hvd_free(made)
        return _OK

    def hvd_wait_result(self, handle, _timeout_ms, result):
        done = self._pop(handle)
        if done is None:
            return self._fail(_INVALID_ARGUMENT, 'there is no handle {}'.format(handle))
        result = result._obj
        for index, (made, shape) in enumerate(done.outputs):
            if index >= result.output_count:
                self.hvd_free(made)
                continue
            output = self.output_type.from_address(result.outputs + index * ctypes.sizeof(self.output_type))
            output.data, output.ndim = made, len(shape)
            output.shape[:len(shape)] = shape
        if result.received_splits and result.received_splits_count and done.splits:
            ctypes.c_int64.from_address(result.received_splits).value = done.splits[0]
        result.last_joined_rank = done.joined
        return _OK

    # ---- memory

    def hvd_alloc(self, size):
        buffer = ctypes.create_string_buffer(size + 64)
        address = (ctypes.addressof(buffer) + 63) & ~63
        self._memory[address] = buffer
        return address

    def hvd_free(self, address):
        self._memory.pop(address, None)
        return _OK

    def hvd_is_registered(self, _address, _size):
        return 0
