"""Where this process is in its source, for the launcher to read when a collective takes too long.

A handler of a real-time signal writes the stacks of all threads into a file in memory. It is faulthandler's, which is C and
needs no interpreter lock, so it also tells of a thread that never comes back to Python. HVD_STALL_CHECK_STACKS=0 does without.
"""

import os

from horovod.common import _native

FILE_NAME = 'hvd-stacks'  # the agent looks for it
_file = None  # stays open for the life of the process


def _taken():
    """The bits of the signals that this process handles or ignores, signal 1 first."""
    with open('/proc/self/status') as status:
        fields = dict(line.rstrip().split(':\t', 1) for line in status if ':\t' in line)
    return int(fields['SigCgt'], 16) | int(fields['SigIgn'], 16)


def _choose():
    """A real-time signal that nobody uses, and else the first one: its handler then runs as well."""
    import signal
    taken = _taken()
    signals = range(signal.SIGRTMIN + 8, signal.SIGRTMAX)
    free = [number for number in signals if not taken >> (number - 1) & 1]
    return (free[0], False) if free else (signals[0], True)


def offer():
    """Once in a process that an agent watches."""
    global _file
    if _file is not None or 'HVD_AGENT' not in os.environ or os.environ.get('HVD_STALL_CHECK_STACKS') == '0':
        return
    try:
        import faulthandler
        import fcntl
        number, chain = _choose()
        _file = os.fdopen(os.memfd_create(FILE_NAME), 'w')
        fcntl.fcntl(_file, fcntl.F_SETFL, os.O_APPEND)  # the agent may empty it
        faulthandler.register(number, _file, all_threads=True, chain=chain)
        _native.call('note_stacks', number, _file.fileno())
    except (ImportError, OSError, KeyError, ValueError, RuntimeError, AttributeError):
        pass  # the verdict about a stall has no line of the source then
