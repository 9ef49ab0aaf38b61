"""What a rank of horovod.run() runs: it reads the function from a file that its agent has given it, calls it, and writes what it
returns, or raises, into a pipe to the agent."""

import os
import pickle
import sys
import traceback

from horovod.runner import _function_job


def _read_all(fd):
    """From its beginning: the ranks of a host share the file."""
    pieces, at = [], 0
    while True:
        piece = os.pread(fd, 1 << 20, at)
        if not piece:
            return b''.join(pieces)
        pieces.append(piece)
        at += len(piece)


def _write(fd, kind, data):
    with os.fdopen(os.dup(fd), 'wb') as pipe:
        pipe.write(_function_job.ENDING.pack(kind, len(data)))
        pipe.write(data)


def _failure(error):
    """The exception as bytes, without what cannot be pickled of it."""
    text = ''.join(traceback.format_exception(type(error), error, error.__traceback__))
    for kept in (error, None):
        try:
            data = _function_job.pickler().dumps(_function_job.Failure(kept, text))
            pickle.loads(data)  # also an exception whose constructor needs more than its text
            return data
        except Exception:
            continue


def main():
    """Runs the function. It does not return where that raises."""
    function_fd, result_fd = [int(fd) for fd in os.environ.pop('HVD_FUNCTION_FDS').split(',')]
    for fd in (function_fd, result_fd):
        os.set_inheritable(fd, False)
    path, call = pickle.loads(_read_all(function_fd))
    os.close(function_fd)
    sys.path[:] = path + [entry for entry in sys.path if entry not in path]
    try:
        func, args, kwargs = pickle.loads(call)
        data = _function_job.pickled(func(*args, **kwargs), 'what rank {} returned'.format(os.environ.get('HOROVOD_RANK', '?')))
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next  # from the function on
        sys.stderr.write('User function raise error: {}\n'.format(error))
        traceback.print_exc()
        _write(result_fd, _function_job.RAISED, _failure(error))
        sys.exit(1)
    _write(result_fd, _function_job.RETURNED, data)
    os.close(result_fd)


if __name__ == '__main__':
    main()
