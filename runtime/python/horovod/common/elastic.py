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
    """What happened to the hosts."""

    no_update = 0
    removed = 1
    added = 2
    mixed = removed | added


class WorkerNotificationManager(object):
    """Tells states that the hosts changed."""

    def __init__(self):
        self._listeners = []

    def init(self, rendezvous_addr=None, rendezvous_port=None, nic=None, hostname=None, local_rank=None):
        """Nothing to start: no launcher tells workers of new hosts yet."""

    def register_listener(self, listener):
        if listener not in self._listeners:
            self._listeners.append(listener)

    def remove_listener(self, listener):
        if listener in self._listeners:
            self._listeners.remove(listener)

    def handle_hosts_updated(self, timestamp, update_res):
        for listener in list(self._listeners):
            listener.on_hosts_updated(timestamp, update_res)


notification_manager = WorkerNotificationManager()


class State(object):
    """What training needs to go on: kept in memory by commit(), brought back by restore(), and given to all ranks by
    sync()."""

    def __init__(self, bcast_object, get_rank):
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._host_messages = queue.Queue()
        self._last_updated_timestamp = 0
        self._reset_callbacks = []

    def register_reset_callbacks(self, callbacks):
        """Functions without arguments, called after the world has changed."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self):
        self._host_messages = queue.Queue()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp, update_res):
        self._host_messages.put((timestamp, update_res))

    def commit(self):
        """Saves the state, and lets a change of hosts interrupt training here."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self):
        """HostsUpdatedInterrupt on all ranks when rank 0 has heard of other hosts."""
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
        raise NotImplementedError('{} needs a method save().'.format(type(self).__name__))

    def restore(self):
        raise NotImplementedError('{} needs a method restore().'.format(type(self).__name__))

    def sync(self):
        raise NotImplementedError('{} needs a method sync().'.format(type(self).__name__))

    def reset(self):
        """Called after the world has changed, before the callbacks."""


class ObjectState(State):
    """A state of plain values: each keyword argument becomes an attribute."""

    def __init__(self, bcast_object, get_rank, **kwargs):
        self._saved_state = dict(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        super(ObjectState, self).__init__(bcast_object, get_rank)

    def save(self):
        self._saved_state = {name: getattr(self, name) for name in self._saved_state}

    def restore(self):
        self._take_saved_values()

    def sync(self):
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self._take_saved_values()

    def _take_saved_values(self):
        for name, value in self._saved_state.items():
            setattr(self, name, value)


def run_fn(func, reset):
    """func(state, ...) run until it returns: after a failure from the last commit, after a change of hosts from where
    it was. reset() makes the new world."""

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
