"""State that outlives a change of the world, and the loop that runs training with it.

Under `hvdrun --elastic` the launcher has all ranks act at the same commit when hosts have come or gone, so a commit sends
nothing as long as nothing happens. In a job of fixed size run() works, too: it starts from the same state on all ranks, and
a failure ends it as it ends any script.
"""

from __future__ import annotations

import collections
import copy
import enum
import functools
import itertools
import queue
import sys
import time

from horovod.common import _native
from horovod.common.commit_store import CommitRefused
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Optional, TypeVar
    F = TypeVar('F', bound=Callable[[], Any])
    R = TypeVar('R')

# Exit code of the ranks of a job that was asked to stop; whatever started the job may start it again.
EXIT_STOPPED = 75


class HostUpdateResult(enum.IntFlag):
    """The kind of a change of the hosts: no_update, removed, added, or mixed."""

    no_update = 0
    removed = 1
    added = 2
    mixed = removed | added


class WorkerNotificationManager:
    """Tells states that the hosts changed, when a program says so.

    hvdrun needs none of this: it tells the runtime of each rank.
    """

    def __init__(self):
        self._listeners = []

    def init(self, rendezvous_addr=None, rendezvous_port=None, nic=None, hostname=None, local_rank=None):
        """Starts nothing, and listens to no port.

        Args:
            rendezvous_addr: Ignored.
            rendezvous_port: Ignored.
            nic: Ignored.
            hostname: Ignored.
            local_rank: Ignored.
        """

    def register_listener(self, listener):
        """Adds a listener.

        Args:
            listener: An object with a method on_hosts_updated(timestamp, update_res), such as a State.
        """
        if listener not in self._listeners:
            self._listeners.append(listener)

    def remove_listener(self, listener):
        """Removes a listener; does nothing for one that was not added.

        Args:
            listener: The object that was given to register_listener().
        """
        if listener in self._listeners:
            self._listeners.remove(listener)

    def handle_hosts_updated(self, timestamp, update_res):
        """Passes a change of the hosts on to all listeners.

        Args:
            timestamp: When it happened; a later change has a larger number.
            update_res: A HostUpdateResult.
        """
        for listener in list(self._listeners):
            listener.on_hosts_updated(timestamp, update_res)


notification_manager = WorkerNotificationManager()


# ---- the world


class _Announcement(tuple):
    """Represents in a queue of host messages what the launcher is about to do at a commit."""


class _HostMessages(queue.Queue):
    """Updates of the hosts. Scripts check whether it is empty to see that a change is coming, so what the launcher
    has to say shows here too, although the runtime alone acts on it."""

    def __init__(self):
        super(_HostMessages, self).__init__()
        self._announced = False

    def empty(self):
        """Returns whether no change is coming."""
        if not self._announced and _native.launcher_decides() and _native.call('update_pending') == 1:
            self._announced = True
            self.put(_Announcement((int(time.time()), HostUpdateResult.mixed)))
        return super(_HostMessages, self).empty()


# ---- stopping

_on_stop = []


def on_stop(function: F) -> F:
    """Adds a function that is called when the job is asked to stop, before this rank leaves.

    All ranks call theirs at the same commit, in the order in which they were added, and may use
    collectives there. Then they leave with exit code 75. An exception of the function ends the rank as
    any other does.

    Args:
        function: A function without arguments, such as one that writes a checkpoint.

    Returns: The function, so that this can be a decorator.

    Example:

        @hvd.elastic.on_stop
        def save():
            if hvd.rank() == 0:
                torch.save(state.model.state_dict(), 'model.pt')
    """
    _on_stop.append(function)
    return function


def stop_grace() -> Optional[float]:
    """How long the launcher waits, after it was asked to stop the job, before it ends the ranks.

    Returns: Seconds, a float; None without a limit, or when the job is not being stopped.
    """
    from horovod.common import _library
    milliseconds = _library.stop_grace_ms()
    return milliseconds / 1000.0 if milliseconds > 0 else None


def _leave_stopped():
    from horovod.common import basics
    for function in _on_stop:
        function()
    basics.shared().shutdown()
    raise SystemExit(EXIT_STOPPED)


# ---- states

_CONTAINERS = (dict, list, set, tuple, collections.deque, bytearray)


def _copied(value, copy_leaf, memo):
    """A copy of a container and of the containers in it; copy_leaf() copies anything else, or gives the object itself."""
    if type(value) in (bool, bytes, complex, float, int, str, type(None)):
        return value
    if id(value) in memo:
        return memo[id(value)][0]
    if isinstance(value, tuple):
        items = [_copied(item, copy_leaf, memo) for item in value]
        copied = tuple(items) if type(value) is tuple else type(value)(*items) if hasattr(value, '_fields') else value
    elif isinstance(value, _CONTAINERS):
        copied = copy.copy(value)  # of its class, with its attributes
    else:
        copied = copy_leaf(value)
    memo[id(value)] = copied, value  # kept alive as long as its id is used
    if isinstance(value, dict):
        for key, item in value.items():
            copied[key] = _copied(item, copy_leaf, memo)
    elif isinstance(value, (list, collections.deque)):
        for index, item in enumerate(value):
            copied[index] = _copied(item, copy_leaf, memo)
    return copied



class State:
    """The data that training needs to continue after a change of the world.

    commit() keeps a copy in memory, restore() restores it, and sync() broadcasts the state of
    rank 0. Subclasses implement save(), restore() and sync().

    Args:
        bcast_object: Gives all ranks the object of rank 0, such as hvd.broadcast_object.
        get_rank: Returns the rank of this process, such as hvd.rank.
    """

    if TYPE_CHECKING:  # a state's values are attributes with arbitrary names
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, bcast_object, get_rank):
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._host_messages = _HostMessages()
        self._last_updated_timestamp = 0
        self._reset_callbacks = []

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Adds functions that are called after the world has changed.

        Args:
            callbacks: A list of functions without arguments.
        """
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called after the world has changed: runs reset() and then the callbacks."""
        self._host_messages = _HostMessages()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp, update_res):
        """Notes a change of the hosts for the next check_host_updates(). May be called from any thread.

        Only for programs that look after their hosts themselves. In a world of `hvdrun --elastic` it
        makes this rank leave at its next commit, and the other ranks follow it; elsewhere rank 0 decides
        for all.

        Args:
            timestamp: When it happened; a later change has a larger number.
            update_res: A HostUpdateResult.
        """
        self._host_messages.put((timestamp, update_res))

    def commit(self) -> None:
        """Saves the state, then does what check_host_updates() does.

        Raises:
            HostsUpdatedInterrupt: The hosts have changed, as check_host_updates() says.
            HorovodInternalError: A rank left or died.
            SystemExit: The job is to end here, with exit code 75.
        """
        self.save()
        if self._keeper is not None:
            self._keeper.keep(self._keeper_name, self._kept, self._reduce_kept)
        self.check_host_updates()

    _keeper = None  # a KeptCommits, from the first world of an hvd.elastic.run on if hvdrun keeps commits
    _keeper_name = b''

    def _kept(self):
        """What save() has kept, to be pickled."""
        raise CommitRefused('a {} is not a state of horovod\'s own'.format(type(self).__name__))

    def _use_kept(self, kept):
        """Sets the state to what _kept() returned in another process."""
        raise NotImplementedError()

    def _reduce_kept(self, value):
        """As pickle.Pickler.reducer_override."""
        return NotImplemented

    def check_host_updates(self) -> None:
        """Raises an exception on all ranks when the hosts have changed. All ranks call it at the same points.

        Under `hvdrun --elastic` it sends nothing as long as nothing has happened, and when the job is to
        stop, it calls the functions of hvd.elastic.on_stop() and leaves. Elsewhere it is a broadcast of
        what rank 0 knows.

        Raises:
            HostsUpdatedInterrupt: The hosts have changed.
            HorovodInternalError: A rank left or died.
            SystemExit: The job is to end here, with exit code 75.
        """
        if _native.launcher_decides():
            self._act_on_commit()
            self._last_updated_timestamp, result = self._pop_messages()
        else:
            previous = self._last_updated_timestamp
            last, result = self._pop_messages()
            previous, self._last_updated_timestamp, result = self._bcast_object((previous, last, result))
            if self._last_updated_timestamp <= previous:
                result = HostUpdateResult.no_update
        if result != HostUpdateResult.no_update:
            raise HostsUpdatedInterrupt(result == HostUpdateResult.removed)

    def _act_on_commit(self):
        from horovod.common import _library
        update = _library.commit()
        if update & _library.UPDATE_STOP:
            _leave_stopped()
        if update:
            raise HostsUpdatedInterrupt(update == _library.UPDATE_REMOVED)

    def _pop_messages(self):
        """The time and the kind of the changes passed to on_hosts_updated() since."""
        last, result = self._last_updated_timestamp, HostUpdateResult.no_update
        while self._host_messages.queue:  # needs no lock
            message = timestamp, update = self._host_messages.get()
            if timestamp > last and not isinstance(message, _Announcement):
                last = timestamp
                result |= update
        return last, result

    def save(self) -> None:
        """Keeps a copy of the state in memory. Implemented by subclasses."""
        raise NotImplementedError('{} needs a method save().'.format(type(self).__name__))

    def restore(self) -> None:
        """Restores the copy that save() kept. Implemented by subclasses."""
        raise NotImplementedError('{} needs a method restore().'.format(type(self).__name__))

    def sync(self) -> None:
        """Broadcasts the state of rank 0 to all ranks. A collective; implemented by subclasses."""
        raise NotImplementedError('{} needs a method sync().'.format(type(self).__name__))

    def reset(self) -> None:
        """Called after the world has changed, before the callbacks. Does nothing unless a subclass implements it."""


class ObjectState(State):
    """A state of plain values: each keyword argument becomes an attribute.

    Lists, dicts, sets, arrays and tensors are copied by save() and restore(), with what is inside them, so
    what a script changes later does not change what was saved. Objects of other classes are kept as they are.

    Args:
        bcast_object: Gives all ranks the object of rank 0, such as hvd.broadcast_object.
        get_rank: Returns the rank of this process, such as hvd.rank.
        kwargs: The values by name; they must be picklable.
    """

    def __init__(self, bcast_object, get_rank, **kwargs):
        self._saved_state = self._copy(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        super(ObjectState, self).__init__(bcast_object, get_rank)

    def save(self) -> None:
        """Keeps the current values of the attributes."""
        self._saved_state = self._copy({name: getattr(self, name) for name in self._saved_state})

    def restore(self) -> None:
        """Sets the attributes to the values that save() kept."""
        self._apply_saved_values()

    def sync(self) -> None:
        """Sets the attributes on all ranks to the values that rank 0 saved last. A collective."""
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self._apply_saved_values()

    def _apply_saved_values(self):
        for name, value in self._copy(self._saved_state).items():
            setattr(self, name, value)

    def _kept(self):
        for name in ('save', 'restore'):
            if not (getattr(getattr(self, name), '__module__', None) or '').startswith('horovod.'):
                raise CommitRefused('{} has a method {}() of its own, and what that does is not known'.format(type(self).__name__, name))
        return {'values': self._saved_state}

    def _use_kept(self, kept):
        self._saved_state = kept['values']
        self.restore()

    def _copy(self, values):
        return _copied(values, self._copy_leaf, {})

    def _copy_leaf(self, value):
        """A copy of a tensor or an array; of anything else the object itself."""
        return copy.deepcopy(value) if type(value).__module__ == 'numpy' else value


# ---- the loop


def reset_world() -> None:
    """Leaves the world and joins the next one, with the process sets that hvd.init() was given.

    Raises:
        ValueError: There will be no next world; the sentence says why.
        SystemExit: The job continues without this process; the exit code is 0.
    """
    from horovod.common import basics, process_sets
    world = basics.shared()
    world.shutdown()
    world.init(process_sets=process_sets.given_to_init())


_calls = itertools.count()


class _Synchronizer:
    """Gives the ranks of each new world the same state, unless all of them have it.

    Ranks come to a new world for different reasons (one died on the way to a planned change, another took its place), so
    they tell each other first, once per world. Only where the launcher makes the worlds: elsewhere the caller's wish
    counts, as scripts written for Horovod expect.
    """

    def __init__(self, state, call=0):
        self._state = state
        self._call = call  # the sequence number of this hvd.elastic.run in the process
        self._kept = None  # ((generation, number), -rank): the commit that rank 0 is to restore
        self._synchronized = False  # this process has a state that all ranks had at some time

    def run(self, skip):
        if not _native.launcher_decides():
            if not skip:
                self._state.sync()
        elif not self._all_skip(skip):
            from horovod.common import basics
            self._restore_kept()
            # Rank 0 sends what it has, whatever the outcome: other ranks may have all of it when one dies.
            self._synchronized = self._synchronized or basics.shared().rank() == 0
            self._state.sync()
            # The state that a rank restores after a failure must not be its initial one.
            self._state.save()
        self._synchronized = True

    def _all_skip(self, skip):
        from horovod.common import objects, process_sets
        self._kept = None
        replies = objects.allgather_object((skip, self._synchronized, self._newest_kept()), 'hvd.elastic.run',
                                         process_sets.global_process_set)
        old = [rank for rank, reply in enumerate(replies) if reply[1]]
        if old and old[0] != 0:
            raise RuntimeError('Rank 0 is new in this world and cannot give its state to the others, while rank {} has '
                               'that of the training; the launcher must keep an old rank as rank 0.'.format(old[0]))
        kept = [(reply[2], -rank) for rank, reply in enumerate(replies) if reply[2] is not None]
        if not old:
            self._kept = max(kept, default=None)
            if self._state._keeper is not None:
                self._state._keeper.warn_of_other_state()
        return all(reply[0] for reply in replies)

    def _newest_kept(self):
        """(generation, number) of the newest commit that this process can restore, or None."""
        from horovod.common import basics, kept_commits
        keeper = kept_commits.shared()
        if keeper is None:
            return None
        world, state = basics.shared(), self._state
        state._keeper = keeper
        names = [sorted(getattr(state, values, ())) for values in ('_saved_state', '_handlers')]
        state._keeper_name = '{}.{} {} {}'.format(type(state).__module__, type(state).__qualname__, self._call, names).encode()
        keeper.begin(_native.call('generation'), world.local_rank() == 0)
        return None if self._synchronized else keeper.newest(state._keeper_name)

    def _restore_kept(self):
        """Rank 0 restores the newest commit that outlived all ranks."""
        if self._kept is None:
            return
        from horovod.common import basics, kept_commits, objects, process_sets
        (generation, number), holder = self._kept[0], -self._kept[1]
        rank = basics.shared().rank()
        contents = self._state._keeper.contents() if rank == holder else None
        if holder != 0:
            contents = objects.broadcast_object(contents, holder, 'hvd.elastic.kept', process_sets.global_process_set)
        if rank == 0:
            self._state._use_kept(kept_commits.unpacked(contents))
            print('hvdrun: no rank has the state of the training any more; it goes on from commit {} of generation {}'.format(
                number, generation), file=sys.stderr, flush=True)


def run_fn(func: Callable[..., R], reset: Callable[[], Any]) -> Callable[..., R]:
    """Wraps a training function so that it is run again after each change of the world.

    In an elastic job it continues after a HorovodInternalError from the last commit, and after a
    HostsUpdatedInterrupt from where it was. Not after one that says that the ranks disagree about a
    tensor: they would disagree again. In a job of fixed size errors are raised.

    Args:
        func: The training function; its first argument is a State.
        reset: A function without arguments that makes the new world.

    Returns: The wrapped function, with the same arguments and result.
    """

    @functools.wraps(func)
    def wrapper(state, *args, **kwargs):
        notification_manager.init()
        notification_manager.register_listener(state)
        synchronizer = _Synchronizer(state, next(_calls))
        in_new_world, skip_sync = True, False
        try:
            while True:
                try:
                    if not in_new_world:
                        reset()
                        in_new_world = True
                        state.on_reset()
                    synchronizer.run(skip_sync)
                    return func(state, *args, **kwargs)
                except HorovodInternalError as error:
                    if not _native.is_elastic() or error.is_disagreement:
                        raise  # no one will restart the lost ranks, or the same would happen again
                    _give_up()
                    state.restore()
                    skip_sync = False
                except HostsUpdatedInterrupt as interrupt:
                    skip_sync = interrupt.skip_sync
                in_new_world = False
        finally:
            notification_manager.remove_listener(state)

    return wrapper


def _give_up():
    """Fails what other threads, and handles of this one, would wait for forever."""
    if _native.handle is not None:
        from horovod.common import _library
        _library.give_up()
