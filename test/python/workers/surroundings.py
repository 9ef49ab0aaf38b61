"""What scripts set around the calls: default devices and types, lazy views, tensors of other classes, torch.compile.

    surroundings.py [compile]
"""

import sys
import warnings

import torch

import horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
torch.set_num_threads(1)


def everything():
    """Calls of all kinds on tensors of the processor, which name their device."""
    def ones(*shape, **more):
        return torch.ones(*shape, device='cpu', dtype=torch.float32, **more)

    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64):
        x = torch.full((5,), rank + 1, device='cpu', dtype=dtype)
        total = size * (size + 1) // 2
        for got in (hvd.allreduce(x, op=hvd.Sum), hvd.allreduce_(x.clone(), op=hvd.Sum),
                    hvd.synchronize(hvd.allreduce_async(x, op=hvd.Sum)), hvd.grouped_allreduce([x], op=hvd.Sum)[0]):
            assert got.device.type == 'cpu' and got.dtype == dtype and got.tolist() == [total] * 5, got
        assert hvd.broadcast(x, 0).tolist() == [1] * 5
        gathered = hvd.allgather(x)
        assert gathered.device.type == 'cpu' and gathered.dtype == dtype and len(gathered) == 5 * size
        assert hvd.allgather(x[:0]).shape == (0,)
        rows = torch.full((size, 2), rank, device='cpu', dtype=dtype)
        received, splits = hvd.alltoall(rows, splits=[1] * size)
        assert received[:, 0].tolist() == list(range(size)) and splits.tolist() == [1] * size
        assert splits.device.type == 'cpu' and splits.dtype == torch.int32
        assert hvd.reducescatter(rows, op=hvd.Sum).tolist() == [[sum(range(size))] * 2]
    x = ones(3, requires_grad=True)
    for y in (hvd.allreduce(x), hvd.allgather(x), hvd.broadcast(x, 0), hvd.alltoall(x, splits=[3] + [0] * (size - 1))[0],
              hvd.reducescatter(x * ones(3), op=hvd.Sum), hvd.allreduce(x, op=hvd.Max), hvd.allreduce(x, op=hvd.Product)):
        y.sum().backward()
        assert x.grad.device.type == 'cpu', x.grad
    indices = torch.tensor([[0, 2]], device='cpu')
    sparse = torch.sparse_coo_tensor(indices, ones(2), (4,), device='cpu')
    assert hvd.sparse_allreduce_async(sparse, 's', hvd.Sum)().to_dense().tolist() == [size, 0, size, 0]
    assert hvd.broadcast_object({'a': [1, rank], 't': ones(2)}, 0)['a'] == [1, 0]
    assert hvd.allgather_object(rank) == list(range(size))
    training(ones)


def training(ones):
    model = torch.nn.Linear(4, 3, device='cpu', dtype=torch.float32)
    embedding = torch.nn.Embedding(6, 4, sparse=True, device='cpu', dtype=torch.float32)
    for module, kind, sparse in ((model, torch.optim.Adam, False), (embedding, torch.optim.SGD, True)):
        hvd.broadcast_parameters(module.state_dict(), 0)
        optimizer = hvd.DistributedOptimizer(kind(module.parameters(), lr=0.1), named_parameters=module.named_parameters())
        hvd.broadcast_optimizer_state(optimizer, 0)
        for _ in range(2):
            optimizer.zero_grad()
            given = torch.tensor([rank, 2], device='cpu') if sparse else ones(2, 4) * (rank + 1)
            module(given).pow(2).sum().backward()
            optimizer.step()
        weight = next(module.parameters()).detach()
        assert (hvd.allgather(weight.unsqueeze(0)) == weight).all()
    norm = hvd.SyncBatchNorm(3)
    norm.to(device='cpu', dtype=torch.float32) if norm.weight.device.type != 'meta' else norm.to_empty(device='cpu')
    for name in ('weight', 'running_var'):
        getattr(norm, name).data.fill_(1)
    for name in ('bias', 'running_mean'):
        getattr(norm, name).data.fill_(0)
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.fill_(0)
    norm = norm.float()
    x = (torch.arange(12, device='cpu', dtype=torch.float32).view(4, 3) + rank).requires_grad_()
    norm(x).sum().backward()
    assert x.grad.device.type == 'cpu'


def sentence(call, *words):
    try:
        call()
    except (ValueError, NotImplementedError) as error:
        assert '\n' not in str(error) and all(word in str(error) for word in words), error
    else:
        raise SystemExit('no error with {}'.format(words))


def lazy_views():
    z = torch.tensor([1 + 2j, 3 - 4j])
    negative = torch._neg_view(torch.arange(4.0) + rank)
    assert negative.is_neg() and negative.is_contiguous()
    want = [-sum(i + r for r in range(size)) for i in range(4)]
    one = z[:1].conj().imag  # a single element is in a row, whatever its stride
    assert one.is_neg() and one.is_contiguous()
    for call in (lambda x: hvd.allreduce(x, op=hvd.Sum), lambda x: hvd.synchronize(hvd.allreduce_async(x, op=hvd.Sum)),
                 lambda x: hvd.grouped_allreduce([x], op=hvd.Sum)[0]):
        assert call(negative).tolist() == want, call(negative)
        assert call(one).tolist() == [-2.0 * size]
    assert hvd.allgather(one).tolist() == [-2.0] * size and hvd.broadcast(one, 0).tolist() == [-2.0]
    for call in (hvd.allreduce_, hvd.allreduce_async_, lambda x: hvd.broadcast_(x, 0), lambda x: hvd.grouped_allreduce_([x])):
        sentence(lambda: call(negative), 'is_neg()', 'resolve_neg()')


def versions_rise():
    x, calls = torch.ones(4), (
        lambda t: hvd.allreduce_(t), lambda t: hvd.broadcast_(t, 0), lambda t: hvd.grouped_allreduce_([t]),
        lambda t: hvd.synchronize(hvd.allreduce_async_(t)), lambda t: hvd.synchronize(hvd.broadcast_async_(t, 0)),
        lambda t: hvd.synchronize(hvd.grouped_allreduce_async_([t])), lambda t: hvd.allreduce_(t, name='with a name'))
    for number, call in enumerate(calls):
        for t in (x, torch.ones(()), torch.ones(0), torch.ones(2, 3), torch.nn.Parameter(torch.ones(2)), torch.ones(70000)):
            before = t._version
            call(t)
            assert t._version > before, (number, t.shape)
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    hvd.allreduce_(y.detach(), op=hvd.Sum)
    try:
        y.sum().backward()
    except RuntimeError as error:
        assert 'modified by an inplace operation' in str(error), error
    else:
        raise SystemExit('autograd did not notice')
    with torch.inference_mode():
        assert hvd.allreduce_(torch.ones(2)).tolist() == [1, 1]
    kept = torch.ones(2)
    before = kept._version
    hvd.allreduce(kept)
    assert kept._version == before


class Wrapper(torch.Tensor):
    """As DTensor: what it shows is not in its own memory."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function, kinds, arguments=(), named=None):
        raise NotImplementedError(function)


class Tagged(torch.Tensor):
    """A class of its own, with memory of its own."""


def other_tensors():
    wrapper = Wrapper(torch.ones(3))
    for call in (hvd.allreduce, hvd.allreduce_, hvd.allreduce_async, hvd.allgather, lambda t: hvd.broadcast_(t, 0),
                 lambda t: hvd.grouped_allreduce([t])):
        sentence(lambda: call(wrapper), 'Wrapper', 'no memory of its own')
    assert hvd.allreduce_(torch.ones(3).as_subclass(Tagged), op=hvd.Sum).tolist() == [size] * 3
    expanded = torch.ones(1).expand(4)
    for call in (hvd.allreduce_, lambda t: hvd.broadcast_(t, 0), lambda t: hvd.grouped_allreduce_([t]),
                 lambda t: hvd.broadcast_parameters([('buffer', t)], 0)):
        sentence(lambda: call(expanded), 'expanded', 'clone()')
    sys.modules['cloudpickle'] = None  # as where it is not installed
    sentence(lambda: hvd.broadcast_object(lambda: 1, 0), 'rank 0 cannot pickle', 'pip install cloudpickle')
    sentence(lambda: hvd.allgather_object((lambda: 1) if rank == 0 else 1), 'rank 0 cannot pickle', 'cloudpickle')
    del sys.modules['cloudpickle']
    assert hvd.allgather_object(rank) == list(range(size))


def deprecated_average():
    x = torch.ones(2)
    calls = [lambda: hvd.allreduce(x, average=True), lambda: hvd.allreduce_(x, average=True),
             lambda: hvd.synchronize(hvd.allreduce_async(x, average=True)),
             lambda: hvd.synchronize(hvd.allreduce_async_(x, average=True)),
             lambda: hvd.grouped_allreduce([x], average=True), lambda: hvd.grouped_allreduce_([x], average=True),
             lambda: hvd.synchronize(hvd.grouped_allreduce_async([x], average=True)),
             lambda: hvd.synchronize(hvd.grouped_allreduce_async_([x], average=True)),
             lambda: hvd.allreduce(torch.ones(2, requires_grad=True), average=True)]
    for number, call in enumerate(calls):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            call()
        assert [(w.category, w.filename) for w in caught] == [(DeprecationWarning, __file__)], (number, caught)


def compiled():
    def step(x, w):
        y = (x * w).sum(0)
        z = hvd.allreduce(y, op=hvd.Sum)
        hvd.allreduce_(z, name='again')
        return z * 2 + hvd.rank() * 0 + len(hvd.allgather(z)) * 0

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        got = torch.compile(step, backend='eager')(torch.ones(2, 3), torch.ones(3))
    assert got.tolist() == [4.0 * size] * 3, got
    assert not [w for w in caught if 'ynamo' in str(w.message) or 'horovod' in w.filename], [str(w.message) for w in caught]
    torch._dynamo.reset()
    try:
        torch.compile(step, backend='eager', fullgraph=True)(torch.ones(2, 3), torch.ones(3))
    except Exception as error:
        assert 'cannot be part of a graph' in str(error), error
    else:
        raise SystemExit('a collective went into a graph')


assert 'torch._dynamo' not in sys.modules or not hasattr(torch, 'compiler')
if sys.argv[1:] == ['compile']:
    compiled()
else:
    lazy_views()
    versions_rise()
    other_tensors()
    deprecated_average()
    everything()
    torch.set_default_dtype(torch.float64)
    everything()
    torch.set_default_dtype(torch.float32)
    torch.set_default_tensor_type(torch.DoubleTensor)
    everything()
    torch.set_default_tensor_type(torch.FloatTensor)
    if hasattr(torch, 'set_default_device'):
        torch.set_default_device('meta')
        everything()
        torch.set_default_device(None)
        with torch.device('meta'):
            everything()
print('ok', flush=True)
