"""The collectives on the tensors of any framework: handles, names, groups, and memory that the runtime made.

An adapter makes one Operations with a description of its framework (see Framework) and puts its own signatures in
front of it. An asynchronous call gives an int handle; the tensors of a pending handle are kept alive in `pending`
until synchronize() has seen its end.
"""

from __future__ import annotations

from horovod.common import _library, _waiting, registered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEPT_REQUESTS = 4096

_REDUCE_OPS = (_library.AVERAGE, _library.SUM, _library.ADASUM, _library.MIN, _library.MAX, _library.PRODUCT)

_RUN_BY_THE_INTERPRETER = ((_library.ALLREDUCE, 'allreduce'), (_library.BROADCAST, 'broadcast'))


class Framework:
    """The facts that Operations has to know about the tensors of a framework."""

    tensor_type = None  # of its tensors, if _library.runner is to be tried

    def is_plain(self, tensor, in_place):
        """Whether this is a tensor_type itself whose memory has its values, and the processor's memory unless it is in place.
        Only where there is a tensor_type."""
        raise NotImplementedError()

    def check(self, operation, tensor, writable):
        """(tensor to use, the runtime's code of its type); for a tensor on a device, the latter is a pair of that code and
        the index of the device. Raises ValueError when the operation cannot take it."""
        raise NotImplementedError()

    def address(self, tensor):
        """Where its first element is."""
        raise NotImplementedError()

    def note_written(self, tensor):
        """An operation in place has given this tensor other values, of which the framework knows nothing yet."""

    def empty_like(self, tensor):
        """A new contiguous tensor of this type and shape, with any content."""
        raise NotImplementedError()

    def bytes_of_row(self, tensor):
        """Bytes per index of dimension 0."""
        raise NotImplementedError()

    def from_memory(self, tensor, buffer, rows):
        """A tensor over the buffer, with this one's type and shape except for the number of rows. buffer None: it has
        no elements."""
        raise NotImplementedError()

    def adopt(self, tensor, address, nbytes):
        """A buffer for from_memory over memory that the runtime made for a tensor like this one."""
        return registered.adopt(address, nbytes)

    def stream(self, index):
        """The handle of the stream that the caller works in on this device. Only where check gives pairs."""
        raise NotImplementedError()

    def follow(self, index, stream, results=()):
        """The stream that the caller works in on this device waits for this one, and will use the results, whose memory
        was made for that one."""
        raise NotImplementedError()

    def splits_from(self, splits):
        """The splits that a caller gave, as a list of integers; raises ValueError."""
        raise NotImplementedError()

    def splits_to(self, numbers):
        """A list of integers as a caller wants received splits."""
        raise NotImplementedError()


class _Pending:
    """A handle whose outputs the runtime makes."""

    __slots__ = ('inputs', 'splits_count', 'grouped')

    def __init__(self, inputs, splits_count=0, grouped=False):
        self.inputs = inputs
        self.splits_count = splits_count
        self.grouped = grouped


def process_set_id(process_set):
    number = process_set.process_set_id
    if number is None:
        raise ValueError('{} is not registered; add it with hvd.add_process_set() first.'.format(process_set))
    return number


def check_op(op):
    if op not in _REDUCE_OPS:
        raise ValueError('op must be hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max or hvd.Product, but is {!r}.'
                         .format(op))


def full_name(operation, name):
    # The runtime numbers unnamed collectives, so that all frameworks of the process share one counter.
    return None if name is None else '{}.{}'.format(operation, name)


def list_of_integers(splits):
    """splits of an alltoall that are no tensor."""
    try:
        splits = list(splits)
    except TypeError:
        splits = None
    if splits is None or not all(isinstance(n, int) and not isinstance(n, bool) for n in splits):
        raise ValueError('splits of hvd.alltoall is a list of integers, but {!r} was given.'.format(splits))
    return splits


class Operations:
    def __init__(self, framework):
        _library.lib()  # ImportError now
        self._framework = framework
        self._runners = self._of_the_interpreter(_waiting.SLICE_MS)
        self._starters = self._of_the_interpreter(0)
        # handle -> (output, inputs) if the output existed before, else a _Pending
        self.pending = {}
        # Tensors of blocking calls that a signal handler ended by an exception. Their handles are lost, and the runtime may use them until
        # the process ends.
        self._abandoned = []
        self._requests = {}
        # handle -> (index of the device, stream) of those on a device
        self._streams = {}

    def _of_the_interpreter(self, slice_ms):
        tensor_type = self._framework.tensor_type
        return {} if tensor_type is None else {
            collective: _library.runner(tensor_type, collective, operation, slice_ms)
            for collective, operation in _RUN_BY_THE_INTERPRETER}

    # ---- one tensor

    def allreduce_async(self, tensor, in_place, name, op, prescale_factor, postscale_factor, process_set):
        check_op(op)
        return self._one(_library.ALLREDUCE, 'allreduce', tensor, in_place, name, process_set, op, 0, prescale_factor,
                         postscale_factor)

    def allreduce(self, tensor, in_place, name, op, prescale_factor, postscale_factor, process_set):
        """allreduce_async() and synchronize() in one."""
        check_op(op)
        return self._run(_library.ALLREDUCE, 'allreduce', tensor, in_place, name, process_set, op, 0, prescale_factor,
                         postscale_factor)

    def broadcast_async(self, tensor, in_place, root_rank, name, process_set):
        return self._one(_library.BROADCAST, 'broadcast', tensor, in_place, name, process_set, 0, root_rank)

    def broadcast(self, tensor, in_place, root_rank, name, process_set):
        """broadcast_async() and synchronize() in one."""
        return self._run(_library.BROADCAST, 'broadcast', tensor, in_place, name, process_set, 0, root_rank)

    def _run(self, collective, operation, tensor, in_place, name, process_set, op, root_rank, prescale=1.0,
             postscale=1.0):
        framework = self._framework
        runner = self._runners.get(collective)
        if runner is not None and framework.is_plain(tensor, in_place):
            output = tensor if in_place else framework.empty_like(tensor)
            try:
                handle = runner(tensor, output, name, op, root_rank, process_set.process_set_id, prescale, postscale)
            except BaseException:
                self._abandoned.append((output, tensor))
                raise
            if handle == 0:
                if in_place:
                    framework.note_written(tensor)
                _waiting.count()
                return output
            if handle is not None:
                return self.synchronize(self._begun(handle, tensor, output))
        key, request, tensor, output = self._prepare(collective, operation, tensor, in_place, name, process_set, op,
                                                     root_rank, prescale, postscale)
        address = framework.address
        begin = address(tensor)
        try:
            handle = request.run(begin, begin if output is tensor else address(output))
        except BaseException:
            if request.under_way() is not None:
                self._abandoned.append((output, tensor))
            raise
        if handle is not None:
            self.pending[handle] = (output, tensor)
        self._keep(key, request)
        if handle is not None:
            return self.synchronize(handle)
        if in_place:
            framework.note_written(tensor)
        _waiting.count()
        return output

    def _begun(self, handle, tensor, output):
        """The handle that a function of the interpreter has given, if it is one; its tensors are kept alive."""
        if handle < 0:
            raise _library.error(-handle)
        self.pending[handle] = (output, tensor)
        return handle

    def _one(self, collective, operation, tensor, in_place, name, process_set, op, root_rank, prescale=1.0,
             postscale=1.0):
        framework = self._framework
        starter = self._starters.get(collective)
        if starter is not None and framework.is_plain(tensor, in_place):
            output = tensor if in_place else framework.empty_like(tensor)
            handle = starter(tensor, output, name, op, root_rank, process_set.process_set_id, prescale, postscale)
            if handle is not None:
                return self._begun(handle, tensor, output)
        key, request, tensor, output = self._prepare(collective, operation, tensor, in_place, name, process_set, op,
                                                     root_rank, prescale, postscale)
        handle = request.submit(framework.address(tensor), framework.address(output))
        self.pending[handle] = (output, tensor)
        self._keep(key, request)
        return handle

    def _prepare(self, collective, operation, tensor, in_place, name, process_set, op, root_rank, prescale, postscale):
        """A request for one tensor, with the key to keep it by, the tensor to use and the one for its result."""
        framework = self._framework
        tensor, dtype = framework.check(operation, tensor, in_place)
        output = tensor if in_place else framework.empty_like(tensor)
        shape = tensor.shape
        key = (collective, name, op, root_rank, process_set_id(process_set), prescale, postscale, dtype, shape)
        request = self._requests.pop(key, None)
        if request is None:
            request = self.describe(collective, full_name(operation, name), ((dtype, shape),), op, root_rank, key[4],
                                    prescale, postscale)
        return key, request, tensor, output

    def describe(self, collective, name, parts, *more):
        """A request; parts: (dtype as check() gives it, shape) of each tensor."""
        device = parts[0][0][1] if type(parts[0][0]) is tuple else None
        for dtype, _ in parts:
            if (dtype[1] if type(dtype) is tuple else None) != device:
                raise ValueError('The tensors of a group are on different devices; put them on one, or submit them '
                                 'apart.')
        if device is None:
            return _library.Request(collective, name, parts, *more)
        return _library.DeviceRequest(self._framework.stream, device, self._streams, collective, name, parts, *more)

    def _keep(self, key, request):
        """Describing takes longer than submitting, so descriptions are kept for the next call; no other caller has one while
        it is out of the dictionary."""
        requests = self._requests
        if len(requests) >= _KEPT_REQUESTS:
            requests.clear()
        requests[key] = request

    def allgather_async(self, tensor, name, process_set):
        return self._made(_library.ALLGATHER, 'allgather', tensor, name, process_set)

    def reducescatter_async(self, tensor, name, op, prescale_factor, postscale_factor, process_set):
        check_op(op)
        return self._made(_library.REDUCESCATTER, 'reducescatter', tensor, name, process_set, op, prescale_factor,
                          postscale_factor)

    def alltoall_async(self, tensor, splits, name, process_set):
        number = process_set_id(process_set)
        if splits is not None:
            splits = self._framework.splits_from(splits)
            if not splits:
                raise ValueError('splits of hvd.alltoall is empty; give one entry for each rank of the process set.')
        members = _library.lib().hvd_process_set_size(number)
        return self._made(_library.ALLTOALL, 'alltoall', tensor, name, process_set, splits=splits,
                          splits_count=max(members, 0))

    def _made(self, collective, operation, tensor, name, process_set, op=0, prescale=1.0, postscale=1.0, splits=None,
              splits_count=0):
        framework = self._framework
        tensor, dtype = framework.check(operation, tensor, False)
        key = (collective, name, op, process_set_id(process_set), prescale, postscale, dtype, tensor.shape,
               None if splits is None else tuple(splits))
        request = self._requests.pop(key, None)
        if request is None:
            request = self.describe(collective, full_name(operation, name), ((dtype, tensor.shape),), op, 0, key[3],
                                    prescale, postscale, splits)
        handle = request.submit(framework.address(tensor), None)
        self.pending[handle] = _Pending((tensor,), splits_count)
        self._keep(key, request)
        return handle

    # ---- groups

    def grouped_allreduce_async(self, tensors, in_place, name, op, prescale_factor, postscale_factor, process_set):
        check_op(op)
        framework = self._framework
        key, request, tensors = self._group(_library.ALLREDUCE, 'allreduce', tensors, in_place, name, process_set, op,
                                            prescale_factor, postscale_factor)
        outputs = tensors if in_place else [framework.empty_like(tensor) for tensor in tensors]
        addresses = []
        for tensor, output in zip(tensors, outputs):
            addresses += (framework.address(tensor), framework.address(output))
        handle = request.submit(*addresses)
        self.pending[handle] = (outputs, tensors)
        self._keep(key, request)
        return handle

    def grouped_allgather_async(self, tensors, name, process_set):
        return self._grouped_made(_library.ALLGATHER, 'allgather', tensors, name, process_set)

    def grouped_reducescatter_async(self, tensors, name, op, prescale_factor, postscale_factor, process_set):
        check_op(op)
        return self._grouped_made(_library.REDUCESCATTER, 'reducescatter', tensors, name, process_set, op,
                                  prescale_factor, postscale_factor)

    def _grouped_made(self, collective, operation, tensors, name, process_set, op=0, prescale=1.0, postscale=1.0):
        key, request, tensors = self._group(collective, operation, tensors, False, name, process_set, op, prescale,
                                            postscale)
        addresses = []
        for tensor in tensors:
            addresses += (self._framework.address(tensor), None)
        handle = request.submit(*addresses)
        self.pending[handle] = _Pending(tensors, grouped=True)
        self._keep(key, request)
        return handle

    def _group(self, collective, operation, tensors, in_place, name, process_set, op, prescale, postscale):
        """A request for all of them under one name, with the key to keep it by, and the tensors to use."""
        checked = [self._framework.check('grouped_' + operation, tensor, in_place) for tensor in tensors]
        if not checked:
            raise ValueError('hvd.grouped_{} takes at least one tensor, but was given an empty list.'
                             .format(operation))
        parts = tuple([(dtype, tensor.shape) for tensor, dtype in checked])
        key = (collective, name, op, process_set_id(process_set), prescale, postscale, parts)
        request = self._requests.pop(key, None)
        if request is None:
            request = self.describe(collective, full_name('grouped_' + operation, name), parts, op, 0, key[3],
                                    prescale, postscale)
        return key, request, [tensor for tensor, _ in checked]

    # ---- without tensors

    def barrier(self, process_set):
        key = (_library.BARRIER, process_set_id(process_set))
        request = self._requests.pop(key, None)
        if request is None:
            request = _library.Request(_library.BARRIER, None, (), process_set=key[1])
        handle = request.submit()
        self._keep(key, request)
        error = _library.wait(handle)
        _waiting.count()
        if error is not None:
            raise error

    def join(self):
        """Waits until all ranks have joined and returns the last of them."""
        outcome = _library.wait_result(_library.Request(_library.JOIN, None, ()).submit(), answers=False)
        if outcome.error is not None:
            raise outcome.error
        _waiting.joined()
        return outcome.last_joined_rank

    # ---- handles

    def poll(self, handle: int) -> bool:
        """Returns whether an asynchronous operation has finished, and makes progress.

        It reports the state at its entry, so the first call after the submission returns False. After
        True, synchronize() returns at once.

        Args:
            handle: The handle that an asynchronous call returned.

        Returns: True or False; True for a handle that is not known or was waited for.
        """
        done = handle not in self.pending or _library.poll(handle)
        if not done and _waiting.watchers:
            _waiting.tick(is_counted=False)
        return done

    def synchronize(self, handle: int) -> Any:
        """Waits for an asynchronous operation and returns its output.

        Handles may be waited for in any order. Ctrl-C and signal handlers run during the wait, and an
        interrupted wait may be repeated.

        Args:
            handle: The handle that an asynchronous call returned.

        Returns: The output: a tensor or array, a tuple of them for a group, a pair for alltoall. None
            for a handle that is not known or was waited for.

        Raises:
            HorovodInternalError: The ranks disagree about the operation, or a rank left or died.

        Example:

            handle = hvd.allreduce_async(x)
            x = hvd.synchronize(handle)
        """
        entry = self.pending.get(handle)
        if entry is None:
            return None
        output = self.finish(handle, entry)
        _waiting.count()
        return output

    def finish(self, handle, entry):
        """synchronize() of a handle whose entry in `pending` the caller has, by a wait of the adapter's own."""
        if type(entry) is _Pending:
            return self._finish(handle, entry)
        error = _library.wait(handle)
        # Not before: if Ctrl-C ended the wait, the runtime still uses this memory.
        self.pending.pop(handle, None)
        output = entry[0]
        if self._streams:
            self.follow(handle, output)
        if error is not None:
            raise error
        if output is entry[1]:
            for tensor in output if type(output) is list else (output,):
                self._framework.note_written(tensor)
        return tuple(output) if type(output) is list else output

    def _finish(self, handle, entry):
        outcome = _library.wait_result(handle, len(entry.inputs), entry.splits_count)
        self.pending.pop(handle, None)
        if self._streams:
            self.follow(handle)
        if outcome.error is not None:
            raise outcome.error
        tensors = [self._adopt(tensor, address, rows)
                   for tensor, (address, rows) in zip(entry.inputs, outcome.outputs)]
        if entry.splits_count:
            return tensors[0], self._framework.splits_to(outcome.received_splits)
        return tuple(tensors) if entry.grouped else tensors[0]

    def follow(self, handle, output=()):
        """The result is there for the stream in which the collective was started: another one that the caller works in
        now has to wait for it."""
        place = self._streams.pop(handle, None)
        if place is not None:
            self._framework.follow(*place, results=output if type(output) in (list, tuple) else (output,))

    def _adopt(self, tensor, address, rows):
        """A tensor over memory that the runtime made."""
        buffer = None
        if address:
            buffer = self._framework.adopt(tensor, address, rows * self._framework.bytes_of_row(tensor))
        return self._framework.from_memory(tensor, buffer, rows)
