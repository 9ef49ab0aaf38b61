"""Collectives in flight of the backend `hvd` of torch.distributed.

An Operation has the handle of the runtime and the tensors that it keeps alive. It ends once, in whichever thread comes first: one that
waits, or the completing thread, which completes those whose future was requested (DistributedDataParallel requests all) and those
that no thread waits for. A Work is the reference to it that c10d and scripts hold.
"""

import atexit
import bisect
import collections
import datetime
import queue
import sys
import threading
import time
import weakref

import torch
from torch._C._distributed_c10d import Work as _C10dWork

from horovod.common import _library

# c10d's kNoTimeout and kUnsetTimeout.
_NO_LIMIT = (datetime.timedelta(0), datetime.timedelta(milliseconds=-1))
# The runtime's own limit expires first: its message names the missing ranks.
GRACE_S = 10.0
_STOP_S = 5
# In place of a script that drops a Work, waits this long, once.
_DROPPED_MS = 10000


def seconds_of(timeout):
    """Of a timedelta of c10d; None if it sets no limit of its own."""
    if timeout is None or timeout in _NO_LIMIT:
        return None
    return timeout.total_seconds()


def deadline_of(limit_s):
    """When a wait that begins now is over in a group with this limit; None: it has none."""
    return None if limit_s is None else time.monotonic() + limit_s + GRACE_S


class Operation:
    """A collective of a group: its handle, what it keeps alive, and what is left to do once the runtime is done with it.

    Args:
        group: The backend that it belongs to; it has `describe`, `note_failure` and `forget_user`.
        number: Its sequence number in the group.
        what: What it is, for messages, such as 'allreduce'.
        handle: That of the runtime; None: it is done.
        outputs: What wait() is for: the tensors that a future gets.
        kept: Everything else that has to live until the runtime is done.
        finish: Called once it is done, with the outcome of _library.wait_result where `room` is set, else without arguments.
        room: None, or (outputs, splits) that the runtime gives.
        slots: The list or dict in which it occupies its name until it ends, at `number` modulo `names`. Works with the same one end in
            the order of their numbers (`lane`).
    """

    patience_ms = _DROPPED_MS  # total: how long drop() may still wait

    def __init__(self, group, number, what, handle, outputs, kept=None, finish=None, room=None, slots=None, names=1):
        self.group = group
        self.number = number
        self.what = what
        self.handle = handle
        self.outputs = outputs
        self.kept = kept
        self.finish = finish
        self.room = room
        self.error = None
        self.is_error_known = False  # the script has it, or will get it
        self.addresses = ()  # bytes of the memory it uses
        self._slots = slots
        self._slot = number % names
        if slots is not None:
            slots[self._slot] = self
        self.future = self._over = None
        self._is_future_set = False
        self.lock = threading.Lock()

    @property
    def lane(self):
        return self if self._slots is None else self._slots

    def wait(self, timeout=None):
        limit = seconds_of(timeout)
        if limit is None:
            self.end(deadline_of(self.group.limit_s), self.group.limit_s)
        else:
            self.end(time.monotonic() + limit, limit)
        if self.error is not None:
            self.is_error_known = True
            raise self.error

    def is_completed(self):
        if self.handle is None:
            return True
        if not self.lock.acquire(False):  # another thread waits for it
            return self.handle is None
        try:
            if self.handle is not None and _library.poll(self.handle):
                self._wait_locked(None, None)
        finally:
            self.lock.release()
        return self.handle is None

    def get_future(self):
        if self.future is None and self.handle is not None and _completer.is_this_thread():
            # A callback of another future, in the thread that completes this one: it may wait for it, or make others wait.
            try:
                self.end(deadline_of(self.group.limit_s), self.group.limit_s)
            except RuntimeError:  # it came too late, and the future has the error
                pass
        self.is_error_known = True
        with _futures:
            is_new = self.future is None
            if is_new:
                self._over = torch.futures.Future()
                # C++ would treat an exception set in a future as its value. One raised by a callback is an error there, too.
                self.future = self._over.then(lambda _: self._outcome())
            is_over = self.handle is None
        if is_over:
            self._set_future()
        elif is_new:
            _completer.add(self)
        return self.future

    def _outcome(self):
        if self.error is not None:
            raise self.error
        return self.outputs

    def drop(self):
        """Nobody can wait for it any more, so this does: what the script does next may read the result. Other backends finish meanwhile, more
        often than not. After _DROPPED_MS, which may be this rank's fault, the completing thread continues it."""
        if self.handle is not None and self.future is None:
            patience_ms = 0 if _completer.is_this_thread() else Operation.patience_ms
            try:
                is_over = self.end_within(patience_ms, None, None)
            except RuntimeError:  # stored in self.error
                is_over = True
            if not is_over:
                self.complete_later()
            if not is_over and patience_ms:
                Operation.patience_ms = 0
                self._warn('goes on, {:g} s after the script dropped its work without a wait(): what the script reads now may not be the '
                          'result. Keep what a call with async_op=True returns, and wait() for it.'.format(_DROPPED_MS / 1000))
        # After other errors the group is unusable, and each call reports why.
        if self.error is not None and not self.is_error_known and getattr(self.error, 'is_disagreement', True):
            self._warn('failed, and the script dropped its work without a wait(): {}'.format(self.error))

    def _warn(self, what):
        print('hvdrun: rank {}: {} #{} of {} {}'.format(self.group.world_rank(), self.what, self.number, self.group.describe(), what),
              file=sys.stderr)

    def complete_later(self):
        """In the completing thread."""
        if self.handle is not None:
            _completer.add(self)

    # ---- its end

    def end(self, deadline, limit):
        """Waits until it is over; afterwards `error` has the outcome. RuntimeError when the deadline passes: it is over then, too, and
        the runtime may still write to its memory."""
        if self.handle is None:
            return
        left = -1 if deadline is None else max(0.0, deadline - time.monotonic())
        if not self.lock.acquire(timeout=left):
            raise self._late(limit)
        try:
            if self.handle is not None:
                self._wait_locked(deadline, limit)
        finally:
            self.lock.release()

    def end_within(self, patience_ms, deadline, limit):
        """Waits for so long alone; whether it is over. Raises as end() does."""
        if self.handle is None:
            return True
        if not self.lock.acquire(timeout=patience_ms / 1000):  # another thread waits for it, and will complete it
            return self.handle is None
        try:
            return self.handle is None or self._wait_locked(deadline, limit, patience_ms)
        finally:
            self.lock.release()

    def _wait_locked(self, deadline, limit, patience_ms=None):
        """Whether it is over. False: after patience_ms, if they are given."""
        lib, handle = _library.lib(), self.handle
        room = None if self.room is None else _library.ResultRoom(*self.room)
        if room is not None:
            room.empty(*self.room)
        patient_until = None if patience_ms is None else time.monotonic() + patience_ms / 1000
        while True:
            slice_ms = _library.WAIT_SLICE_MS
            if patience_ms is not None:
                slice_ms = max(0, min(slice_ms, int((patient_until - time.monotonic()) * 1000 + 0.5)))
            if deadline is not None:
                slice_ms = max(0, min(slice_ms, int((deadline - time.monotonic()) * 1000) + 1))
            status = lib.hvd_wait(handle, slice_ms) if room is None else lib.hvd_wait_result(handle, slice_ms, room.ref)
            if status != _library.IN_PROGRESS:
                break
            if deadline is not None and time.monotonic() >= deadline:
                error = self._late(limit)
                self.group.abandon(self, (self.outputs, self.kept, room), error)
                self._complete(error, room)
                raise error
            if patience_ms is not None and time.monotonic() + 0.0005 >= patient_until:
                return False
        self._complete(None if status == _library.OK else _library.error(status), room)
        return True

    def _complete(self, error, room=None):
        if error is None and self.finish is not None:
            try:
                if room is None:
                    self.finish()
                else:
                    self.finish(room)
            except Exception as failure:  # the other ranks sent something unexpected
                error = failure
        self.finish = self.kept = None
        self.error = error
        if error is not None:
            self.group.note_failure(error)
        if self._slots is not None:  # before its completion is visible: the name is free
            self._slots[self._slot] = None
        with _futures:
            self.handle = None
            is_requested = self.future is not None
        if self.addresses:
            self.group.forget_user(self)
        if is_requested:
            self._set_future()

    def _set_future(self):
        """Callbacks of the future run in here, so no lock is held but that of a work that is over."""
        with _futures:
            if self._is_future_set:
                return
            self._is_future_set = True
        self._over.set_result(None)

    def _late(self, limit):
        sentence = ('{} #{} of {} has not ended within {:g} s on rank {}: other ranks of the group have not called it, or stopped in the '
                    'middle. hvdrun names them after --stall-check-warning-time-seconds; a longer limit is the argument timeout of '
                    'init_process_group and new_group.').format(self.what, self.number, self.group.describe(), limit, self.group.world_rank())
        return RuntimeError(sentence)


class Work(_C10dWork):
    """The reference to an operation that c10d and scripts hold.

    Args:
        operation: The operation.
        is_awaited: Whether its result matters to the rank: dropping it waits for it. False for messages that are sent.
    """

    def __init__(self, operation, is_awaited=True):
        _C10dWork.__init__(self)
        self.operation = operation
        self._is_awaited = is_awaited

    def __del__(self, is_finalizing=sys.is_finalizing):  # at interpreter exit the names of this module are gone
        operation = self.operation
        if is_finalizing() or operation.handle is None and operation.error is None:
            return
        if self._is_awaited:
            operation.drop()
        elif operation.future is None:
            operation.complete_later()

    @property
    def outputs(self):
        return self.operation.outputs

    def wait(self, timeout=None):
        self.operation.wait(timeout)
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self.operation.is_completed()

    def is_success(self):
        return self.is_completed() and self.operation.error is None

    def exception(self):
        if not self.is_completed():
            return None
        self.operation.is_error_known = True
        return self.operation.error

    def result(self):
        self.wait()
        return self.outputs

    def get_future(self):
        return self.operation.get_future()


class Works(_C10dWork):
    """Several of them as one, for calls that take lists."""

    def __init__(self, works, outputs=None):
        _C10dWork.__init__(self)
        self.works = works
        self.outputs = outputs if outputs is not None else [tensor for work in works for tensor in work.outputs]

    def wait(self, timeout=None):
        for work in self.works:
            work.wait(timeout)
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return all([work.is_completed() for work in self.works])

    def is_success(self):
        return all([work.is_success() for work in self.works])

    def exception(self):
        for work in self.works:
            error = work.exception()
            if error is not None:
                return error
        return None

    def result(self):
        self.wait()
        return self.outputs

    def get_future(self):
        outputs = self.outputs
        if not self.works:
            future = torch.futures.Future()
            future.set_result(outputs)
            return future
        return torch.futures.collect_all([work.get_future() for work in self.works]).then(
            lambda all_of_them: [part.value() for part in all_of_them.value()] and outputs)


_futures = threading.Lock()  # of the fields about futures


class _Completer:
    """The thread that completes operations whose futures the script has asked for, and those that it does not wait for.

    Operations that share a lane, such as the collectives of a group, end in the order of their numbers, which is that of all ranks. Between
    lanes there is no order: one may wait for what a rank does only once an operation of another lane is over.

    It is not the thread of the C ABI that calls `on_done`: a callback of a future may wait for other collectives or for the interpreter
    lock, and that thread must not block. Tried with two ranks on two busy cores, `on_done` came in about half the time where the ranks did
    nothing else, and no sooner where they computed meanwhile, which is what backward() does.
    """

    _LONE_MS = 20  # with one lane; how long another lane's operation that arrives in between waits
    _TURN_MS = 1  # with several
    _UNAWAITED_S = 0.02  # this thread takes over operations that no thread waits for by then

    def __init__(self):
        self._queue = queue.SimpleQueue()
        self._watched = collections.deque()  # (weak reference, since when)
        self._rests = True  # it sleeps until there is work
        self._thread = None
        self._lock = threading.Lock()

    def is_this_thread(self):
        return self._thread is not None and threading.get_ident() == self._thread.ident

    def add(self, operation):
        """It ends at the latest when the limit of its group has passed from now on."""
        self._begin()
        self._queue.put((operation, deadline_of(operation.group.limit_s)))

    def watch(self, operation):
        """As add(), once no thread waits for it for a while. Other backends also complete what a script starts without a wait."""
        self._watched.append((weakref.ref(operation), time.monotonic()))
        if self._rests:
            self._begin()
            self._queue.put(_LOOK)

    def _begin(self):
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='hvd-futures', daemon=True)
                self._thread.start()
                atexit.register(self._stop)

    def _stop(self):
        """Before the interpreter ends: a thread that comes back from C++ after that, from a callback as well, ends the process by
        std::terminate(). Operations that are not over by then are left."""
        self._queue.put(None)
        self._thread.join(_STOP_S)

    def _next(self, is_busy):
        """What has been added; _LOOK: nothing."""
        try:
            if is_busy:
                return self._queue.get(block=False)
            if self._watched:
                return self._queue.get(timeout=self._UNAWAITED_S)
        except queue.Empty:
            return _LOOK
        self._rests = True
        added = _LOOK if self._watched else self._queue.get()
        self._rests = False
        return added

    def _run(self):
        lanes = {}  # by what its operations have in common: [(number, turn, operation, deadline)], the next one first
        turn = 0
        while True:
            added = self._next(bool(lanes))
            if added is None:
                return
            while added is not _LOOK and added is not None:
                turn += 1
                self._insert(lanes, turn, *added)
                added = self._next(True)
            if added is None:
                return
            for operation in self._unawaited():
                turn += 1
                self._insert(lanes, turn, operation, deadline_of(operation.group.limit_s))
            operation = added = None
            if not lanes:
                continue
            patient = list(lanes)[turn % len(lanes)]
            turn += 1
            for key in list(lanes):
                patience_ms = 0 if key != patient else self._LONE_MS if len(lanes) == 1 else self._TURN_MS
                if self._end_next(lanes[key], patience_ms):
                    del lanes[key]

    @staticmethod
    def _insert(lanes, turn, operation, deadline):
        bisect.insort(lanes.setdefault(id(operation.lane), []), (operation.number, turn, operation, deadline))

    def _unawaited(self):
        """Takes those that no thread waits for, and forgets those that are over."""
        found, kept, now = [], [], time.monotonic()
        for _ in range(len(self._watched)):
            reference, since = self._watched.popleft()
            operation = reference()
            if operation is None or operation.handle is None or operation.future is not None:
                continue
            if now - since >= self._UNAWAITED_S and not operation.lock.locked():
                found.append(operation)
            else:
                kept.append((reference, since))
        self._watched.extendleft(reversed(kept))
        return found

    @staticmethod
    def _end_next(lane, patience_ms):
        """Ends those of a lane that are over; whether none is left."""
        while lane:
            _, _, operation, deadline = lane[0]
            try:
                if not operation.end_within(patience_ms, deadline, operation.group.limit_s):
                    return False
            except RuntimeError:  # it came too late, and its future has the error
                pass
            del lane[0]
            operation, patience_ms = None, 0
        return True


_LOOK = object()
_completer = _Completer()


def watch(operation):
    """Has the completing thread complete an operation that no thread waits for."""
    _completer.watch(operation)
