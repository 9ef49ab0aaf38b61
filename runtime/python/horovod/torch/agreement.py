"""Votes of the ranks about the gradients of one optimizer, so that each knows which of them all have computed.

In a round every rank of the set brings one vote, and all see the same outcome. A rank votes

    BACKWARD  at the end of a backward() that has computed gradients: these are under way
    STEP      in step() or synchronize(): it sends zeros for the gradients that only others have
    DROP      to forget the gradients of this step
    NO        while it waits in another call for other ranks, which may be waiting for its vote: it has nothing to end

A vote is a row of integers, the outcome their minimum over the ranks. A rank that has joined takes no part in a minimum.
"""

import array
import threading
import zlib

from horovod.common import _library, _native, _waiting
from horovod.common.exceptions import HorovodInternalError

BACKWARD, STEP, DROP, NO = range(4)

_rows = {}  # handle -> the vote that the runtime works on, also where the optimizer is gone
_MOST_ROWS = 64  # of which none is done

_LIMIT = 1 << 62
_HEAD = 12
# Rounds in which a rank has to say no until the others go on without it. One is enough where it waits in a call that all ranks count,
# has ended as many of them as the others, and there are no other process sets: that call needs the others. Else it may wait in one
# that the others have ended already (another optimizer's step, say), or for ranks of another process set, and come by itself.
_AT_ONCE, _LATE = 1, 50
# Columns of the head; the others are negatives of their predecessors, whose minimum tells the maximum.
_STEP, _NAMES, _CALLS, _ALL_AT_STEP, _NONE_DROPS, _ALL_DROP, _PATIENCE, _NONE_SAYS_NO = 0, 2, 4, 6, 7, 8, 9, 10


class Outcome:
    """Of a round."""

    __slots__ = ('all_at_step', 'all_drop', 'says_no', 'patience', 'alike', 'agreed', 'present')

    def __init__(self, row, count, alike):
        self.all_at_step = row[_ALL_AT_STEP] == 1
        self.all_drop = row[_ALL_DROP] == 1
        self.says_no = row[_NONE_SAYS_NO] == 0
        # In so many rounds a rank has to say no until this one goes on without it.
        self.patience = row[_PATIENCE] if row[_CALLS] == -row[_CALLS + 1] else _LATE
        self.alike = alike  # the vote of this rank was that of all
        self.agreed = row[_HEAD:_HEAD + count]  # of each gradient: 1 where no rank will bring less than it has
        self.present = row[_HEAD + count:]  # 0 where no rank has one, else -1, or -1 - sparse dimensions


class Agreement:
    """The rounds of one optimizer. name(): under which they travel in this world."""

    def __init__(self, name, process_set):
        self.thread = threading.get_ident()  # which trains
        self.is_busy = False  # in a backward() or a round of this optimizer
        self._name = name
        self._process_set = process_set
        self.is_refused = False  # the ranks have other parameters or groups, so some may wait for what others never submit
        self._members = self._plan = ()
        self._request = None
        self._described = None
        self._row = self._mine = array.array('q')  # under way or the outcome, and what this rank sent
        self._outstanding = None  # the handle of a vote whose outcome nobody has waited for
        self._generation = None
        self._joins = self._steps = 0
        self._calls_before = 0  # when the ranks began to count alike: not in each step, which they may begin before or after a call
        self.is_complete = False  # all gradients of this step are combined
        self.unfinished = None  # the vote of begin(), until end() has come to its end: a signal handler may have stopped it
        _waiting.add(self)

    def set_members(self, names, plan):
        """plan: the names again, and which of them are exchanged together, for the runtime to compare."""
        self._members, self._plan = tuple(names), tuple(plan)
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
        self._enter_world()
        self._end_outstanding()
        self._mine = self._vote_of(kind, ready, present)
        self._submit(self._mine)
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
        """Ends a series of rounds: all that they have led to is done, or failed."""
        self.is_busy = False

    def tick(self, is_counted):
        """Called while this rank waits for something else."""
        if self.is_busy or self.is_complete or not self._members or self._process_set.process_set_id is None:
            return
        self._enter_world()
        if self._described is None and len(_waiting.watchers) > 1 and _native.is_elastic():
            return  # names follow the order of use there, and this is none
        if self._outstanding is not None:
            if not _library.poll(self._outstanding):
                return
            _rows.pop(self._outstanding, None)
            self._outstanding = None
        patience = _AT_ONCE if is_counted and _library.lib().hvd_process_set_ids(None, 0) == 1 else _LATE
        nothing = [0] * len(self._members)
        try:
            self._submit(self._vote_of(NO, nothing, nothing, patience))
        except (HorovodInternalError, ValueError):
            pass  # whoever waits for this optimizer is told why

    def _vote_of(self, kind, ready, present, patience=_LIMIT):
        step = (self._joins << 40) + self._steps
        calls = _waiting.counted(self.thread) - self._calls_before
        at_step = kind == STEP
        head = (step, -step, self._names_hash, -self._names_hash, _LIMIT if at_step else calls, _LIMIT if at_step else -calls,
                int(at_step), int(kind != DROP), int(kind == DROP), patience, int(kind != NO), 0)
        return array.array('q', head + tuple(ready) + tuple(present))

    def _enter_world(self):
        """Forgets what was under way in an earlier world, where this is another one."""
        generation = _library.lib().hvd_generation()
        if generation != self._generation:
            if self._generation is not None:
                self._joins = self._steps = 0
                self._calls_before = _waiting.counted(self.thread)
            self._generation, self._outstanding, self._described, self.unfinished = generation, None, None, None
            self.is_complete = False

    def _submit(self, row):
        described = (self._plan, self._process_set.process_set_id)
        if described != self._described:
            self._request = _library.Request(_library.ALLREDUCE, self._name(), [(_library.INT64, (len(row),))], _library.MIN, 0,
                                             described[1], members=self._plan)
            self._described = described
        self._row = row[:]
        address = self._row.buffer_info()[0]
        self._outstanding = self._request.submit(address, address)
        _rows[self._outstanding] = self._row
        if len(_rows) > _MOST_ROWS:
            for handle in [handle for handle in _rows if handle != self._outstanding and _library.poll(handle)]:
                del _rows[handle]

    def _end_outstanding(self):
        if self._outstanding is not None:
            error = _library.wait(self._outstanding)  # Ctrl-C leaves it outstanding
            _rows.pop(self._outstanding, None)
            self._outstanding = None
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
        elif outcome[_NONE_DROPS] == 0 and outcome[_ALL_DROP] == 0 and outcome[_NONE_SAYS_NO] == 1:
            problem = ('some ranks drop the gradients of this step of the optimizer of {}, after an exception in backward() or '
                       'by optimizer.discard(), and others do not. All ranks have to skip a batch together.'
                       .format(self._members[0]))
        if problem is not None:
            failure = HorovodInternalError(problem)
            failure.is_disagreement = True
            raise failure
