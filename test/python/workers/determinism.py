"""Gradients of many sizes, submitted with random delays and in flight together: prints a hash of the training."""

import hashlib
import random
import sys
import time

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
delays = random.Random(int(sys.argv[1]) * 100 + hvd.rank())
torch.manual_seed(hvd.rank())
tensors = [torch.randn(n) for n in (1, 7, 100, 3000, 70000, 300000)]
digest = hashlib.sha256()
for step in range(10):
    order = list(enumerate(tensors))
    delays.shuffle(order)
    handles = []
    for i, tensor in order:
        if delays.random() < 0.3:
            time.sleep(delays.random() * 0.004)
        handles.append((i, hvd.allreduce_async_(tensor.div_(1.5 + hvd.rank()), name='gradient.{}'.format(i))))
    for i, handle in sorted(handles):
        digest.update(hvd.synchronize(handle).numpy().tobytes())
print('hash', digest.hexdigest(), flush=True)
print('ok', flush=True)
