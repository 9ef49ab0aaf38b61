"""State that outlives a change of the world, and the loop that runs training with it.

Jobs of changing size need a launcher that starts them, which is not available yet. In a job of fixed size run() works,
too: it starts from the same state on all ranks, and a failure ends it as it ends any script.
"""

import enum
import functools
import os
import queue

from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt


class HostUpdateResult(enum.IntFlag):
    """The kind of a change of the hosts: no_update, removed, added, or mixed."""

    no_update = 0
    removed = 1
    added = 2
    mixed = removed | added


class WorkerNotificationManager(object):
    """Tells states that the hosts changed."""

    def __init__(self):
        self._listeners = []

    def init(self, rendezvous_addr=None, rendezvous_port=None, nic=None, hostname=None, local_rank=None):
        """Starts nothing: no launcher tells workers of new hosts yet.

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


class State(object):
    """The data that training needs to continue after a change of the world.

    commit() keeps a copy in memory, restore() brings it back, and sync() gives all ranks the state
    of rank 0. Subclasses implement save(), restore() and sync().

    Args:
        bcast_object: Gives all ranks the object of rank 0, such as hvd.broadcast_object.
        get_rank: Returns the rank of this process, such as hvd.rank.
    """

    def __init__(self, bcast_object, get_rank):
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._host_messages = queue.Queue()
        self._last_updated_timestamp = 0
        self._reset_callbacks = []

    def register_reset_callbacks(self, callbacks):
        """Adds functions that are called after the world has changed.

        Args:
            callbacks: A list of functions without arguments.
        """
        self._reset_callbacks.extend(callbacks)

    def on_reset(self):
        """Called after the world has changed: runs reset() and then the callbacks."""
        self._host_messages = queue.Queue()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp, update_res):
        """Notes a change of the hosts for the next check_host_updates(). May be called from any thread.

        Args:
            timestamp: When it happened; a later change has a larger number.
            update_res: A HostUpdateResult.
        """
        self._host_messages.put((timestamp, update_res))

    def commit(self):
        """Saves the state, then checks whether the hosts have changed.

        Raises:
            HostsUpdatedInterrupt: They have, as check_host_updates() says.
        """
        self.save()
        self.check_host_updates()

    def check_host_updates(self):
        """Raises an exception on all ranks when rank 0 knows that the hosts have changed. A collective.

        Raises:
            HostsUpdatedInterrupt: The hosts have changed.
        """
        last, result = self._last_updated_timestamp, HostUpdateResult.no_update
        while not self._host_messages.empty():
            timestamp, update = self._host_messages.get()
            if timestamp > last:
                last = timestamp
                result |= update
        previous, self._last_updated_timestamp, result = self._bcast_object(
            (self._last_updated_timestamp, last, result))
        if self._last_updated_timestamp > previous:
            raise HostsUpdatedInterrupt(result == HostUpdateResult.removed)

    def save(self):
        """Keeps a copy of the state in memory. Implemented by subclasses."""
        raise NotImplementedError('{} needs a method save().'.format(type(self).__name__))

    def restore(self):
        """Brings back the copy that save() kept. Implemented by subclasses."""
        raise NotImplementedError('{} needs a method restore().'.format(type(self).__name__))

    def sync(self):
        """Gives all ranks the state of rank 0. A collective; implemented by subclasses."""
        raise NotImplementedError('{} needs a method sync().'.format(type(self).__name__))

    def reset(self):
        """Called after the world has changed, before the callbacks. Does nothing unless a subclass implements it."""


class ObjectState(State):
    """A state of plain values: each keyword argument becomes an attribute.

    Args:
        bcast_object: Gives all ranks the object of rank 0, such as hvd.broadcast_object.
        get_rank: Returns the rank of this process, such as hvd.rank.
        kwargs: The values by name; they must be picklable.
    """

    def __init__(self, bcast_object, get_rank, **kwargs):
        self._saved_state = dict(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        super(ObjectState, self).__init__(bcast_object, get_rank)

    def save(self):
        """Keeps the present values of the attributes."""
        self._saved_state = {name: getattr(self, name) for name in self._saved_state}

    def restore(self):
        """Sets the attributes to the values that save() kept."""
        self._take_saved_values()

    def sync(self):
        """Sets the attributes on all ranks to the values that rank 0 saved last. A collective."""
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self._take_saved_values()

    def _take_saved_values(self):
        for name, value in self._saved_state.items():
            setattr(self, name, value)


def run_fn(func, reset):
    """Wraps a training function so that it is run again after each change of the world.

    After a HorovodInternalError it continues from the last commit (with HOROVOD_ELASTIC=1;
    otherwise the error is raised), after a HostsUpdatedInterrupt from where it was.

    Args:
        func: The training function; its first argument is a State.
        reset: A function without arguments that makes the new world.

    Returns: The wrapped function, with the same arguments and result.
    """

    @functools.wraps(func)
    def wrapper(state, *args, **kwargs):
        notification_manager.init()
        notification_manager.register_listener(state)
        skip_sync = False
        try:
            while True:
                try:
                    if not skip_sync:
                        state.sync()
                    return func(state, *args, **kwargs)
                except HorovodInternalError:
                    if os.environ.get('HOROVOD_ELASTIC') != '1':
                        raise  # nobody will start the lost ranks again
                    state.restore()
                    skip_sync = False
                except HostsUpdatedInterrupt as interrupt:
                    skip_sync = interrupt.skip_sync
                reset()
                state.on_reset()
        finally:
            notification_manager.remove_listener(state)

    return wrapper
