"""Blocking calls that a late rank keeps waiting: signal handlers run meanwhile, and the results are right. An exception of a
handler ends the call; what was submitted goes on, and the ranks stay in step."""

import signal
import time

import numpy
import torch

import horovod.numpy as hvd_numpy
import horovod.torch as hvd

hvd.init()
late = hvd.rank() == hvd.size() - 1
handled = []


class Enough(Exception):
    pass


def count(number, frame):
    handled.append(number)


def give_up(number, frame):
    raise Enough()


def wait_for_the_others(call):
    """The last rank comes half a second later, longer than a call waits at a stretch."""
    if late:
        time.sleep(0.5)
        return call()
    signal.signal(signal.SIGALRM, count)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    before = len(handled)
    result = call()
    assert len(handled) == before + 1, 'the handler did not run during the call'
    return result


ones = torch.ones(3)
assert torch.equal(wait_for_the_others(lambda: hvd.allreduce(ones, name='new', op=hvd.Sum)), ones * hvd.size())
mine = torch.ones(3)
assert wait_for_the_others(lambda: hvd.allreduce_(mine, name='in_place', op=hvd.Sum)) is mine
assert torch.equal(mine, ones * hvd.size())
sent = torch.full((2,), float(hvd.rank()))
assert torch.equal(wait_for_the_others(lambda: hvd.broadcast(sent, 0, name='root')), torch.zeros(2))
array = numpy.ones(4)
assert numpy.array_equal(wait_for_the_others(lambda: hvd_numpy.allreduce(array, name='array', op=hvd_numpy.Sum)),
                         array * hvd.size())

if late:
    time.sleep(0.5)
    hvd.allreduce_(ones.clone(), name='given up', op=hvd.Sum)
else:
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    given_up = ones.clone()
    try:
        hvd.allreduce_(given_up, name='given up', op=hvd.Sum)
        raise AssertionError('the exception of the handler is lost')
    except Enough:
        pass
hvd.barrier()
assert torch.equal(hvd.allreduce(ones, name='after', op=hvd.Sum), ones * hvd.size())
print('ok')
