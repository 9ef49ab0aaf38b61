"""A signal handler of the script runs while the script waits in a collective, and may end the wait."""

import signal
import time

import torch

import horovod.torch as hvd


class Enough(Exception):
    pass


def handler(*unused):
    raise Enough()


hvd.init()
value = torch.ones(1000)
if hvd.rank() == 0:
    signal.signal(signal.SIGALRM, handler)
    handle = hvd.allreduce_async_(value, op=hvd.Sum, name='late')
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.time()
    try:
        hvd.synchronize(handle)
        raise SystemExit('the wait was not ended')
    except Enough:
        assert time.time() - started < 1.0, time.time() - started
else:
    time.sleep(1.5)
    handle = hvd.allreduce_async_(value, op=hvd.Sum, name='late')
assert hvd.synchronize(handle) is value  # the handle is still good
assert (value == hvd.size()).all()
hvd.barrier()
print('ok', flush=True)
