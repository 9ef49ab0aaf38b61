"""A function that runs on all ranks of a job, for horovod.run(): the side of the process that calls it.

hvdrun gets the function over a socket that it inherits, and passes it to the ranks over the connections of the job; what they return
comes back the same way (launcher/driver/services/function_channel.h). So what is unpickled here comes from a rank of the caller's own
job, which had to show the job's secret.
"""

import contextlib
import json
import os
import pickle
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

# A piece of what a worker wrote: worker, rank, length.
_PIECE = struct.Struct('<III')
# What a worker writes: how its function ended, and the length of the pickle that follows.
ENDING = struct.Struct('<BQ')
RETURNED, RAISED = 0, 1

# Seconds that hvdrun has to end the job after Ctrl-C before it is asked to, and then before it is killed.
_OWN_INTERRUPT_S, _END_S = 1, 60

FAILED = ('Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. '
          'The first process to do so was:\nProcess name: {}\nExit code: {}\n')


def pickler():
    """cloudpickle if it is installed, else pickle."""
    try:
        import cloudpickle
        return cloudpickle
    except ImportError:
        return pickle


def pickled(value, what):
    """The value as bytes.

    Raises:
        ValueError: It cannot be pickled; `what` names it in the message.
    """
    try:
        return pickler().dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError('horovod.run() cannot pickle {}: {}{}'.format(what, error, _cure())) from error


def _cure():
    return '' if pickler() is not pickle else (
        '; functions of a script itself, lambdas and local functions need cloudpickle, which is not installed '
        '(pip install cloudpickle)')


def _check_travels(func):
    """pickle names the functions of a script, and the ranks have another one."""
    if pickler() is pickle and getattr(func, '__module__', None) == '__main__':
        raise ValueError('horovod.run() cannot send {!r} to the ranks{}.'.format(getattr(func, '__qualname__', func), _cure()))


class Failure:
    """The exception of a rank as raised here. error: the exception, or None if it cannot be pickled."""

    def __init__(self, error, text):
        self.error = error
        self.text = text


class RemoteError(Exception):
    """Stands for an exception of a rank that cannot be pickled; its text has the rank's traceback."""


class _Results:
    """What the ranks have returned so far."""

    def __init__(self):
        self._bytes = {}  # by worker
        self._ranks = {}

    def add(self, worker, rank, piece):
        self._bytes.setdefault(worker, bytearray()).extend(piece)
        self._ranks[worker] = rank

    def by_rank(self):
        """(values, failures), each a dict by rank, of the ranks whose function has ended."""
        values, failures = {}, {}
        for worker, data in self._bytes.items():
            if len(data) < ENDING.size:
                continue
            kind, length = ENDING.unpack_from(data)
            if len(data) < ENDING.size + length:
                continue
            try:
                value = pickle.loads(memoryview(data)[ENDING.size:ENDING.size + length])
            except Exception as error:  # a class that this process cannot import, for example
                value, kind = Failure(None, 'its result cannot be unpickled here: {!r}'.format(error)), RAISED
            (failures if kind == RAISED else values)[self._ranks[worker]] = value
        return values, failures


def _read_results(channel, results):
    """To the end of the job. hvdrun that is killed resets the connection; what is missing then shows in `results`."""
    with channel.makefile('rb', buffering=1 << 20) as pieces, contextlib.suppress(ConnectionResetError):
        while True:
            head = pieces.read(_PIECE.size)
            if len(head) < _PIECE.size:
                return
            worker, rank, length = _PIECE.unpack(head)
            results.add(worker, rank, pieces.read(length))


def _forward(source, target):
    """Output for a sys.stdout that is no descriptor, as in a notebook."""
    with source:
        for line in iter(source.readline, b''):
            target.write(line.decode('utf-8', 'replace'))
            target.flush()


def _outputs():
    """What hvdrun gets as stdout and stderr, and the file object to which that is passed on: None, None if it writes itself."""
    outputs = []
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            is_own = stream.fileno() == descriptor
        except (AttributeError, OSError, ValueError):
            is_own = False
        if is_own:
            stream.flush()
        outputs.append((None, None) if is_own or stream is None else (subprocess.PIPE, stream))
    return outputs


@contextlib.contextmanager
def error_file():
    """The path at which hvdrun may write why a job failed, for this user alone."""
    folder = tempfile.mkdtemp(prefix='hvdrun-')
    try:
        yield os.path.join(folder, 'error.json')
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(hvdrun, flags, executable, func, args, kwargs, count):
    """Runs `func(*args, **kwargs)` on the ranks that hvdrun starts with these flags.

    Args:
        hvdrun: The path of the program.
        flags: Its arguments, without the command.
        executable: The ranks' Python interpreter.
        count: How many results to return.

    Returns:
        A list: what the ranks 0 to count-1 have returned.

    Raises:
        RuntimeError: The job failed. The exception of a rank is its cause.
        ValueError: The function or its arguments cannot be pickled.
    """
    _check_travels(func)
    call = pickled((func, args, kwargs), 'the function {!r} or its arguments'.format(getattr(func, '__qualname__', func)))
    # First the folders of modules, then what may refer to them.
    function = pickle.dumps((list(sys.path), call))
    results = _Results()
    with error_file() as path:
        arguments = [hvdrun] + flags + ['--error-file', path]
        code = _run_job(arguments, [executable, '-m', 'horovod.runner.run_task'], function, results)
        values, failures = results.by_rank()
        if code != 0:
            raise _failure_of(code, read_error(path), failures)
    missing = [rank for rank in range(count) if rank not in values]
    if missing:
        raise RuntimeError('horovod.run(): rank {} has ended with exit code 0 and returned nothing; os._exit() in the function does '
                           'that.'.format(', '.join(str(rank) for rank in missing)))
    return [values[rank] for rank in range(count)]


def _run_job(arguments, command, function, results):
    """The exit code of hvdrun."""
    ours, theirs = socket.socketpair()
    outputs = _outputs()
    with ours:
        with theirs:
            process = subprocess.Popen(arguments + ['--function-channel', str(theirs.fileno()), '--'] + command,
                                       stdin=subprocess.DEVNULL, stdout=outputs[0][0], stderr=outputs[1][0],
                                       pass_fds=[theirs.fileno()])
        threads = [threading.Thread(target=_read_results, args=(ours, results), daemon=True)]
        for source, (_, target) in zip((process.stdout, process.stderr), outputs):
            if source is not None:
                threads.append(threading.Thread(target=_forward, args=(source, target), daemon=True))
        for thread in threads:
            thread.start()
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # hvdrun reports the reason
                ours.sendall(struct.pack('<Q', len(function)))
                ours.sendall(function)
            code = process.wait()
        except BaseException:
            _end(process)
            raise
        finally:
            for thread in threads:
                thread.join()
    return code


def _end(process):
    """Ends the job. A Ctrl-C at a terminal has reached hvdrun as well, that of a notebook has not."""
    for number, seconds in ((None, _OWN_INTERRUPT_S), (signal.SIGTERM, _END_S), (signal.SIGKILL, _END_S)):
        if number is not None:
            process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return


def read_error(path):
    """What hvdrun wrote there; {} if that is nothing."""
    try:
        with open(path, encoding='utf-8') as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def failure_text(code, error):
    """The sentence of Horovod about a job that failed. error: what hvdrun wrote to its error file."""
    rank = error.get('rank')
    if rank is None:
        return ('Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. '
                'hvdrun ended with exit code {}: {}'.format(code, error.get('report', 'its last lines say why').strip()))
    entry = next((entry for entry in error.get('ranks', ()) if entry.get('rank') == rank), {})
    own_code = -entry['signal'] if 'signal' in entry else entry.get('exit_code', code)
    return FAILED.format(rank, own_code) + error.get('report', '').strip()


def _failure_of(code, error, failures):
    """The exception to raise. The first cause is the rank that hvdrun names, else any rank that sent its exception."""
    rank = error.get('rank', min(failures) if failures else None)
    if rank not in failures:
        return RuntimeError(failure_text(code, error))
    failure = failures[rank]
    error = dict(error, report=error.get('report', '').split('\n')[0])  # the rest is its last lines
    raised = RuntimeError('{}\nRank {} raised:\n{}'.format(failure_text(code, error), rank, failure.text))
    raised.__cause__ = failure.error or RemoteError(failure.text)
    return raised
