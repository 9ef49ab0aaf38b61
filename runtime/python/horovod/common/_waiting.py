"""Replies of a waiting rank to other ranks that wait for it.

A rank of torch's DistributedOptimizer may wait for an answer of this one, which waits in another call for that rank. So the loops
of all waits call tick() after each slice, which lets the watchers of the thread answer.
"""

import threading
import weakref

# Milliseconds of a slice while there are watchers.
SLICE_MS = 10

watchers = {}  # id -> weak reference to an object with `thread`, `is_busy` while it waits itself, tick(is_counted) and joined()
_counts = {}  # thread -> blocking calls that it has ended
_is_counting = False  # since the first watcher: the time when the others are freed depends on the rank


def add(watcher):
    global _is_counting
    _is_counting = True
    key = id(watcher)
    watchers[key] = weakref.ref(watcher, lambda _: watchers.pop(key, None))


def count():
    """A blocking call of this thread has ended: one that all ranks make in the same order."""
    if _is_counting:
        thread = threading.get_ident()
        _counts[thread] = _counts.get(thread, 0) + 1


def counted(thread):
    return _counts.get(thread, 0)


def tick(is_counted=True):
    """Lets the watchers of this thread answer. is_counted: the wait is one that count() will count."""
    thread = threading.get_ident()
    mine = [watcher for watcher in [reference() for reference in list(watchers.values())]
            if watcher is not None and watcher.thread == thread]
    is_counted = is_counted and not any([watcher.is_busy for watcher in mine])
    for watcher in mine:
        watcher.tick(is_counted)


def joined():
    """hvd.join() has ended: all ranks restart their counts here."""
    for reference in list(watchers.values()):
        watcher = reference()
        if watcher is not None:
            watcher.joined()
