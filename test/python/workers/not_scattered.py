"""An operation that reducescatter does not take is the same error on all ranks, whatever the type, and the world goes on."""

import numpy
import torch

import horovod.numpy as hvd_numpy
import horovod.torch as hvd

hvd.init()
size = hvd.size()
types = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float32, torch.float64)
calls = {
    'reducescatter': lambda x, op: hvd.reducescatter(x, op=op),
    'async': lambda x, op: hvd.synchronize(hvd.reducescatter_async(x, op=op, name='scattered')),
    'group': lambda x, op: hvd.grouped_reducescatter([x, x], op=op),
    'numpy': lambda x, op: hvd_numpy.reducescatter(x.numpy(), op=op),
}
for op in (hvd.Min, hvd.Max, hvd.Product, hvd.Adasum):
    for dtype in types:
        for name, call in calls.items():
            if name == 'numpy' and dtype == torch.bfloat16:
                continue  # NumPy has no such type
            try:
                call(torch.ones(size).to(dtype), op)
            except hvd.HorovodInternalError as error:
                assert 'takes Sum and Average only' in str(error) and 'cast' not in str(error), (op, dtype, name, error)
            else:
                raise SystemExit('{} of {} with {} was accepted'.format(name, dtype, op))
    assert (hvd.reducescatter(torch.ones(size), op=hvd.Sum) == size).all()
assert (numpy.asarray(hvd_numpy.reducescatter(numpy.ones(size), op=hvd.Sum)) == size).all()
print('ok', flush=True)
