"""Trains until the file argv[1] exists: the same gradients in each step, all under way at once, whose sums have to be the same
bits each time, on all ranks, whatever the settings are by then. With the argument "dies", rank 1 is killed then."""

import hashlib
import os
import signal
import sys

import horovod.numpy as hvd
import numpy as np

hvd.init()
random = np.random.default_rng(hvd.rank() + 1)
gradients = [random.standard_normal(count, dtype=np.float32) for count in (300_000, 70_001, 5_000, 30)]


def step():
    handles = [hvd.allreduce_async(gradient, name=f"gradient.{i}", op=hvd.Sum) for i, gradient in enumerate(gradients)]
    sums = [hvd.synchronize(handle) for handle in handles]
    return hashlib.sha256(b"".join(total.tobytes() for total in sums)).hexdigest()


first = step()
steps = 1
stop = False
while not stop:
    assert step() == first, f"the sums of step {steps} have other bits"
    steps += 1
    if hvd.rank() == 1 and sys.argv[2:] == ["dies"] and os.path.exists(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    if steps % 20 == 0:
        found = np.array([float(os.path.exists(sys.argv[1]))], dtype=np.float32)
        stop = hvd.allreduce(found, name="stop", op=hvd.Max)[0] > 0
print("bits", first, flush=True)
