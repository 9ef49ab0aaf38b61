"""Threads."""

import threading


def in_thread(target, args=(), name=None, daemon=True, silent=False):
    """Runs target(*args) in a new thread and gives the thread, which is running already.

    daemon: the process does not wait for it at its end. silent: an exception in it is dropped.
    """
    if not callable(target):
        raise ValueError('in_thread takes a function, but {!r} was given.'.format(target))
    if not isinstance(args, (tuple, list)):
        raise ValueError('in_thread takes its args as a tuple, but {!r} was given.'.format(args))

    def quietly(*given):
        try:
            target(*given)
        except Exception:
            pass

    thread = threading.Thread(target=quietly if silent else target, args=tuple(args), name=name, daemon=daemon)
    thread.start()
    return thread
