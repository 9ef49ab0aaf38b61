"""Where this process is in its source, for the launcher to read when a collective takes too long.

A handler of a real-time signal writes the stacks of all threads into a file in memory. It is faulthandler's, which is C and
needs no interpreter lock, so it also tells of a thread that never comes back to Python. HVD_STALL_CHECK_STACKS=0 does without.
"""

import os

from horovod.common import _native

FILE_NAME = 'hvd-stacks'  # the agent looks for it
_file = None  # its descriptor, open for the life of the process


def _handled_signals():
    """The bits of the signals that this process handles or ignores, signal 1 first."""
    with open('/proc/self/status') as status:
        fields = dict(line.rstrip('\n').split(':\t', 1) for line in status if ':\t' in line)
    return int(fields['SigCgt'], 16) | int(fields['SigIgn'], 16)


def _choose():
    """An unused real-time signal, or else the first one: its handler then runs as well."""
    import _signal as signal  # its Python half takes as long to import as everything else here
    handled = _handled_signals()
    signals = range(signal.SIGRTMIN + 8, signal.SIGRTMAX)
    free = [number for number in signals if not handled >> (number - 1) & 1]
    return (free[0], False) if free else (signals[0], True)


def offer():
    """Once in a process that an agent watches."""
    global _file
    if _file is not None or os.environ.get('HVD_STALL_CHECK_STACKS') == '0':
        return
    try:
        import faulthandler
        number, chain = _choose()
        file = os.memfd_create(FILE_NAME)
        _file = os.open('/proc/self/fd/{}'.format(file), os.O_WRONLY | os.O_APPEND)  # the agent may empty it
        os.close(file)
        faulthandler.register(number, _file, all_threads=True, chain=chain)
        _native.call('note_stacks', number, _file)
    except (ImportError, OSError, KeyError, ValueError, RuntimeError, AttributeError):
        pass  # a stall verdict then shows no source line
