"""A name in flight twice: ValueError at submission, and the first goes on."""

import torch

import horovod.torch as hvd

hvd.init()
if hvd.rank() != 0:
    hvd.broadcast_object(None)  # so that rank 0's first is still in flight
first = hvd.allreduce_async(torch.ones(10), op=hvd.Sum, name='twice')
if hvd.rank() == 0:
    try:
        hvd.allreduce_async(torch.ones(10), op=hvd.Sum, name='twice')
        raise SystemExit('a duplicate name was accepted')
    except ValueError as error:
        assert 'twice' in str(error) and '\n' not in str(error), error
    hvd.broadcast_object('go')
assert (hvd.synchronize(first) == hvd.size()).all()
assert (hvd.allreduce(torch.ones(10), op=hvd.Sum, name='twice') == hvd.size()).all()
print('ok', flush=True)
