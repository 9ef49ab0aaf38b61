"""Functions that ranks of horovod.run() run, and a script that runs some of its own: functions.py CASE."""

import io
import os
import signal
import sys
import threading
import time


class Kept(object):
    def __init__(self, value):
        self.value = value


class Awkward(Exception):
    """Can be pickled, not unpickled."""

    def __init__(self, first, second):
        Exception.__init__(self, '{} and {}'.format(first, second))


def place(first, second=0):
    return int(os.environ['HOROVOD_RANK']), int(os.environ['HOROVOD_SIZE']), first, second


def total(value):
    import numpy as np

    import horovod.numpy as hvd
    hvd.init()
    return int(hvd.allreduce(np.array([value + hvd.rank()]), op=hvd.Sum)[0])


def kept(value):
    return Kept(value)


def fails(rank, error):
    if int(os.environ['HOROVOD_RANK']) == rank:
        raise error
    time.sleep(600)


def raises_awkwardly():
    raise Awkward('one', 'two')


def leaves(code):
    os._exit(code)


def unpicklable():
    return threading.Lock()


def large(count):
    return bytes([int(os.environ['HOROVOD_RANK'])]) * count


def sleeps():
    print('sleeping', flush=True)
    time.sleep(600)


def interrupted():
    """As in a notebook, where the signal reaches this process alone."""
    import horovod
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        horovod.run(sleeps, num_proc=2)
    except KeyboardInterrupt:
        print('interrupted')


def notebook():
    """Whose sys.stdout and sys.stderr have no descriptor."""
    import horovod
    out, err = io.StringIO(), io.StringIO()
    sys.stdout, sys.stderr = out, err
    try:
        horovod.run(shouts, num_proc=2)
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    print(sorted(out.getvalue().splitlines()), sorted(err.getvalue().splitlines()))


def shouts():
    print('out', flush=True)
    print('err', file=sys.stderr, flush=True)


def own():
    """Functions and classes of a script, a closure and a lambda."""
    import horovod
    base = 10
    assert horovod.run(lambda: base + int(os.environ['HOROVOD_RANK']), num_proc=2) == [10, 11]
    results = horovod.run(kept, (3,), num_proc=2)
    assert [type(result) is Kept and result.value for result in results] == [3, 3]
    print('ok')


def without_cloudpickle():
    import horovod
    sys.modules['cloudpickle'] = None
    try:
        horovod.run(kept, (3,), num_proc=2)
    except ValueError as error:
        print(error)


if __name__ == '__main__':
    globals()[sys.argv[1]]()
