"""Votes of the ranks about the gradients of one optimizer, so that each rank knows which ones all have computed.

In a round every rank of the set casts one vote, and all see the same outcome. A rank votes

    BACKWARD  at the end of a backward() that has computed gradients: these are in flight
    STEP      in step() or synchronize(): it sends zeros for the gradients that only others have
    DROP      to forget the gradients of this step
    NO        while it waits in another call for other ranks, which may be waiting for its vote: it has nothing to combine

A vote is a row of integers, the outcome their minimum over the ranks. A rank that has joined takes no part in a minimum.
"""

import array
import threading
import weakref
import zlib

from horovod.common import _library, _native, _waiting
from horovod.common.exceptions import HorovodInternalError

BACKWARD, STEP, DROP, NO = range(4)

_rows = {}  # handle -> the vote in use by the runtime, even if the optimizer is gone
_MOST_ROWS = 64  # none of which is done

_LIMIT = 1 << 62
_HEAD = 12
# Rounds in which a rank has to vote NO before the others continue without it. One is enough if it waits in a call that all ranks count,
# has ended as many of them as the others, and there are no other process sets: that call needs the others. A few if it waits for
# another optimizer, or polls. Otherwise it may wait in a call that the others have ended already, or for ranks of another process set,
# and comes by itself.
_AT_ONCE, _SOON, _LATE = 1, 5, 50
# Columns of the head; each of the others is the negative of its predecessor, so that its minimum gives the maximum.
_STEP, _NAMES, _CALLS, _ALL_AT_STEP, _NONE_DROPS, _ALL_DROP, _PATIENCE, _NO_VETO = 0, 2, 4, 6, 7, 8, 9, 10


class Outcome:
    """The outcome of a round."""

    __slots__ = ('all_at_step', 'all_drop', 'has_veto', 'patience', 'alike', 'agreed', 'present')

    def __init__(self, row, count, alike):
        self.all_at_step = row[_ALL_AT_STEP] == 1
        self.all_drop = row[_ALL_DROP] == 1
        self.has_veto = row[_NO_VETO] == 0
        # How many rounds a rank has to veto before this one continues without it.
        self.patience = row[_PATIENCE] if row[_CALLS] == -row[_CALLS + 1] else _LATE
        self.alike = alike  # this rank's vote was the vote of all
        self.agreed = row[_HEAD:_HEAD + count]  # per gradient: 1 if no rank will add to what it has
        self.present = row[_HEAD + count:]  # 0 if no rank has one, else -1, or -1 - sparse dimensions


class _Seat:
    """The name of the collectives for the rounds of one optimizer in one world."""

    __slots__ = ('name', 'outstanding')

    def __init__(self, name, number):
        self.name = name if number == 0 else '{}/{}'.format(name, number + 1)
        self.outstanding = None  # the handle of a vote whose outcome has not been waited for


class _Seats:
    """The seats of optimizers with the same first parameter, in order of first use, which is the same on all ranks. Which of
    them are still alive is not, since the garbage collector frees most of them."""

    _of_parameters = {}  # (id of a parameter, number of the process set) -> (weak reference to it, _Seats)

    def __init__(self, generation):
        self.generation = generation
        self._acquired = 0
        self._next = None

    @classmethod
    def of(cls, parameter, process_set):
        generation = _library.lib().hvd_generation()
        key = (id(parameter), process_set.process_set_id)
        reference, seats = cls._of_parameters.get(key, (None, None))
        if seats is None or reference() is not parameter or seats.generation != generation:
            seats = cls(generation)
            cls._of_parameters[key] = (weakref.ref(parameter, lambda _: cls._of_parameters.pop(key, None)), seats)
        return seats

    def coming(self, name):
        """The seat of the next optimizer to be used."""
        if self._next is None:
            self._next = _Seat(name, self._acquired)
        return self._next

    def acquire(self, name):
        seat = self.coming(name)
        self._acquired += 1
        self._next = None
        return seat


class Agreement:
    """The rounds of one optimizer. place(): its first parameter, and the name of its collectives in this world."""

    def __init__(self, place, process_set):
        self.thread = threading.get_ident()  # which trains
        self.is_busy = False  # in a backward() or a round of this optimizer
        self._place = place
        self._seat = self._seats = None  # when the optimizer has been used in this world
        self._process_set = process_set
        self.is_refused = False  # the ranks do not act alike, so some may wait for what others never submit
        self._members = self._plan = ()
        self._request = None
        self._described = None
        self._row = self._mine = array.array('q')  # in flight, or the outcome, and what this rank sent
        self._generation = None
        self._joins = self._steps = 0
        self._calls_before = 0  # when the ranks began to count alike: not in each step, which they may begin before or after a call
        self.is_complete = False  # all gradients of this step are combined
        self.unfinished = None  # the vote of begin(), until end() has finished: a signal handler may have interrupted it
        _waiting.add(self)

    def set_members(self, names, plan):
        """plan: the names again, and which of them are exchanged together, for the runtime to compare."""
        self._members, self._plan = tuple(names), tuple(plan)
        self._is_seat_known = False  # it belongs to the first one
        self._names_hash = zlib.crc32('\n'.join(self._members).encode('utf-8', 'replace'))

    def begin_step(self):
        self.thread = threading.get_ident()
        self._steps += 1
        self.is_complete = False

    def joined(self):
        self._joins += 1
        self._steps = 0
        self._calls_before = _waiting.counted(self.thread)
        self.is_complete = False

    def begin(self, kind, ready, present):
        """Sends the vote of a round. ready, present: of each member, as in Outcome."""
        self.is_busy = True
        self._acquire_seat()
        self._end_outstanding()
        self._mine = self._vote_of(kind, ready, present)
        self._submit(self._mine, self._seat)
        self.unfinished = kind

    def end(self):
        """Waits for the outcome of the round."""
        try:
            self._end_outstanding()
        except HorovodInternalError:
            self.unfinished = None
            raise
        self.unfinished = None
        self._check(self._mine)
        return Outcome(self._row, len(self._members), self._row == self._mine)

    def is_of_this_world(self):
        return self._generation == _library.lib().hvd_generation()

    def close(self):
        """Ends a series of rounds: everything that followed from them is done, or has failed."""
        self.is_busy = False

    def tick(self, is_counted):
        """Called while this rank waits for something else."""
        if self.is_busy or self.is_complete or not self._members or self._process_set.process_set_id is None:
            return
        self._enter_world()
        if self._described is None and len(_waiting.watchers) > 1 and _native.is_elastic():
            return  # names follow the order of first use, and this is not a use
        seat = self._seat or self._coming_seat()
        if seat is None:
            return
        if seat.outstanding is not None:
            if not _library.poll(seat.outstanding):
                return
            _rows.pop(seat.outstanding, None)
            seat.outstanding = None
        patience = _LATE if _library.lib().hvd_process_set_ids(None, 0) > 1 else _AT_ONCE if is_counted else _SOON
        nothing = [0] * len(self._members)
        try:
            self._submit(self._vote_of(NO, nothing, nothing, patience), seat)
        except (HorovodInternalError, ValueError):
            pass  # callers that wait for this optimizer get the reason

    def _vote_of(self, kind, ready, present, patience=_LIMIT):
        step = (self._joins << 40) + self._steps
        calls = _waiting.counted(self.thread) - self._calls_before
        at_step = kind == STEP
        head = (step, -step, self._names_hash, -self._names_hash, _LIMIT if at_step else calls, _LIMIT if at_step else -calls,
                int(at_step), int(kind != DROP), int(kind == DROP), patience, int(kind != NO), 0)
        return array.array('q', head + tuple(ready) + tuple(present))

    def _enter_world(self):
        """If this is another world, forgets what was in flight in the earlier one."""
        generation = _library.lib().hvd_generation()
        if generation != self._generation:
            if self._generation is not None:
                self._joins = self._steps = 0
                self._calls_before = _waiting.counted(self.thread)
            self._generation, self._seat, self._described, self.unfinished = generation, None, None, None
            self.is_complete = False

    def name(self):
        """The name of the collectives for the rounds, of an optimizer in use."""
        self._acquire_seat()
        return self._seat.name

    def _acquire_seat(self):
        self._enter_world()
        if self._seat is None or not self._is_seat_known:
            parameter, name = self._place()
            seats = _Seats.of(parameter, self._process_set)
            if self._seat is None or self._seats is not seats:
                self._seat, self._seats = seats.acquire(name), seats
            self._is_seat_known = True

    def _coming_seat(self):
        """The seat that this optimizer will get, before its first use; None if another may be the next to be used."""
        parameter, name = self._place()
        for reference in list(_waiting.watchers.values()):
            other = reference()
            if other is self or not isinstance(other, Agreement) or other._seat is not None:
                continue
            if other._process_set is self._process_set and other._members and other._place()[0] is parameter and (
                    other._plan != self._plan):
                return None
        return _Seats.of(parameter, self._process_set).coming(name)

    def _submit(self, row, seat):
        described = (self._plan, self._process_set.process_set_id, seat)
        if described != self._described:
            self._request = _library.Request(_library.ALLREDUCE, seat.name, [(_library.INT64, (len(row),))], _library.MIN, 0,
                                             described[1], members=self._plan)
            self._described = described
        self._row = row[:]
        address = self._row.buffer_info()[0]
        seat.outstanding = self._request.submit(address, address)
        _rows[seat.outstanding] = self._row
        if len(_rows) > _MOST_ROWS:
            for handle in [handle for handle in _rows if handle != seat.outstanding and _library.poll(handle)]:
                del _rows[handle]

    def _end_outstanding(self):
        seat = self._seat
        if seat.outstanding is not None:
            error = _library.wait(seat.outstanding)  # Ctrl-C leaves it outstanding
            _rows.pop(seat.outstanding, None)
            seat.outstanding = None
            self.is_refused = error is not None and error.is_disagreement
            if error is not None:
                raise error

    def _check(self, row):
        outcome = self._row
        problem = None
        if outcome[_NAMES] != -outcome[_NAMES + 1]:
            problem = ('the ranks have other parameters in one optimizer; those of this rank are {}. Give all ranks the same '
                       'named_parameters and the same parameters that require gradients.'.format(', '.join(self._members)))
        elif outcome[_STEP] != -outcome[_STEP + 1]:
            problem = ('the ranks are in different steps of the optimizer of {}: this one in step {}, others between {} and {}. '
                       'Each rank has to call step() as often as the others; one of them may have called backward() once more '
                       'than the others for parameters that were combined already.'.format(
                           self._members[0], *[(number & ((1 << 40) - 1)) + 1
                                               for number in (row[_STEP], outcome[_STEP], -outcome[_STEP + 1])]))
        elif outcome[_NONE_DROPS] == 0 and outcome[_ALL_DROP] == 0 and outcome[_NO_VETO] == 1:
            problem = ('some ranks drop the gradients of this step of the optimizer of {}, after an exception in backward() or '
                       'by optimizer.discard(), and others do not. All ranks have to skip a batch together.'
                       .format(self._members[0]))
        if problem is not None:
            self.is_refused = True
            failure = HorovodInternalError(problem)
            failure.is_disagreement = True
            raise failure
