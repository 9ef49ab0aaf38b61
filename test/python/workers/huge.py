"""More than 2^31 elements."""

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
count = 2 ** 31 + 12345
x = torch.full((count,), 1 + hvd.rank(), dtype=torch.uint8)
assert hvd.allreduce_(x, op=hvd.Sum) is x
total = sum(1 + r for r in range(hvd.size()))
assert x[0] == x[-1] == x[2 ** 31] == total and int(x.min()) == int(x.max()) == total
x[-1] = 40 + hvd.rank()
hvd.broadcast_(x, 1)
assert x[-1] == 41
print('ok', flush=True)
