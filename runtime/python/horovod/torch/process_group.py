"""The backend `hvd` of torch.distributed: `init_process_group("hvd")` runs the collectives of DDP, FSDP and others over libhvd.so.

Registered when horovod.torch is imported, or by the entry point `torch.distributed.backends`. A group is a process set; its
collectives carry their number in the group as a name, so ranks that call different collectives get an error instead of a wrong sum. The
names are reused in turn, which keeps the table of names small and lets a repeated small collective use the runtime's fast path.
docs/torch-distributed.md lists what works.
"""

import math
import os
import sys
import threading

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as _c10d

from horovod.common import _library, registered
from horovod.common import _c10d as _versions
from horovod.torch import bucket_memory, framework, group_members, group_places, group_work, mpi_ops
from horovod.torch.framework import DTYPES, adapter
from horovod.torch.group_members import Members, address_of
from horovod.torch.group_places import Places
from horovod.torch.group_work import Operation, Work, Works, deadline_of, seconds_of, watch

NAME = 'hvd'
_OPERATION = 'torch'  # prefix of the runtime's names
_NAMES = 256
_KEPT_REQUESTS = 1024
_MEETING_MS = 2000
_END_MS = 10000  # how long a rank that leaves waits for the others, which may need it to join a new group
# A send of this size or less is a copy and completes at once, as in other backends, so that two ranks may send to each other first.
_BUFFERED_SEND_BYTES = 64 << 10

_Op = dist.ReduceOp.RedOpType if hasattr(dist.ReduceOp, 'RedOpType') else dist.ReduceOp
_OPS = {_Op.SUM: _library.SUM, _Op.AVG: _library.AVERAGE, _Op.MIN: _library.MIN, _Op.MAX: _library.MAX,
        _Op.PRODUCT: _library.PRODUCT}
_BITWISE = {_Op.BAND: torch.bitwise_and, _Op.BOR: torch.bitwise_or, _Op.BXOR: torch.bitwise_xor}

# A group that is not a Backend is a whole ProcessGroup, for the tensors of all devices.
_Base = _c10d.Backend if _versions.is_extensible(_c10d) else dist.ProcessGroup


# ---- the world


class _World:
    """The state shared by the groups of one init_process_group."""

    is_announced = False  # available through --torch-backend

    def __init__(self, store, rank, size, timeout_s):
        self.is_ours = not mpi_ops.is_initialized()
        self.groups = set()  # c10d references only the C++ part of a group, and would find none of its methods once this part is gone
        turn = 0
        if self.is_ours:
            places = Places(store, rank, size, address_of(store))
            turn = places.turn
            try:
                self._init(timeout_s)
            except BaseException:
                places.restore()
                raise
        if mpi_ops.size() != size:
            raise ValueError('the backend hvd needs a group of all ranks first, by init_process_group("hvd"): this group has {} ranks, the '
                             'world of hvd.init() {}. Call init_process_group("hvd") before hvd.init(), or start the script with '
                             '`hvdrun -np {} python ...`.'.format(size, mpi_ops.size(), size))
        ranks = mpi_ops.allgather(torch.tensor([rank]), name='torch.distributed.ranks').tolist()
        self.ranks = [ranks.index(number) for number in range(size)]  # of the runtime
        if rank == 0 and os.environ.get('HOROVOD_TORCH_BACKEND') == NAME and not _World.is_announced:
            _World.is_announced = True
            print('hvdrun: torch.distributed runs its CPU collectives over libhvd.so in the place of gloo (--torch-backend hvd).',
                  file=sys.stderr)
        unique = '{}.{}'.format(_library.lib().hvd_generation(), turn)
        self.members = Members(store, rank, size, self.ranks, unique)

    @staticmethod
    def _init(timeout_s):
        if timeout_s and 'HOROVOD_STALL_SHUTDOWN_TIME_SECONDS' not in os.environ:
            os.environ['HOROVOD_STALL_SHUTDOWN_TIME_SECONDS'] = str(int(math.ceil(timeout_s)))
            try:
                mpi_ops.init()
            finally:
                del os.environ['HOROVOD_STALL_SHUTDOWN_TIME_SECONDS']
        else:
            mpi_ops.init()

    def leave(self, is_intact=True):
        # Nothing needs this rank for new sets any more: the threads of all ranks have left the store before rank 0 stops its server, or
        # c10d prints a page for each that has not.
        is_met = is_intact and len(self.ranks) > 1 and mpi_ops.is_initialized() and self._meet('end', _END_MS)
        self.members.stop()
        if is_met:
            self._meet('gone', _MEETING_MS)
        if self.is_ours:
            mpi_ops.shutdown()
        self.members.await_end_of_server()

    @staticmethod
    def _meet(name, limit_ms):
        try:
            request = _library.Request(_library.BARRIER, '{}.{}'.format(_OPERATION, name), ())
            return _library.lib().hvd_wait(request.submit(), limit_ms) == _library.OK
        except (ValueError, RuntimeError):  # another rank has left
            return False


_world = None


def create(*arguments):
    """The backend of a group: c10d calls it on each member."""
    if len(arguments) == 4:  # before the class Backend
        store, rank, size, timeout = arguments
        return _make(store, rank, size, seconds_of(timeout), '0', [])
    options = arguments[0]
    if getattr(options, 'enable_reconfigure', False):
        raise NotImplementedError('the backend hvd has no init_process_group(enable_reconfigure=True), which leaves it to the script which '
                                  'ranks are members: hvdrun decides that. Start the script with `hvdrun --elastic`, which starts it again '
                                  'with the ranks that there are.')
    return _make(options.store, options.group_rank, options.group_size, seconds_of(options.timeout), str(options.group_id),
                 list(options.global_ranks_in_group))


def _make(store, rank, size, timeout_s, name, ranks):
    global _world
    is_world = not ranks
    if is_world and _world is not None:  # a version that does not call shutdown()
        _world.leave()
        _world = None
    if _world is None:
        is_world = True
        _world = _World(store, rank, size, timeout_s)
        ranks = ranks or list(range(size))
    ranks = [_world.ranks[number] for number in ranks or range(size)]
    if ranks != sorted(ranks):
        raise NotImplementedError('the backend hvd needs the ranks of a group in the order of hvd.rank(), but got {}.'.format(ranks))
    number = _world.members.id_of(ranks, rank == 0, timeout_s)
    return HvdBackend(rank, size, _world, number, ranks, name, timeout_s, is_world)


# ---- the collectives


def _flat(tensor):
    return (tensor.numel(),)


def _nbytes(tensor):
    return tensor.numel() * tensor.element_size()


def _in_a_row(tensors):
    """Whether they are consecutive in memory."""
    first = tensors[0]
    if not all([tensor.is_contiguous() and tensor.numel() == first.numel() and tensor.dtype == first.dtype for tensor in tensors]):
        return False
    step, begin = _nbytes(first), first.data_ptr()
    return step > 0 and all([tensor.data_ptr() == begin + step * index for index, tensor in enumerate(tensors)])


class HvdBackend(_Base):
    """One group. Its methods have the names of c10d, of old and new versions."""

    def __init__(self, rank, size, world, process_set, ranks, name, timeout_s, is_world):
        _Base.__init__(self, rank, size)
        self._rank, self._size = rank, size
        self._world = world
        self._set = process_set
        self._ranks = ranks  # of the runtime
        self._name = name
        self.limit_s = timeout_s
        self._is_world = is_world
        if _Base is not dist.ProcessGroup:
            world.groups.add(self)
        self._count = 0
        self._meetings = 0
        self._lock = threading.Lock()
        self._slots = [None] * _NAMES
        self._users = {}  # address -> the last collective in flight that uses the memory there
        self._names = ['{}#{}'.format(name, number) for number in range(_NAMES)]
        self._full_names = ['{}.{}'.format(_OPERATION, text).encode() for text in self._names]
        self._requests = {}
        self._failure = None
        self._abandoned = []
        self._sent = []  # copies that no caller waits for
        self._pairs = {}  # (source, destination, tag) of messages -> [how many there were, {slot: work}]
        self._coalesced = None
        self._run = {collective: _library.runner(torch.Tensor, collective, _OPERATION) for collective in (
            _library.ALLREDUCE, _library.BROADCAST)}
        self._start = {collective: _library.runner(torch.Tensor, collective, _OPERATION, 0) for collective in self._run}

    # ---- used by works

    def describe(self):
        return 'group {} of the backend hvd, ranks {}'.format(self._name, self._ranks)

    def world_rank(self):
        return self._ranks[self._rank]

    def note_failure(self, error):
        if not getattr(error, 'is_disagreement', True):
            self._failure = self._failure or error

    def abandon(self, work, memory, error):
        self._abandoned.append((work, memory))  # the runtime may still write there
        self._failure = self._failure or error

    # ---- parts

    def _next(self):
        """The number of the next collective; its name is free then."""
        self._check_usable()
        with self._lock:
            number = self._count
            self._count += 1
        self._await_slot(self._slots[number % _NAMES])
        return number

    def _check_usable(self):
        if self._failure is not None:
            raise RuntimeError('{} cannot be used any more: {}'.format(self.describe(), self._failure))

    def _await_slot(self, before):
        """Waits for the work that occupies a name, if there is one."""
        if before is not None:
            before.end(deadline_of(self.limit_s), self.limit_s)

    def _await_users(self, addresses):
        """Waits for collectives in flight that use the same memory: each of them sees what those before it have left, as on a stream of
        NCCL. Identified by the address of the memory."""
        for address in addresses:
            before = self._users.get(address)
            if before is not None:
                self._await_slot(before)

    def forget_user(self, work):
        for address in work.addresses:
            if self._users.get(address) is work:
                self._users.pop(address, None)

    def _use(self, work, addresses):
        work.addresses = addresses
        for address in addresses:
            if address:
                self._users[address] = work
        if work.handle is None:  # over in the meantime
            self.forget_user(work)

    def _begin(self, what, collective, parts, addresses, outputs, kept, op=0, root=0, splits=None, finish=None, room=None, number=None):
        """Starts a collective of the group. number: what _next() returned for it, if it was called."""
        if number is None:
            number = self._next()
        self._await_users(addresses)
        operation = self._submit(what, collective, parts, addresses, outputs, kept, op, root, splits, finish, room, number,
                                 self._full_names[number % _NAMES], self._set, self._slots)
        self._use(operation, addresses)
        return self._work(operation)

    def _work(self, operation, is_awaited=True):
        """What the caller gets for it."""
        watch(operation)
        if self._coalesced is None:
            return Work(operation, is_awaited)
        self._coalesced.append(Work(operation, is_awaited))
        return Work(operation, False)

    def _submit(self, what, collective, parts, addresses, outputs, kept, op, root, splits, finish, room, number, name, process_set, slots):
        key = (collective, op, root, process_set, parts, None if splits is None else tuple(splits))
        request = self._requests.pop(key, None)
        if request is None:
            request = _library.Request(collective, '-', parts, op, root, process_set, 1.0, 1.0, splits)
        request.rename(name)
        handle = request.submit(*addresses)
        if len(self._requests) > _KEPT_REQUESTS:
            self._requests.clear()
        self._requests[key] = request
        return Operation(self, number, what, handle, outputs, kept, finish, room, slots, _NAMES)

    def _done(self, what, outputs):
        return Work(Operation(self, self._count, what, None, outputs))

    @staticmethod
    def _only(what, tensors):
        if len(tensors) != 1:
            raise ValueError('{} of the backend hvd takes one tensor a rank, but got {}.'.format(what, len(tensors)))
        return tensors[0]

    @staticmethod
    def _code(what, tensor):
        """The runtime's code of its type; ValueError."""
        if tensor.layout is not torch.strided or not tensor.is_cpu:
            raise ValueError('{} of the backend hvd takes dense tensors on the CPU, but got one of layout {} on {}; for GPUs use '
                             'init_process_group("cpu:hvd,cuda:nccl").'.format(what, tensor.layout, tensor.device))
        code = DTYPES.get(tensor.dtype)
        if code is None:
            raise ValueError('{} of the backend hvd does not know the type {}.'.format(what, tensor.dtype))
        return code

    def _moved(self, what, tensor):
        """A contiguous tensor with these values for collectives that only move them: of any type."""
        if tensor.is_cpu and tensor.layout is torch.strided and tensor.dtype not in DTYPES:
            tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor.view(torch.uint8)
        self._code(what, tensor)
        return _resolved(tensor)

    def _op(self, what, options):
        op = getattr(options, 'reduceOp', None)
        if op is None:
            return _library.SUM
        op = getattr(op, 'op', op)
        code = _OPS.get(op)
        if code is None and op not in _BITWISE:
            raise NotImplementedError('{} of the backend hvd has no reduction {}; it has SUM, AVG, MIN, MAX, PRODUCT, and BAND, BOR and '
                                      'BXOR for all_reduce and reduce.'.format(what, op))
        return op if code is None else code

    def _direct(self, collective, what, tensor, op, root, options):
        """(work, number) of a collective of one tensor in place by the function in C. Where only a request can do it, work is None, and
        number the one that the request has to have: another thread may have the next one by then. None: it has none yet."""
        is_blocking = not getattr(options, 'asyncOp', True)
        function = (self._run if is_blocking else self._start)[collective]
        if function is None or self._coalesced is not None or not adapter.is_plain(tensor, True) or not tensor.is_cpu or (
                not tensor.is_contiguous() or tensor.dtype not in DTYPES or not tensor.numel()):
            return None, None
        tensor = tensor if type(tensor) is torch.Tensor else tensor.detach()
        number = self._next()
        if self._users:
            self._await_users((tensor.data_ptr(),))
        handle = function(tensor, tensor, self._names[number % _NAMES], op, root, self._set, 1.0, 1.0)
        if handle is None:
            return None, number
        if handle < 0:
            error = _library.error(-handle)
            self.note_failure(error)
            raise error
        operation = Operation(self, number, what, handle or None, [tensor], tensor, slots=self._slots if handle else None, names=_NAMES)
        if handle:
            self._use(operation, (tensor.data_ptr(),))
            watch(operation)
        return Work(operation), number

    def _in_place(self, collective, what, tensors, op, root, number=None):
        """An allreduce or broadcast of one or more tensors, which get the result."""
        uses, copies = [], []
        for tensor in tensors:
            use = self._moved(what, tensor) if collective == _library.BROADCAST else tensor
            self._code(what, use)
            use = _resolved(use)
            uses.append(use)
            if use.data_ptr() != tensor.data_ptr() or use.is_contiguous() != tensor.is_contiguous():
                copies.append((tensor, use))
        parts = tuple([(DTYPES[use.dtype], tuple(use.shape)) for use in uses])
        addresses = []
        for use in uses:
            addresses += (use.data_ptr(), use.data_ptr())

        def finish():
            for tensor, use in copies:
                tensor.detach().copy_(torch.view_as_complex(use) if tensor.is_complex() else use)

        return self._begin(what, collective, parts, addresses, list(tensors), uses, op, root, finish=finish if copies else None,
                           number=number)

    def _gathered(self, what, tensor):
        """(work, memory): all ranks' values of tensors of equal size, consecutively."""
        use = self._moved(what, tensor)
        memory = torch.empty(self._size * use.numel(), dtype=use.dtype, device='cpu')
        return use, memory

    # ---- allreduce and its like

    def allreduce(self, tensors, opts=None):
        tensor = self._only('allreduce', tensors)
        op = self._op('allreduce', opts)
        if tensor.layout is not torch.strided:
            return self.allreduce_sparse(tensors, opts)
        if type(op) is not int:
            return self._bitwise('allreduce', tensor, tensor, op)
        bucket_memory.move_if_bucket(tensor)
        work, number = self._direct(_library.ALLREDUCE, 'allreduce', tensor, op, 0, opts)
        return work or self._in_place(_library.ALLREDUCE, 'allreduce', [tensor], op, 0, number)

    def allreduce_coalesced(self, tensors, opts=None):
        op = self._op('allreduce_coalesced', opts)
        if type(op) is not int:
            return Works([self._bitwise('allreduce_coalesced', tensor, tensor, op) for tensor in tensors])
        return self._in_place(_library.ALLREDUCE, 'allreduce_coalesced', tensors, op, 0)

    def allreduce_sparse(self, tensors, opts=None):
        """Sums sparse tensors: gathers indices and values of all ranks."""
        tensor = self._only('allreduce', tensors)
        if self._op('allreduce', opts) != _library.SUM or tensor.layout is not torch.sparse_coo:
            raise NotImplementedError('allreduce of the backend hvd sums sparse COO tensors, and has nothing else for sparse ones.')
        own = tensor.coalesce()
        indices, values = own.indices().t().contiguous(), own.values().contiguous()
        counts = torch.empty(self._size, dtype=torch.int64)
        self._single('allreduce', counts, torch.tensor([values.shape[0]])).wait()
        all_indices = torch.empty((int(counts.sum()), indices.shape[1]), dtype=indices.dtype)
        all_values = torch.empty((int(counts.sum()),) + tuple(values.shape[1:]), dtype=values.dtype)
        parts = tuple([(self._code('allreduce', part), tuple(part.shape)) for part in (indices, values)])

        def finish():
            total = torch.sparse_coo_tensor(all_indices.t(), all_values, tensor.shape).coalesce()
            with torch.no_grad():
                tensor.copy_(total)  # not into tensor.detach(), whose indices and values become its own once they change

        return self._begin('allreduce', _library.ALLGATHER, parts, (
            indices.data_ptr(), all_indices.data_ptr(), values.data_ptr(), all_values.data_ptr()), [tensor],
            (indices, values), finish=finish)

    def _bitwise(self, what, tensor, output, op):
        use, memory = self._gathered(what, tensor)
        rows = memory.view(self._size, -1)

        def finish():
            result = rows[0]
            for row in rows[1:]:
                result = _BITWISE[op](result, row)
            output.detach().copy_(result.view(output.shape))

        return self._begin(what, _library.ALLGATHER, ((DTYPES[use.dtype], (1, use.numel())),), (use.data_ptr(), memory.data_ptr()),
                           [output], use, finish=finish)

    def reduce(self, tensors, opts=None):
        tensor = self._only('reduce', tensors)
        op = self._op('reduce', opts)
        output = tensor if opts.rootRank == self._rank else torch.empty_like(tensor)
        if type(op) is not int:
            return self._bitwise('reduce', tensor, output, op)
        self._code('reduce', tensor)
        use = _resolved(tensor)
        memory = torch.empty(use.shape, dtype=use.dtype)
        finish = (lambda: output.detach().copy_(memory)) if output is tensor else None
        return self._begin('reduce', _library.ALLREDUCE, ((DTYPES[use.dtype], tuple(use.shape)),), (use.data_ptr(), memory.data_ptr()),
                           [tensor], (use, memory), op, finish=finish)

    def broadcast(self, tensors, opts=None):
        tensor = self._only('broadcast', tensors)
        root = self._ranks[opts.rootRank]
        work, number = self._direct(_library.BROADCAST, 'broadcast', tensor, 0, root, opts)
        return work or self._in_place(_library.BROADCAST, 'broadcast', [tensor], 0, root, number)

    def barrier(self, opts=None):
        """It also completes the group's earlier collectives."""
        for operation in [slot for slot in self._slots if slot is not None]:
            self._await_slot(operation)
        return self._begin('barrier', _library.BARRIER, (), (), [], None)

    def monitored_barrier(self, opts=None, wait_all_ranks=False):
        """Over the store, so that missing ranks leave no collective pending: the group stays usable."""
        self._check_usable()
        with self._lock:
            number = self._meetings
            self._meetings += 1
        limit = seconds_of(getattr(opts, 'timeout', None)) or self.limit_s
        self._world.members.meet('{}#{}'.format(self._name, number), self._rank, self._size, limit, 'monitored_barrier #{} of {}'.format(
            number, self.describe()))

    # ---- gathering

    def _single(self, what, output, tensor):
        """Every rank's tensor, of equal size, consecutively in the output."""
        use = self._moved(what, tensor)
        if output.numel() != self._size * tensor.numel() or output.dtype != tensor.dtype:
            raise ValueError('{} of {} elements of {} on {} ranks needs an output of {} of them, but got {} of {}.'.format(
                what, tensor.numel(), tensor.dtype, self._size, self._size * tensor.numel(), output.numel(), output.dtype))
        memory, finish = output, None
        if not output.is_contiguous() or output.is_neg() or output.is_conj():
            memory = torch.empty(output.shape, dtype=output.dtype)
            finish = lambda: output.detach().copy_(memory)  # noqa: E731
        # Rows of one, so that ranks with other sizes get an error.
        return self._begin(what, _library.ALLGATHER, ((DTYPES[use.dtype], (1, use.numel())),), (use.data_ptr(), memory.data_ptr()), [output],
                           (use, memory), finish=finish)

    def allgather(self, output_lists, tensors, opts=None):
        return self._into_list('allgather', self._only('allgather', output_lists), self._only('allgather', tensors))

    def _into_list(self, what, outputs, tensor):
        if len(outputs) != self._size:
            raise ValueError('{} needs a list of {} tensors, one for each rank, but got {}.'.format(what, self._size, len(outputs)))
        if any([output.dtype != tensor.dtype for output in outputs]):
            raise ValueError('{} needs outputs of the type of its input, {}.'.format(what, tensor.dtype))
        if any([output.numel() != tensor.numel() for output in outputs]):
            raise ValueError('{} of the backend hvd needs tensors of equal size on all ranks; got outputs of {} elements for an input of {}.'
                             .format(what, [output.numel() for output in outputs], tensor.numel()))
        use, memory = self._gathered(what, tensor)
        to, finish = memory, None
        if _in_a_row(outputs):
            to = outputs[0]
        else:
            def finish():
                self._spread(memory, outputs)
        return self._begin(what, _library.ALLGATHER, ((DTYPES[use.dtype], (1, use.numel())),), (use.data_ptr(), to.data_ptr()),
                           list(outputs), (use, memory, outputs), finish=finish)

    @staticmethod
    def _spread(memory, outputs):
        """Copies consecutive parts into the outputs."""
        begin = 0
        whole = memory.view(torch.uint8) if memory.dtype != outputs[0].dtype else memory
        for output in outputs:
            count = _nbytes(output) if whole is not memory else output.numel()
            part = whole[begin:begin + count]
            begin += count
            output.detach().copy_((part if whole is memory else part.view(output.dtype)).view(output.shape))

    def all_gather_single(self, output, tensor, opts=None):
        return self._single('all_gather_single', output, tensor)

    _allgather_base = all_gather_single

    def allgather_coalesced(self, output_lists, tensors, opts=None):
        if len(output_lists) != self._size or any([len(outputs) != len(tensors) for outputs in output_lists]):
            raise ValueError('allgather_coalesced needs {} lists, one for each rank, of {} tensors.'.format(self._size, len(tensors)))
        outputs_of = zip(*output_lists)  # unlike in allgather, a list belongs to one rank
        return Works([self._into_list('allgather_coalesced', list(outputs), tensor) for outputs, tensor in zip(outputs_of, tensors)])

    def all_gather_single_coalesced(self, outputs, tensors, opts=None):
        return Works([self._single('all_gather_single_coalesced', output, tensor) for output, tensor in zip(outputs, tensors)])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    # ---- all to all

    def _rows(self, what, tensor, send, outputs, receive, result):
        """An alltoall of rows. send: elements to each rank. receive: elements expected from each, checked when they are there."""
        use = self._moved(what, tensor).view(-1)
        factor = use.numel() // tensor.numel() if tensor.numel() else 1
        row_bytes = use.element_size()
        factor_out = 1
        for output in outputs:
            if output.dtype not in DTYPES:
                factor_out = 2 if output.is_complex() else output.element_size()

        def finish(room):
            (address, rows), = [(output.data, shape[0]) for output, shape in room.each]
            memory = registered.adopt(address, rows * row_bytes) if address else None
            got = room.splits(self._size)
            expected = [count * factor_out for count in receive]
            if list(got) != expected:
                raise RuntimeError('{} of {}: rank {} expected {} elements from the ranks, but they sent {}.'.format(
                    what, self.describe(), self._rank, expected, list(got)))
            if memory is not None:
                self._spread(torch.frombuffer(memory, dtype=use.dtype, count=rows), outputs)

        return self._begin(what, _library.ALLTOALL, ((DTYPES[use.dtype], (use.numel(),)),), (use.data_ptr(), None), result, use,
                           splits=[count * factor for count in send], finish=finish, room=(1, self._size))

    def all_to_all_single(self, output, tensor, output_splits=None, input_splits=None, opts=None):
        what = 'all_to_all_single'
        counts = []
        for given, of in ((input_splits, tensor), (output_splits, output)):
            rows = of.shape[0] if of.dim() else 0
            if not given and rows % self._size:
                raise ValueError('{}: {} rows cannot be split equally between {} ranks.'.format(what, rows, self._size))
            given = given or [rows // self._size] * self._size
            if sum(given) != rows or len(given) != self._size:
                raise ValueError('{}: split sizes {} do not sum up to the {} rows of the tensor, one for each of {} ranks.'.format(
                    what, list(given), rows, self._size))
            counts.append([count * (of.numel() // rows if rows else 0) for count in given])
        if output.dtype != tensor.dtype:
            raise ValueError('{}: the output is of {}, the input of {}.'.format(what, output.dtype, tensor.dtype))
        return self._rows(what, tensor, counts[0], [output] if output.numel() else [], counts[1], [output])

    alltoall_base = all_to_all_single

    def alltoall(self, outputs, tensors, opts=None):
        if len(outputs) != self._size or len(tensors) != self._size:
            raise ValueError('alltoall needs lists of {} tensors, one for each rank.'.format(self._size))
        whole = torch.cat([self._moved('alltoall', tensor).reshape(-1) for tensor in tensors])
        send = [self._moved('alltoall', tensor).numel() for tensor in tensors]
        return self._rows('alltoall', whole, send, outputs, [output.numel() for output in outputs], list(outputs))

    def gather(self, output_lists, tensors, opts=None):
        tensor = self._only('gather', tensors)
        outputs = self._only('gather', output_lists) if opts.rootRank == self._rank else []
        send, receive = [0] * self._size, [0] * self._size
        send[opts.rootRank] = tensor.numel()
        if opts.rootRank == self._rank:
            if len(outputs) != self._size:
                raise ValueError('gather needs a list of {} tensors on its destination, but got {}.'.format(self._size, len(outputs)))
            receive = [output.numel() for output in outputs]
        return self._rows('gather', tensor, send, outputs, receive, list(outputs))

    def scatter(self, outputs, input_lists, opts=None):
        output = self._only('scatter', outputs)
        send, receive = [0] * self._size, [0] * self._size
        receive[opts.rootRank] = output.numel()
        whole = torch.empty(0, dtype=output.dtype)
        if opts.rootRank == self._rank:
            tensors = self._only('scatter', input_lists)
            if len(tensors) != self._size:
                raise ValueError('scatter needs a list of {} tensors on its source, but got {}.'.format(self._size, len(tensors)))
            whole = torch.cat([tensor.reshape(-1) for tensor in tensors])
            send = [tensor.numel() for tensor in tensors]
        return self._rows('scatter', whole, send, [output], receive, [output])

    # ---- reduce and scatter

    def reduce_scatter_single(self, output, tensor, opts=None):
        what = 'reduce_scatter_single'
        op = self._op(what, opts)
        self._code(what, tensor)
        if tensor.numel() != self._size * output.numel() or output.dtype != tensor.dtype:
            raise ValueError('{} of {} elements of {} on {} ranks needs an output of a share of it, but got {} of {}.'.format(
                what, tensor.numel(), tensor.dtype, self._size, output.numel(), output.dtype))
        use, memory = _resolved(tensor), output if output.is_contiguous() else torch.empty(output.shape, dtype=output.dtype)
        finish = None if memory is output else lambda: output.detach().copy_(memory)
        if type(op) is int and op in (_library.SUM, _library.AVERAGE):
            return self._begin(what, _library.REDUCESCATTER, ((DTYPES[use.dtype], (self._size, output.numel())),),
                               (use.data_ptr(), memory.data_ptr()), [output], (use, memory), op, finish=finish)
        if type(op) is not int:
            raise NotImplementedError('{} of the backend hvd has no bitwise reduction; use all_reduce.'.format(what))
        whole = torch.empty(use.numel(), dtype=use.dtype)

        def share():
            output.detach().copy_(whole.view(self._size, -1)[self._rank].view(output.shape))

        return self._begin(what, _library.ALLREDUCE, ((DTYPES[use.dtype], (use.numel(),)),), (use.data_ptr(), whole.data_ptr()), [output],
                           (use, whole), op, finish=share)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs, tensors, opts=None):
        return Works([self.reduce_scatter_single(output, tensor, opts) for output, tensor in zip(outputs, tensors)])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(self, outputs, input_lists, opts=None):
        output, tensors = self._only('reduce_scatter', outputs), self._only('reduce_scatter', input_lists)
        if len(tensors) != self._size or any([tensor.numel() != output.numel() for tensor in tensors]):
            raise ValueError('reduce_scatter of the backend hvd needs {} inputs of the size of the output.'.format(self._size))
        return self.reduce_scatter_single(output, torch.cat([tensor.reshape(-1) for tensor in tensors]), opts)

    # ---- from one rank to another

    def _message(self, what, tensor, peer, source, tag):
        """A broadcast in the set of the two ranks, under a name of their own."""
        if peer == self._rank or not 0 <= peer < self._size:
            raise ValueError('{} of rank {} of {} cannot reach rank {}.'.format(what, self._rank, self._size, peer))
        self._check_usable()
        pair = sorted((self._ranks[peer], self.world_rank()))
        process_set = self._world.members.id_of(pair, True, self.limit_s)
        destination = peer if source == self._rank else self._rank
        with self._lock:
            messages = self._pairs.setdefault((source, destination, tag), [0, {}])
            number = messages[0]
            messages[0] += 1
        slots = messages[1]
        self._await_slot(slots.get(number % _NAMES))
        name = '{}.{}.{}>{}.{}#{}'.format(_OPERATION, self._name, source, destination, tag, number % _NAMES).encode()
        use = self._moved(what, tensor)
        back = None
        if what == 'recv' and use.data_ptr() != tensor.data_ptr():
            def back():
                tensor.detach().copy_(torch.view_as_complex(use) if tensor.is_complex() else use)
        return self._work(self._submit(what, _library.BROADCAST, ((DTYPES[use.dtype], _flat(use)),), (use.data_ptr(), use.data_ptr()), [tensor],
                                       use, 0, self._ranks[source], None, back, None, number, name, process_set, slots), what == 'recv')

    def send(self, tensors, dst, tag=0):
        tensor = self._only('send', tensors)
        self._sent = [work for work in self._sent if not work.is_completed()]
        if _nbytes(tensor) > _BUFFERED_SEND_BYTES:
            return self._message('send', tensor, dst, self._rank, tag)
        self._sent.append(self._message('send', tensor.detach().clone(), dst, self._rank, tag))
        return self._done('send', [tensor])

    def recv(self, tensors, src, tag=0):
        return self._message('recv', self._only('recv', tensors), src, src, tag)

    def recv_anysource(self, tensors, tag=0):
        raise NotImplementedError('recv of the backend hvd needs the rank of the source (src=...).')

    # ---- several calls as one

    def start_coalescing(self, *_):
        self._coalesced = []

    def end_coalescing(self, *_):
        works, self._coalesced = self._coalesced or [], None
        return Works(works)

    _start_coalescing, _end_coalescing = start_coalescing, end_coalescing

    # ---- the group itself

    def getBackendName(self):
        return NAME

    name = getBackendName

    @property
    def supports_splitting(self):
        return True

    @property
    def supports_coalescing(self):
        return False

    # C++ calls these by name, and the methods of the class Backend call C++ again.
    supports_reconfigure = supports_shrinking = supports_window = _supports_time_estimate = False

    @property
    def options(self):
        return _c10d.Backend.Options(NAME)

    def split(self, store, ranks, opts=None):
        if self._rank not in ranks:
            return None
        members = [self._ranks[rank] for rank in ranks]
        if members != sorted(members):
            raise NotImplementedError('the backend hvd needs the ranks of a group in the order of hvd.rank(), but got {}.'.format(members))
        number = self._world.members.id_of(members, self._rank == ranks[0], self.limit_s)
        self._splits = getattr(self, '_splits', 0) + 1
        name = '{}/{}:{}'.format(self._name, self._splits, '.'.join([str(rank) for rank in ranks]) if len(ranks) < 64 else ranks[0])
        return HvdBackend(ranks.index(self._rank), len(ranks), self._world, number, members, name, self.limit_s, False)

    def perform_nocolor_split(self, *_):
        """Nothing to do if a rank is not a member."""

    def eager_connect_single_device(self, *_):
        """Ranks are connected already."""

    def supports_tensor_alloc(self, device):
        return isinstance(device, torch.device) and device.type == 'cpu'  # C++ uses a number, and cannot get one from Python

    def allocate_tensor(self, size, *, dtype, device):
        """A tensor in registered memory, in which collectives work without a copy."""
        nbytes = size * torch.empty(0, dtype=dtype).element_size()
        memory = registered.allocate(nbytes)
        if memory is None:
            return torch.empty(size, dtype=dtype, device=device)
        return torch.frombuffer(memory, dtype=dtype, count=size)

    def set_timeout(self, timeout):
        self.limit_s = seconds_of(timeout)

    def _get_sequence_number_for_group(self):
        return self._count

    def _set_sequence_number_for_group(self):
        """Numbers begin at 0 on all ranks."""

    def _flush(self):
        for work in self._sent:
            try:
                work.wait()
            except RuntimeError:
                pass  # the rank that should have received it has the error
        self._sent = []

    def shutdown(self):
        global _world
        is_intact = self._failure is None
        if is_intact:
            self._flush()
        self._failure = self._failure or RuntimeError('destroy_process_group() has ended it')
        self._world.groups.discard(self)
        if self._is_world and _world is self._world:
            _world = None
            self._world.leave(is_intact)

    if _Base is dist.ProcessGroup:  # destroy_process_group() does not notify a group that is not a Backend, and forgets it
        def __del__(self, is_finalizing=sys.is_finalizing):  # at interpreter exit the names of this module are gone
            if self._is_world and not is_finalizing():
                self.shutdown()

    def abort(self):
        if self._is_world:
            _library.give_up()
        self._failure = self._failure or RuntimeError('abort() has ended it')


def _resolved(tensor):
    """A contiguous tensor with these values in its memory; the tensor itself if it is contiguous."""
    return tensor.resolve_neg().resolve_conj().contiguous()


_versions.hide_from_dynamo(torch._C, [
    sys.modules[__name__], _library, registered, bucket_memory, framework, group_members, group_places, group_work, mpi_ops])
