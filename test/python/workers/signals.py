"""A signal handler of the script runs while the script waits in a collective, and may end the wait."""

import signal
import time

import torch

import horovod.torch as hvd
from horovod.torch import gradient_memory


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

# Also one that is not asynchronous, whose result nobody gets then. Its memory is not used for anything else: the other ranks' values
# are still to come.
for count in (1000, 1 << 20):
    if hvd.rank() == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            hvd.allreduce(torch.ones(count), op=hvd.Sum, name='blocking')
            raise SystemExit('the call was not ended')
        except Enough:
            others = [torch.full((count,), -1.0) for _ in range(20)]
        hvd.barrier()
        assert all((other == -1).all() for other in others)
    else:
        time.sleep(0.5)
        assert (hvd.allreduce(torch.ones(count), op=hvd.Sum, name='blocking') == hvd.size()).all()
        hvd.barrier()

# And the end of backward(), after which step() takes it up again.
gradient_memory.HOME_ABOVE = 0
parameters = [torch.nn.Parameter(torch.zeros(70000)) for _ in range(3)]
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1.0), op=hvd.Sum)
for step in range(6):
    optimizer.zero_grad(set_to_none=True)
    loss = sum([p.sum() * (hvd.rank() + 1.0) for p in parameters])
    if hvd.rank() == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.3 if step % 2 else 0.05)
        try:
            loss.backward()
            raise SystemExit('backward {} was not ended'.format(step))
        except Enough:
            assert optimizer._under_way
    else:
        time.sleep(0.7)
        loss.backward()
    if step >= 4:
        hvd.barrier()
    optimizer.step()
    for p in parameters:
        assert (p.grad == hvd.size() * (hvd.size() + 1) / 2).all(), (step, p.grad)

hvd.barrier()
print('ok', flush=True)
