"""Every function of horovod.torch in a world of one, and its errors."""

import os
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
    with pytest.raises(ValueError, match='HOROVOD_TIMELINE=DYNAMIC'):
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


def test_init_arguments(hvd, monkeypatch):
    monkeypatch.setenv('HOROVOD_DYNAMIC_PROCESS_SETS', '')  # so that what init() sets is taken back
    monkeypatch.delenv('HOROVOD_DYNAMIC_PROCESS_SETS', raising=False)
    hvd.init(comm=[0])
    hvd.init(comm=[])
    for comm in ([0, 1], [1]):
        with pytest.raises(NotImplementedError, match='ProcessSet'):
            hvd.init(comm=comm)
    for comm in (object(), 7, ['a']):
        with pytest.raises(ValueError, match='comm'):
            hvd.init(comm=comm)
    for sets in ('static', 7, ['a'], [[0]]):
        with pytest.raises(ValueError, match='process_sets'):
            hvd.init(process_sets=sets)
    hvd.init(process_sets=[])
    hvd.shutdown()
    with pytest.raises(ValueError, match='^Horovod initialization failed: .*5'):
        hvd.init(process_sets=[hvd.ProcessSet([0, 5])])
    assert not hvd.is_initialized()
    hvd.init(process_sets='Dynamic')
    assert os.environ['HOROVOD_DYNAMIC_PROCESS_SETS'] == '1'


def test_process_sets(hvd, monkeypatch):
    world = hvd.global_process_set
    assert (world.process_set_id, world.ranks, world.size(), world.rank(), world.included()) == (0, [0], 1, 0, True)
    own = hvd.ProcessSet([2, 0])
    assert (own.process_set_id, own.ranks, own.size(), own.rank(), own.included()) == (None, [0, 2], None, None, True)
    assert str(own) == 'ProcessSet(process_set_id=None, ranks=[0, 2], mpi_comm=None)'
    for bad in (['a'], [1.5], 7):
        with pytest.raises(ValueError):
            hvd.ProcessSet(bad)
    assert hvd.mpi_ops._basics._get_process_set_ids_and_ranks() == {0: [0]}
    monkeypatch.delenv('HOROVOD_DYNAMIC_PROCESS_SETS', raising=False)
    with pytest.raises(ValueError, match='HOROVOD_DYNAMIC_PROCESS_SETS'):
        hvd.add_process_set([0])
    monkeypatch.setenv('HOROVOD_DYNAMIC_PROCESS_SETS', 'perhaps')
    with pytest.raises(ValueError, match='perhaps'):
        hvd.add_process_set([0])
    monkeypatch.setenv('HOROVOD_DYNAMIC_PROCESS_SETS', '1')
    with pytest.raises(ValueError, match='already'):
        hvd.add_process_set([0])
    assert hvd.mpi_ops._basics._add_process_set_impl([0]) is None
    assert hvd.mpi_ops._basics._remove_process_set_impl(7) is None
    with pytest.raises(ValueError, match='twice'):
        hvd.add_process_set([0, 0])
    from horovod.common import process_sets
    assert process_sets._temp_process_set_object(0) is world
    assert process_sets._temp_process_set_object(3).process_set_id == 3
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
    with pytest.raises(ValueError, match='average'):
        hvd.allreduce(torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match='not supported'):
        hvd.allreduce(torch.ones(3, dtype=torch.complex64))
    with pytest.raises(ValueError, match='torch.Tensor'):
        hvd.allreduce([1.0])
    with pytest.raises(ValueError, match='sparse'):
        hvd.allreduce(torch.ones(3).to_sparse())
    with pytest.raises(NotImplementedError, match='meta'):
        hvd.allreduce(torch.ones(3, device='meta'))
    with pytest.raises(ValueError):
        hvd.broadcast(torch.ones(3), root_rank=5)
    with pytest.raises(ValueError):
        hvd.allreduce(torch.ones(3), op=77)
    with pytest.raises(ValueError, match='Adasum'):
        hvd.allreduce(torch.ones(3, dtype=torch.int32), op=hvd.Adasum)
    with pytest.raises(ValueError, match='scalar'):
        hvd.reducescatter(torch.tensor(1.0))
    for splits in ([], [1, 2], [-1], [4], ['a'], 3, torch.tensor([3]), torch.tensor([[3]], dtype=torch.int32)):
        with pytest.raises(ValueError, match='splits'):
            hvd.alltoall(torch.ones(3), splits=splits)
    with pytest.raises(hvd.HorovodInternalError):
        hvd.allgather(torch.tensor(1.0))
    with pytest.raises(hvd.HorovodInternalError):
        hvd.alltoall(torch.tensor(1.0))
    with pytest.raises(hvd.HorovodInternalError):
        hvd.reducescatter(torch.ones(3), op=hvd.Max)
    with pytest.raises(ValueError, match='at least one'):
        hvd.grouped_allreduce([])
    assert not hvd.mpi_ops._handle_map


ALL_DTYPES = ['bool', 'uint8', 'int8', 'uint16', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64',
              'float8_e4m3fn', 'float8_e5m2']


@pytest.mark.parametrize('dtype', ALL_DTYPES)
def test_every_type_alone(hvd, torch, dtype):
    if not hasattr(torch, dtype):
        pytest.skip('this torch has no {}'.format(dtype))
    value = (torch.arange(12).reshape(6, 2) % 2).float().to(getattr(torch, dtype))

    def same(result, count=6):
        assert result.dtype == value.dtype and result.shape == (count, 2)
        assert torch.equal(result.float(), value[:count].float())

    for op in (hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
        same(hvd.allreduce(value, op=op))
    scaled = hvd.allreduce(value, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5)
    same(scaled)
    same(hvd.allgather(value))
    same(hvd.broadcast(value, 0))
    same(hvd.alltoall(value))
    same(hvd.alltoall(value, splits=[6])[0])
    same(hvd.alltoall(value, splits=[4])[0], 4)
    same(hvd.reducescatter(value, op=hvd.Sum))
    for result in (hvd.grouped_allreduce([value, value], op=hvd.Sum) + list(hvd.grouped_allgather([value, value])) +
                   hvd.grouped_reducescatter([value], op=hvd.Sum)):
        same(result)


def test_forms_of_the_results(hvd, torch):
    t = torch.ones(2, 2)
    assert isinstance(hvd.alltoall(t), torch.Tensor)
    received, splits = hvd.alltoall(t, splits=torch.tensor([2], dtype=torch.int32))
    assert splits.dtype == torch.int32 and splits.tolist() == [2]
    assert len(hvd.synchronize(hvd.alltoall_async(t))) == 2
    own = [t.clone(), t.clone()]
    results = hvd.grouped_allreduce_(own)
    assert results[0] is own[0] and results[1] is own[1]
    results = hvd.synchronize(hvd.grouped_allreduce_async_(own, name='g'))
    assert results[0] is own[0] and results[1] is own[1]
    assert hvd.join() == 0 and hvd.join(device=0) == 0
    assert hvd.allgather_object({'a': 1}) == [{'a': 1}]
    deep = torch.ones((1,) * 9 + (3,))
    assert hvd.allreduce(deep).shape == hvd.allgather(deep).shape == deep.shape
    empty = hvd.allgather(torch.zeros(0, 3))
    assert empty.shape == (0, 3)


def test_results_live_in_memory_of_the_runtime_until_they_are_gone(hvd, torch):
    from horovod.common import _library
    result = hvd.allgather(torch.arange(1000.0))
    assert _library.lib().hvd_is_registered(result.data_ptr(), 4000) == 1  # not copied
    part = result[10:20]
    del result
    others = [hvd.allgather(torch.zeros(1000)) for _ in range(20)]
    assert part.tolist() == list(range(10, 20)) and len(others) == 20
    kept = hvd.allgather(torch.ones(10))
    hvd.shutdown()
    assert kept.tolist() == [1] * 10
    kept.add_(1)
    hvd.init()
    for _ in range(200):  # more than there would be memory for if it did not come back
        hvd.allgather(torch.zeros(4000000))


def test_elastic_names(hvd, torch):
    from horovod.common import elastic
    from horovod.torch.elastic import state
    assert hvd.elastic.ElasticSampler and hvd.elastic.TorchState and elastic.notification_manager
    assert [kind for kind, _ in state.get_handler_registry()] == [torch.nn.Module, torch.optim.Optimizer,
                                                                   hvd.elastic.ElasticSampler]
    plain = elastic.ObjectState(bcast_object=hvd.broadcast_object, get_rank=hvd.rank, a=1)
    plain.a = 2
    plain.restore()
    assert plain.a == 1

    @hvd.elastic.run
    def train(state):
        raise hvd.HorovodInternalError('a peer is gone')

    with pytest.raises(hvd.HorovodInternalError, match='gone'):
        train(plain)


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
    whole = torch.tensor([1, 2])
    for compression, dtype in ((hvd.Compression.fp16, torch.float16), (hvd.Compression.bf16, torch.bfloat16)):
        compressed, ctx = compression.compress(x)
        assert compressed.dtype == dtype and compression.decompress(compressed, ctx).dtype == torch.float64
        compressed, ctx = compression.compress(whole)
        assert compressed is whole and compression.decompress(compressed, ctx) is whole
        assert hvd.allreduce(x, compression=compression).dtype == torch.float64
    assert issubclass(hvd.Compression.none, hvd.compression.Compressor)


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


@pytest.mark.below_torch
def test_children_of_a_world_of_one_know_its_places(torch):
    result = jobs.run_alone(jobs.worker('children.py'), timeout_s=100)
    assert result.output.rstrip().endswith('ok'), str(result)


def test_forked_child_gets_one_sentence(hvd, torch, tmp_path):
    result = jobs.run_alone(jobs.worker('forked_child.py'))
    assert 'ok' in result.output


@pytest.mark.below_torch
def test_many_cycles(hvd, torch):
    jobs.run_alone(jobs.worker('cycles.py'), 200)


@pytest.mark.below_torch
def test_unexpected_exit_leaves_no_traceback(runtime):
    """The exit handler shuts down; an exception or sys.exit ends the process with its own code."""
    code = 'import sys, horovod.torch as hvd\nhvd.init()\nsys.exit(3)'
    result = jobs.run([sys.executable, '-c', code], 60, HVD_AGENT=None)
    assert result.returncode == 3 and result.output == '', str(result)
