"""The `Work` objects of the backend `hvd` of torch.distributed: what a collective under way is for c10d.

A Work has the handle of the runtime and the tensors that it keeps alive. It ends once, in whichever thread comes first: the one that
waits, or the completing thread, which ends those whose future somebody has asked for (DistributedDataParallel asks for all).
"""

import atexit
import bisect
import datetime
import queue
import threading
import time

import torch
from torch._C._distributed_c10d import Work as _C10dWork

from horovod.common import _library

# c10d's kNoTimeout and kUnsetTimeout.
_NO_LIMIT = (datetime.timedelta(0), datetime.timedelta(milliseconds=-1))
# The runtime's own limit comes first: its sentence names the ranks that are missing.
GRACE_S = 10.0
_STOP_S = 5


def seconds_of(timeout):
    """Of a timedelta of c10d; None where it sets no limit of its own."""
    if timeout is None or timeout in _NO_LIMIT:
        return None
    return timeout.total_seconds()


def deadline_of(limit_s):
    """When a wait that begins now is over in a group with this limit; None: it has none."""
    return None if limit_s is None else time.monotonic() + limit_s + GRACE_S


class Work(_C10dWork):
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

    def __init__(self, group, number, what, handle, outputs, kept=None, finish=None, room=None, slots=None, names=1):
        _C10dWork.__init__(self)
        self.group = group
        self.number = number
        self.what = what
        self.handle = handle
        self.outputs = outputs
        self.kept = kept
        self.finish = finish
        self.room = room
        self.error = None
        self.addresses = ()  # of the memory that it uses
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

    # ---- what c10d and scripts call

    def wait(self, timeout=None):
        limit = seconds_of(timeout)
        if limit is None:
            self.end(deadline_of(self.group.limit_s), self.group.limit_s)
        else:
            self.end(time.monotonic() + limit, limit)
        if self.error is not None:
            raise self.error
        return True

    def synchronize(self):
        self.wait()

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

    def is_success(self):
        return self.is_completed() and self.error is None

    def exception(self):
        return self.error if self.is_completed() else None

    def result(self):
        self.wait()
        return self.outputs

    def get_future(self):
        if self.future is None and self.handle is not None and _completer.is_this_thread():
            # A callback of another future, in the thread that completes this one: it may wait for it, or have others wait.
            try:
                self.end(deadline_of(self.group.limit_s), self.group.limit_s)
            except RuntimeError:  # it is late, and the future has the error
                pass
        with _futures:
            is_new = self.future is None
            if is_new:
                self._over = torch.futures.Future()
                # C++ would take an exception that is set in a future for its value. One that a callback raises is an error there, too.
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
        if not self.lock.acquire(timeout=patience_ms / 1000):  # another thread waits for it, and will end it
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
        while True:
            slice_ms = _library.WAIT_SLICE_MS if patience_ms is None else patience_ms
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
            if patience_ms is not None:
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
            except Exception as failure:  # what the other ranks gave is not what was expected
                error = failure
        self.finish = self.kept = None
        self.error = error
        if error is not None:
            self.group.note_failure(error)
        if self._slots is not None:  # before anybody sees that it is over: the name is free
            self._slots[self._slot] = None
        with _futures:
            self.handle = None
            is_asked_for = self.future is not None
        if self.addresses:
            self.group.forget_user(self)
        if is_asked_for:
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
    """The thread that completes works whose futures the script has asked for.

    Works that share a lane, such as the collectives of a group, end in the order of their numbers, which is that of all ranks. Between
    lanes there is no order: one may wait for what a rank does only once a work of another lane is over.

    It is not the thread of the C ABI that calls `on_done`: a callback of a future may wait for other collectives or for the interpreter
    lock, and that thread must not block. Tried with two ranks on two busy cores, `on_done` came in about half the time where the ranks did
    nothing else, and no sooner where they computed meanwhile, which is what backward() does.
    """

    _LONE_MS = 20  # with one lane; a work of another one that comes in between waits for so long
    _TURN_MS = 1  # with several

    def __init__(self):
        self._queue = None
        self._thread = None
        self._lock = threading.Lock()

    def is_this_thread(self):
        return self._thread is not None and threading.get_ident() == self._thread.ident

    def add(self, work):
        """It ends at the latest when the limit of its group has passed from now on."""
        with self._lock:
            if self._queue is None:
                self._queue = queue.SimpleQueue()
                self._thread = threading.Thread(target=self._run, args=(self._queue,), name='hvd-futures', daemon=True)
                self._thread.start()
                atexit.register(self._stop)
        self._queue.put((work, deadline_of(work.group.limit_s)))

    def _stop(self):
        """Before the interpreter ends: a thread that comes back from C++ after that, from a callback as well, ends the process by
        std::terminate(). Works that are not over by then are left."""
        self._queue.put(None)
        self._thread.join(_STOP_S)

    @classmethod
    def _run(cls, works):
        lanes = {}  # by what its works have in common: [(number, turn, work, deadline)], the next one first
        turn = 0
        while True:
            try:
                while True:
                    added = works.get(block=not lanes)
                    if added is None:
                        return
                    work, deadline = added
                    turn += 1
                    bisect.insort(lanes.setdefault(id(work.lane), []), (work.number, turn, work, deadline))
            except queue.Empty:
                pass
            work = added = None
            patient = list(lanes)[turn % len(lanes)]
            turn += 1
            for key in list(lanes):
                patience_ms = 0 if key != patient else cls._LONE_MS if len(lanes) == 1 else cls._TURN_MS
                if cls._end_next(lanes[key], patience_ms):
                    del lanes[key]

    @staticmethod
    def _end_next(lane, patience_ms):
        """Ends those of a lane that are over; whether none is left."""
        while lane:
            _, _, work, deadline = lane[0]
            try:
                if not work.end_within(patience_ms, deadline, work.group.limit_s):
                    return False
            except RuntimeError:  # it is late, and its future has the error
                pass
            del lane[0]
            work, patience_ms = None, 0
        return True


_completer = _Completer()
