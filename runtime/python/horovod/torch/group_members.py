"""Process sets for the groups of torch.distributed.

All ranks of the world have to take part when a process set is registered, but c10d calls a backend only on the members of a group, and
two ranks that send and receive ask no other rank. So each rank has a thread that waits at c10d's store for the ranks of the next set and registers it
with the others; a rank that needs a set writes them there. The numbers of the requests are the order for all ranks.
"""

import atexit
import datetime
import json
import os
import socket
import threading
import time

import torch.distributed as dist

from horovod.common import _library

_FOR_GOOD = datetime.timedelta(days=30)
_STOP = 'stop'
_STOP_S = 5
_SERVER_END_S = 1  # if the script holds the server, it does not end
_POLL_S = 0.02
_MEETING_S = 1800.0
_ANSWER_S = 2.0  # rank 0 says who is missing


def _base_store(store):
    while True:
        below = getattr(store, '_underlying_non_prefix_store', None) or getattr(store, 'underlying_store', None)
        if below is None:
            return store
        store = below


def _another_client(store):
    """A client of the same store, which may wait without keeping others from theirs. None: there is no way to one."""
    if hasattr(store, 'clone'):  # PyTorch 2.6 and newer
        return store.clone()
    store = _base_store(store)
    if isinstance(store, dist.TCPStore):
        return dist.TCPStore(store.host, store.port, is_master=False, wait_for_workers=False)
    if isinstance(store, dist.FileStore):
        return dist.FileStore(store.path, -1)
    return None


def address_of(store):
    """The host of the store's server, which is that of rank 0; None: there is no server."""
    base = _base_store(store)
    return base.host if isinstance(base, dist.TCPStore) else None


class Members:
    """The process sets of one world, by their ranks."""

    def __init__(self, store, rank, size, world_ranks, unique):
        """world_ranks: the rank in the runtime's world of each of the `size` ranks at this store. unique: a name of this world."""
        self._size = size
        self._rank = rank
        self._prefix = 'hvd/{}/'.format(unique)
        self._changed = threading.Condition()
        self._ids = {tuple(sorted(world_ranks)): 0}
        self._errors = {}
        self._lost = None
        self._reader, self._writer = _another_client(store), _another_client(store)
        base = _base_store(store)
        self._address = (base.host, base.port) if isinstance(base, dist.TCPStore) and size > 1 else None
        self._is_stopped = False
        self._thread = None
        if self._reader is not None and size > 1:
            self._thread = threading.Thread(target=self._serve, name='hvd-process-sets', daemon=True)
            self._thread.start()
            atexit.register(self.stop)

    def id_of(self, world_ranks, asks, timeout_s=None):
        """The id of the set of these ranks, once it is there. asks: whether to ask for it, if it is not; one of its members has to."""
        ranks = tuple(world_ranks)
        with self._changed:
            if ranks in self._ids:
                return self._ids[ranks]
        if self._thread is None:
            raise NotImplementedError('groups of some of the ranks need a TCPStore or a FileStore as the store of init_process_group on this '
                                      'version of PyTorch.')
        if asks:
            self._request(ranks)
        with self._changed:
            there = self._changed.wait_for(lambda: ranks in self._ids or ranks in self._errors or self._lost is not None, timeout_s)
            if ranks in self._ids:
                return self._ids[ranks]
            if ranks in self._errors:
                raise self._errors[ranks]
            if there:
                raise RuntimeError('the group of ranks {} cannot be made: the store of init_process_group, by which ranks agree about '
                                   'groups, is gone ({}).'.format(list(ranks), self._lost))
        raise RuntimeError('the group of ranks {} was not there within {:g} s: its first rank has not come to new_group, or a rank of the '
                           'world has ended.'.format(list(ranks), timeout_s))

    def meet(self, name, rank, size, limit_s, what):
        """Returns when all ranks of a group are here; RuntimeError that names those that are not after the limit. name: of this meeting
        alone."""
        store = _another_client(self._writer)
        if store is None:
            raise NotImplementedError('{} needs a TCPStore or a FileStore as the store of init_process_group on this version of PyTorch.'
                                      .format(what))
        store = dist.PrefixStore('{}meet/{}'.format(self._prefix, name), store)
        limit_s = _MEETING_S if limit_s is None else limit_s
        keys = [str(number) for number in range(size)]
        store.set(keys[rank], 'here')
        try:
            store.wait(keys if rank == 0 else ['all'], datetime.timedelta(seconds=limit_s if rank == 0 else limit_s + _ANSWER_S))
        except Exception:
            missing = [number for number in range(size) if not store.check([keys[number]])]
            if rank == 0 or 0 in missing:
                text = '{}: of its ranks {} have not reached it within {:g} s.'.format(what, missing, limit_s)
            else:
                text = '{}: rank 0 of the group has stopped in it.'.format(what)
        else:
            text = 'all' if rank == 0 else store.get('all').decode()
        if rank == 0:
            store.set('all', text)
        if text != 'all':
            raise RuntimeError(text)
        if store.add('left', 1) == size:
            for key in keys + ['all', 'left']:
                store.delete_key(key)

    def stop(self):
        """Ends the thread; what is not registered by now will not be. Before the interpreter ends: a thread that comes back from the
        store's C++ after that ends the process by std::terminate()."""
        with self._changed:
            if self._is_stopped or self._thread is None:
                return
            self._is_stopped = True
            number = self._next
        atexit.unregister(self.stop)
        try:
            self._writer.set(self._key(self._rank, number), _STOP)
        except Exception:  # the store has closed, and the thread has ended
            pass
        self._thread.join(_STOP_S)
        self._reader = self._writer = None  # on rank 0 they keep the store's server alive, whose port the next init_process_group needs

    def await_end_of_server(self):
        """Another init_process_group may follow, and must not meet the store's server that rank 0 is about to end: it would wait there
        for ranks that are at the next one. A server of torchrun's agent stays."""
        if self._address is None or self._rank == 0 or os.environ.get('TORCHELASTIC_USE_AGENT_STORE') == 'True':
            return
        end = time.monotonic() + _SERVER_END_S
        while time.monotonic() < end:
            try:
                socket.create_connection(self._address, _SERVER_END_S).close()
            except OSError:
                return
            time.sleep(_POLL_S)

    _next = 0

    def _key(self, rank, number):
        return '{}{}/{}'.format(self._prefix, rank, number)

    def _request(self, ranks):
        number = self._writer.add(self._prefix + 'count', 1) - 1
        keys, value = [self._key(rank, number) for rank in range(self._size)], json.dumps(ranks)
        if hasattr(self._writer, 'multi_set') and self._writer.has_extended_api():
            self._writer.multi_set(keys, [value] * len(keys))
        else:
            for key in keys:
                self._writer.set(key, value)

    def _serve(self):
        while True:
            with self._changed:
                if self._is_stopped:  # while a set was registered: stop() has written to a place that was already read
                    return
                key = self._key(self._rank, self._next)
            try:
                self._reader.wait([key], _FOR_GOOD)
                value = self._reader.get(key).decode()
            except Exception as error:
                self._note(lambda: setattr(self, '_lost', error))
                return
            if value == _STOP or self._is_stopped:
                return
            ranks = tuple(json.loads(value))
            if ranks not in self._ids:
                self._register(ranks)
            with self._changed:
                self._next += 1

    def _register(self, ranks):
        try:
            number = _library.add_process_set(ranks)
        except Exception as error:
            number = next((number for number, members in _existing_sets().items() if tuple(members) == ranks), None)
            if number is None:
                self._note(lambda: self._errors.__setitem__(ranks, error))
                return
        self._note(lambda: self._ids.__setitem__(ranks, number))

    def _note(self, change):
        with self._changed:
            change()
            self._changed.notify_all()


def _existing_sets():
    try:
        return _library.process_sets()
    except ValueError:  # the world has been left
        return {}
