"""What a rank that waits does for other ranks meanwhile.

A rank of torch's DistributedOptimizer may wait for an answer of this one, which waits in another call for that rank. So the loops
of all waits call tick() after each slice, which lets the watchers of the thread answer.
"""

import threading
import weakref

# Milliseconds of a slice while there are watchers.
SLICE_MS = 20

watchers = {}  # id -> weak reference to an object with `thread`, tick(exact) and joined()
_counts = {}  # thread -> blocking calls that it has ended


def add(watcher):
    key = id(watcher)
    watchers[key] = weakref.ref(watcher, lambda _: watchers.pop(key, None))


def count():
    """A blocking call of this thread has come to its end: one that all ranks make in the same order."""
    if watchers:
        thread = threading.get_ident()
        _counts[thread] = _counts.get(thread, 0) + 1


def counted(thread):
    return _counts.get(thread, 0)


def tick(exact=True):
    """Lets the watchers of this thread answer. exact: the wait is one that count() will count."""
    thread = threading.get_ident()
    for reference in list(watchers.values()):
        watcher = reference()
        if watcher is not None and watcher.thread == thread:
            watcher.tick(exact)


def joined():
    """hvd.join() has come to its end: all ranks count anew from here."""
    for reference in list(watchers.values()):
        watcher = reference()
        if watcher is not None:
            watcher.joined()
