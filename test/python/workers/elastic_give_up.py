"""A rank that gives up its world: its pending operations fail, queries go on, and the next world is as good as the first.

    elastic_give_up.py FILE    rank 0 makes the file when it has given up; until then rank 1 does not leave
"""

import os
import sys
import threading
import time

import torch

import horovod.torch as hvd
from horovod.common import _library

hvd.init()
given_up = sys.argv[1]
failures = []


def wait_alone():
    try:
        hvd.allreduce(torch.ones(1), name='thread')
    except hvd.HorovodInternalError as error:
        failures.append(str(error))


if hvd.rank() == 0:
    handle = hvd.allreduce_async(torch.ones(1), name='alone')
    thread = threading.Thread(target=wait_alone)
    thread.start()
    _library.give_up()
    thread.join(30)
    try:
        hvd.synchronize(handle)
    except hvd.HorovodInternalError as error:
        failures.append(str(error))
    try:
        hvd.allreduce(torch.ones(1), name='late')
    except hvd.HorovodInternalError as error:
        failures.append(str(error))
    assert len(failures) == 3 and all('given up' in failure for failure in failures), failures
    assert (hvd.rank(), hvd.size()) == (0, 2)
    try:
        hvd.should_stop()
    except hvd.HorovodInternalError:
        pass
    else:
        raise AssertionError('a commit in a world that was given up')
    open(given_up, 'w').close()
else:
    deadline = time.monotonic() + 60
    while not os.path.exists(given_up) and time.monotonic() < deadline:
        time.sleep(0.01)
hvd.shutdown()
hvd.init()
assert float(hvd.allreduce(torch.ones(1), op=hvd.Sum)) == 2
print('ok')
