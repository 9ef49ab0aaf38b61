"""One process with tensors on two GPUs; run by on_fake_gpus.py, or as it is where each rank sees two GPUs of its own.

    gpu_devices.py WAY      nccl or staged: what carries the data
"""

import sys

import torch

import horovod.torch as hvd
from horovod.torch import framework

way = sys.argv[1]
hvd.init()
rank, size = hvd.rank(), hvd.size()
cuda = torch.cuda.is_available()
OWN = (2 * hvd.local_rank(), 2 * hvd.local_rank() + 1)
if not cuda:  # those of 4 columns stand for tensors on the second GPU of the rank, unless they say another
    framework.fake_device = lambda tensor: OWN[1 if tensor.dim() and tensor.shape[-1] == 4 else 0]


def on(which, value, rows=2, columns=None):
    """A tensor on this GPU of the rank."""
    device = torch.device('cuda', OWN[which]) if cuda else 'cpu'
    tensor = torch.full((rows, columns or 3 + which), float(value), device=device)
    tensor.gpu = OWN[which]
    return tensor


# All at once, in any order, alike but for their devices, on the world and on a set.
pair = hvd.add_process_set([0, size - 1]) if size > 2 else hvd.global_process_set
for round in range(3):
    names = [(which, i, rows) for i, rows in enumerate((1, 7, 9000)) for which in (0, 1)]
    handles = {}
    for name in names if rank % 2 else names[::-1]:
        which, i, rows = name
        handles[name] = hvd.allreduce_async(on(which, rank + i, rows), op=hvd.Sum, name='x{}.{}'.format(which, i))
        if pair.included():
            handles['pair', name] = hvd.allreduce_async(on(1 - which, rank, rows), op=hvd.Sum, process_set=pair,
                                                        name='pair{}.{}'.format(which, i))
    for name, handle in handles.items():
        expected = (size - 1 if size > 1 else 0) if name[0] == 'pair' else sum(r + name[1] for r in range(size))
        assert (hvd.synchronize(handle) == expected).all(), name

# The ranks' tensors of one name are on whatever device each likes.
for which in (rank % 2, (rank + 1) % 2, rank % 2):
    result = hvd.allreduce(on(which, rank, columns=5), op=hvd.Sum, name='mixed')
    assert result.shape == (2, 5) and (result == sum(range(size))).all()

# A group has one device, and is refused where it has not, before anything is submitted.
for group in ([on(0, 1), on(1, 1)], [on(0, 1), torch.ones(2)])[:2 if cuda else 1]:
    try:
        hvd.grouped_allreduce(group, name='group')
        raise SystemExit('a group of two devices was accepted')
    except ValueError as error:
        assert str(error) == ('The tensors of a group are on different devices; put them on one, or submit them apart.'), error
results = [hvd.grouped_allreduce_async([on(which, rank, rows) for rows in (2, 6000)], op=hvd.Sum, name='group%d' % which)
           for which in (0, 1)]
for handle in results:
    assert all((result == sum(range(size))).all() for result in hvd.synchronize(handle))


# A model whose layers are on two devices, its gradients exchanged one by one, in groups, as views of buckets.
class Model(torch.nn.Module):
    def __init__(self):
        super(Model, self).__init__()
        torch.manual_seed(1)
        self.first, self.second = torch.nn.Linear(3, 4, bias=False), torch.nn.Linear(4, 2, bias=False)
        if cuda:
            self.first.to(OWN[0]), self.second.to(OWN[1])

    def forward(self, x):
        y = self.first(x.to(self.first.weight.device))
        return self.second(y.to(self.second.weight.device))


def train(wrap):
    model = Model()
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1), model)
    for step in range(4):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss = 0
        for r in range(size) if wrap is alone else [rank]:
            torch.manual_seed(10 * step + r)
            loss = loss + model(torch.randn(5, 3)).pow(2).mean() / (size if wrap is alone else 1)
        loss.backward()
        optimizer.step()
    return [p.detach().cpu() for p in model.parameters()]


def alone(optimizer, model):
    return optimizer


expected = train(alone)
for more in ({}, {'groups': 1}, {'gradient_as_bucket_view': True}):
    got = train(lambda optimizer, model: hvd.DistributedOptimizer(optimizer, model.named_parameters(), **more))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(got, expected)), more
assert not hvd.mpi_ops._handle_map and not hvd.mpi_ops._operations._streams
from horovod.common import _library  # noqa: E402
assert _library.enabled('nccl') == (way == 'nccl'), way
hvd.shutdown()
print('ok', flush=True)
