"""Threads."""

import threading


def in_thread(target, args=(), name=None, daemon=True, silent=False):
    """Runs target(*args) in a new thread.

    Args:
        target: A function.
        args: A tuple of its arguments.
        name: Name of the thread.
        daemon: Whether the process ends without waiting for it.
        silent: Whether to drop exceptions in it.

    Returns: The thread, which is running already.

    Raises:
        ValueError: target is not a function, or args is not a tuple.
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
