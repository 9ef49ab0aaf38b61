"""Every function of horovod.torch in a world of one, and its errors."""

import sys

import numpy as np
import pytest

import jobs


def test_queries(hvd):
    assert hvd.is_initialized() is True
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()) == (
        0, 1, 0, 1, 0, 1)
    assert hvd.is_homogeneous() is True
    for name in 'mpi gloo ddl ccl cuda rocm'.split():
        assert isinstance(getattr(hvd, name + '_built')(), bool)
    assert isinstance(hvd.nccl_built(), int)
    assert hvd.mpi_enabled() is False
    with pytest.raises(ValueError):
        hvd.mpi_threads_supported()
    with pytest.raises(ValueError):
        hvd.start_timeline('timeline.json')


def test_init_twice_and_shutdown_twice(hvd, torch):
    hvd.init()
    hvd.shutdown()
    hvd.shutdown()
    assert hvd.is_initialized() is False
    for query in (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size,
                  hvd.is_homogeneous, hvd.stop_timeline):
        with pytest.raises(ValueError, match='init'):
            query()
    with pytest.raises(ValueError):
        hvd.allreduce(torch.ones(3))
    hvd.init()
    assert hvd.size() == 1
    assert hvd.allreduce(torch.ones(3)).tolist() == [1, 1, 1]


def test_init_arguments(hvd):
    with pytest.raises(NotImplementedError):
        hvd.init(comm=[0])
    with pytest.raises(ValueError):
        hvd.init(comm=object())
    with pytest.raises(NotImplementedError):
        hvd.init(process_sets='dynamic')
    with pytest.raises(ValueError):
        hvd.init(process_sets='static')
    with pytest.raises(NotImplementedError):
        hvd.init(process_sets=[hvd.ProcessSet([0])])
    hvd.init(process_sets=[])


def test_process_sets(hvd):
    world = hvd.global_process_set
    assert (world.process_set_id, world.ranks, world.size(), world.rank(), world.included()) == (0, [0], 1, 0, True)
    own = hvd.ProcessSet([2, 0])
    assert (own.process_set_id, own.ranks, own.size(), own.rank(), own.included()) == (None, [0, 2], None, None, True)
    assert str(own) == 'ProcessSet(process_set_id=None, ranks=[0, 2], mpi_comm=None)'
    for bad in (['a'], [1.5], 7):
        with pytest.raises(ValueError):
            hvd.ProcessSet(bad)
    with pytest.raises(ValueError):
        hvd.add_process_set([0])
    assert hvd.remove_process_set(own) is False
    assert hvd.remove_process_set(world) is False
    import torch
    with pytest.raises(ValueError, match='not registered'):
        hvd.allreduce(torch.ones(1), process_set=own)


DTYPES = ['uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64']


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', [(), (0,), (1,), (17,), (3, 4, 5), (2, 0, 3)])
def test_allreduce(hvd, torch, dtype, shape):
    value = (torch.arange(int(np.prod(shape))).reshape(shape) % 100).to(getattr(torch, dtype))
    for op in (hvd.Sum, hvd.Average):
        result = hvd.allreduce(value, op=op)
        assert result is not value and result.dtype == value.dtype and result.shape == value.shape
        assert torch.equal(result, value)
        handle = hvd.allreduce_async(value, op=op, name='x')
        assert isinstance(handle, int)
        assert torch.equal(hvd.synchronize(handle), value)
        own = value.clone()
        assert hvd.allreduce_(own, op=op) is own and torch.equal(own, value)
        assert hvd.synchronize(hvd.allreduce_async_(own, op=op)) is own and torch.equal(own, value)


@pytest.mark.parametrize('dtype', DTYPES + ['bool'])
def test_broadcast(hvd, torch, dtype):
    value = (torch.arange(12).reshape(3, 4) % 2).to(getattr(torch, dtype))
    result = hvd.broadcast(value, 0)
    assert result is not value and torch.equal(result, value) and result.dtype == value.dtype
    assert hvd.broadcast_(value, root_rank=0) is value
    assert torch.equal(hvd.synchronize(hvd.broadcast_async(value, 0, name='b')), value)
    assert hvd.synchronize(hvd.broadcast_async_(value, 0)) is value


def test_handles(hvd, torch):
    handle = hvd.allreduce_async(torch.ones(4))
    while not hvd.poll(handle):
        pass
    assert hvd.synchronize(handle).tolist() == [1, 1, 1, 1]
    assert hvd.synchronize(handle) is None
    assert hvd.synchronize(123456789) is None
    assert not hvd.mpi_ops._handle_map


def test_tensors_of_a_handle_stay_alive(hvd, torch):
    handles = [hvd.allreduce_async(torch.full((1000,), float(i)), name=str(i), op=hvd.Sum) for i in range(50)]
    for i, handle in enumerate(handles):
        assert (hvd.synchronize(handle) == i).all()


def test_scaling(hvd, torch):
    value = torch.arange(4.0)
    result = hvd.allreduce(value, op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0)
    assert result.tolist() == [0, 6, 12, 18]


def test_average_is_deprecated(hvd, torch):
    with pytest.warns(DeprecationWarning):
        hvd.allreduce(torch.ones(1), average=False)
    with pytest.raises(ValueError):
        hvd.allreduce(torch.ones(1), average=False, op=hvd.Sum)


def test_bad_tensors(hvd, torch):
    with pytest.raises(ValueError, match='contiguous'):
        hvd.allreduce(torch.ones(3, 4).t())
    with pytest.raises(ValueError, match='contiguous'):
        hvd.broadcast(torch.ones(3, 4).t(), 0)
    with pytest.raises(ValueError, match='not supported'):
        hvd.allreduce(torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match='not supported'):
        hvd.allreduce(torch.ones(3, dtype=torch.complex64))
    with pytest.raises(ValueError, match='torch.Tensor'):
        hvd.allreduce([1.0])
    with pytest.raises(NotImplementedError, match='sparse'):
        hvd.allreduce(torch.ones(3).to_sparse())
    with pytest.raises(ValueError):
        hvd.broadcast(torch.ones(3), root_rank=5)
    with pytest.raises(ValueError):
        hvd.allreduce(torch.ones(3), op=77)
    with pytest.raises(NotImplementedError, match='Adasum'):
        hvd.allreduce(torch.ones(3), op=hvd.Adasum)


def test_what_is_not_there_yet_says_so(hvd, torch):
    t = torch.ones(2, 2)
    for call in (lambda: hvd.allgather(t), lambda: hvd.allgather_async(t), lambda: hvd.grouped_allgather([t]),
                 lambda: hvd.grouped_allgather_async([t]), lambda: hvd.alltoall(t), lambda: hvd.alltoall_async(t),
                 lambda: hvd.reducescatter(t), lambda: hvd.reducescatter_async(t),
                 lambda: hvd.grouped_reducescatter([t]), lambda: hvd.grouped_reducescatter_async([t]),
                 lambda: hvd.grouped_allreduce([t]), lambda: hvd.grouped_allreduce_([t]),
                 lambda: hvd.grouped_allreduce_async([t]), lambda: hvd.grouped_allreduce_async_([t]),
                 lambda: hvd.sparse_allreduce_async(t, 'x', hvd.Sum), lambda: hvd.join(), lambda: hvd.SyncBatchNorm(3),
                 lambda: hvd.allgather_object(1), lambda: hvd.elastic.run(lambda state: None),
                 lambda: hvd.elastic.TorchState()):
        with pytest.raises(NotImplementedError) as caught:
            call()
        assert 'not available yet' in str(caught.value) and '\n' not in str(caught.value)


def test_barrier(hvd):
    assert hvd.barrier() is None


def test_autograd(hvd, torch):
    x = torch.arange(3.0, requires_grad=True)
    hvd.allreduce(x * 2, op=hvd.Sum, prescale_factor=3.0).sum().backward()
    assert x.grad.tolist() == [6, 6, 6]
    x.grad = None
    hvd.broadcast(x * 2, 0).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    x.grad = None
    hvd.allreduce(x * 2, compression=hvd.Compression.fp16).sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and x.grad.dtype == torch.float32


def test_allreduce_of_a_leaf_in_place(hvd, torch):
    p = torch.nn.Parameter(torch.ones(3))
    assert hvd.allreduce_(p) is p
    assert hvd.broadcast_(p, 0) is p


def test_compression(hvd, torch):
    x = torch.tensor([1.0, 0.1], dtype=torch.float64)
    compressed, ctx = hvd.Compression.fp16.compress(x)
    assert compressed.dtype == torch.float16
    assert hvd.Compression.fp16.decompress(compressed, ctx).dtype == torch.float64
    whole = torch.tensor([1, 2])
    compressed, ctx = hvd.Compression.fp16.compress(whole)
    assert compressed is whole and hvd.Compression.fp16.decompress(compressed, ctx) is whole
    assert issubclass(hvd.Compression.none, hvd.compression.Compressor)
    assert hvd.allreduce(x, compression=hvd.Compression.fp16).dtype == torch.float64


def test_broadcast_parameters(hvd, torch):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_parameters(list(model.named_parameters()), root_rank=0)
    hvd.broadcast_parameters(model.named_parameters(), root_rank=0)
    hvd.broadcast_parameters(list(model.parameters()), root_rank=0)
    conv = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    hvd.broadcast_parameters(conv.state_dict(), root_rank=0)
    for bad in (7, 'abc', torch.ones(2)):
        with pytest.raises(ValueError, match='invalid params of type'):
            hvd.broadcast_parameters(bad, root_rank=0)


def test_broadcast_object(hvd):
    obj = {'a': [1, 2, (3, 'x')], 'b': None}
    assert hvd.broadcast_object(obj) is obj
    assert hvd.broadcast_object(obj, root_rank=0, name='state') is obj


def test_forked_child_gets_one_sentence(hvd, torch, tmp_path):
    result = jobs.run_alone(jobs.worker('forked_child.py'))
    assert 'ok' in result.output


def test_many_cycles(hvd, torch):
    jobs.run_alone(jobs.worker('cycles.py'), 200)


def test_unexpected_exit_leaves_no_traceback(runtime):
    """The exit handler shuts down; an exception or sys.exit ends the process with its own code."""
    code = 'import sys, horovod.torch as hvd\nhvd.init()\nsys.exit(3)'
    result = jobs.run([sys.executable, '-c', code], 60, HVD_AGENT=None)
    assert result.returncode == 3 and result.output == '', str(result)
