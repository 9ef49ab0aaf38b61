"""The functions by which collectives leave ctypes aside (runtime/api/from_python), with tensors of a framework that is played,
and with PyTorch where it has DLPack's exchange in C."""

import ctypes

import numpy as np
import pytest

from horovod.common import _library, _native

CPU, FLOAT, NOT_TAKEN = 1, 2, None


class _Shown(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('device_type', ctypes.c_int32), ('device_index', ctypes.c_int32),
                ('ndim', ctypes.c_int32), ('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16),
                ('shape', ctypes.c_void_p), ('strides', ctypes.c_void_p), ('byte_offset', ctypes.c_uint64)]


_SHOW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Shown))


class _Exchange(ctypes.Structure):
    pass


_Exchange._fields_ = [('major', ctypes.c_uint32), ('minor', ctypes.c_uint32), ('earlier', ctypes.POINTER(_Exchange)),
                      ('allocate', ctypes.c_void_p), ('export', ctypes.c_void_p), ('import_', ctypes.c_void_p),
                      ('show', _SHOW), ('stream', ctypes.c_void_p)]


class Tensor(object):
    """A row of float32 that shows itself as DLPack has it."""

    device_type = CPU

    def __init__(self, *values):
        self.array = np.array(values, np.float32)
        self.shape = (ctypes.c_int64 * 1)(len(values))


def _show(tensor, shown):
    it = shown[0]
    it.data, it.device_type, it.ndim = tensor.array.ctypes.data, tensor.device_type, 1
    it.code, it.bits, it.lanes, it.shape = FLOAT, 32, 1, ctypes.addressof(tensor.shape)
    return 0


def capsule(exchange, name=b'dlpack_exchange_api'):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(exchange), name, None)


SHOW, NO_SHOW = _SHOW(_show), _SHOW()
NAME = ctypes.create_string_buffer(b'dlpack_exchange_api')  # a capsule does not copy it
EXCHANGE = _Exchange(major=1, show=SHOW)
Tensor.__dlpack_c_exchange_api__ = capsule(EXCHANGE, NAME)


@pytest.fixture
def run(hvd):
    assert _library.lib()
    return _library.runner(Tensor, _library.ALLREDUCE, 'allreduce')


def argument_list(tensor, output=None, name='x', op=_library.SUM, root=0, process_set=0, prescale=1.0, postscale=1.0):
    return [tensor, tensor if output is None else output, name, op, root, process_set, prescale, postscale]


def test_it_runs_a_collective(run):
    tensor = Tensor(1, 2)
    assert run(*argument_list(tensor, prescale=2, postscale=2.5)) == 0
    assert tensor.array.tolist() == [5, 10]
    output = Tensor(0, 0)
    assert run(*argument_list(tensor, output, name=None)) == 0
    assert (tensor.array.tolist(), output.array.tolist()) == ([5, 10], [5, 10])


def test_it_starts_a_collective(hvd):
    assert _library.lib()
    start = _library.runner(Tensor, _library.ALLREDUCE, 'allreduce', 0)
    tensor, other = Tensor(1, 2), Tensor(3)
    handles = [start(*argument_list(tensor, prescale=2)), start(*argument_list(other, name='y'))]
    assert min(handles) > 0 and len(set(handles)) == 2
    assert [_library.wait(handle) for handle in handles] == [None, None]
    assert (tensor.array.tolist(), other.array.tolist()) == ([2, 4], [3])
    assert start(*argument_list(tensor, process_set=77)) < 0


def test_an_error_is_its_status(run, hvd):
    status = run(*argument_list(Tensor(1), process_set=77))
    assert status < 0
    assert '77' in str(_library.error(-status)), 'with the sentence of the runtime'
    hvd.shutdown()
    assert run(*argument_list(Tensor(1))) == -_library.NOT_INITIALIZED


class Subclass(Tensor):
    pass


class OnADevice(Tensor):
    device_type = 2


@pytest.mark.parametrize('arguments', [
    argument_list(Subclass(1)),
    argument_list(3),
    argument_list(None),
    argument_list(Tensor(1), output=Subclass(1)),
    argument_list(Tensor()),
    argument_list(Tensor(1), name=5),
    argument_list(Tensor(1), name='\ud800'),
    argument_list(Tensor(1), op='sum'),
    argument_list(Tensor(1), op=1 << 40),
    argument_list(Tensor(1), process_set=None),
    argument_list(Tensor(1), prescale='2'),
    argument_list(Tensor(1), postscale=None),
    argument_list(Tensor(1))[:-1],
    argument_list(Tensor(1)) + [1],
    [],
])
def test_it_leaves_the_others_to_the_package(run, arguments):
    assert run(*arguments) is NOT_TAKEN


def test_a_tensor_on_a_device_is_left(hvd):
    OnADevice.__dlpack_c_exchange_api__ = Tensor.__dlpack_c_exchange_api__
    run = _library.runner(OnADevice, _library.ALLREDUCE, 'allreduce')
    assert run(*argument_list(OnADevice(1))) is NOT_TAKEN


def test_a_tensor_that_cannot_be_shown_is_left(hvd):
    class Hidden(object):
        __dlpack_c_exchange_api__ = capsule(EXCHANGE, NAME)  # whose function finds no array in it

    failing = _SHOW(lambda tensor, shown: -1)
    exchange = _Exchange(major=1, show=failing)
    Hidden.__dlpack_c_exchange_api__ = capsule(exchange, NAME)
    assert _library.runner(Hidden, _library.ALLREDUCE, 'allreduce')(*argument_list(Hidden())) is NOT_TAKEN


def test_there_is_none_without_an_exchange_of_version_1(hvd):
    class Plain(object):
        pass

    def of(exchange, name=NAME):
        return type('Other', (object,), {'__dlpack_c_exchange_api__': capsule(exchange, name)})

    later = _Exchange(major=2, show=SHOW)
    chained = _Exchange(major=2, show=NO_SHOW, earlier=ctypes.pointer(EXCHANGE))
    other_name = ctypes.create_string_buffer(b'something')
    assert _library.runner(Plain, _library.ALLREDUCE, 'allreduce') is None
    assert _library.runner(of(later), _library.ALLREDUCE, 'allreduce') is None
    assert _library.runner(of(_Exchange(major=1, show=NO_SHOW)), _library.ALLREDUCE, 'allreduce') is None
    assert _library.runner(of(EXCHANGE, other_name), _library.ALLREDUCE, 'allreduce') is None
    assert _library.runner(of(chained), _library.ALLREDUCE, 'allreduce') is not None


# ---- PyTorch: the same results and errors on both ways


@pytest.fixture(params=['runner', 'request'])
def way(request, hvd, torch, monkeypatch):
    from horovod.torch import framework
    runners = framework.operations._runners
    if request.param == 'request':
        monkeypatch.setattr(framework.operations, '_runners', {})
        monkeypatch.setattr(framework.operations, '_starters', {})
    elif not runners[_library.ALLREDUCE]:
        pytest.skip('this PyTorch has no DLPack exchange in C')
    return request.param


def test_both_ways_agree(way, hvd, torch):
    x = torch.arange(6, dtype=torch.float32)
    assert hvd.allreduce_(x, op=hvd.Sum, prescale_factor=2.0, name='x') is x
    assert x.tolist() == [0, 2, 4, 6, 8, 10]
    y = hvd.allreduce(x, op=hvd.Sum)
    assert y is not x and y.tolist() == x.tolist() and y.shape == x.shape
    assert hvd.broadcast_(x, 0, name='x') is x
    assert hvd.broadcast(x, root_rank=0).tolist() == x.tolist()
    assert hvd.allreduce(torch.tensor(3), op=hvd.Sum).item() == 3
    handles = [hvd.allreduce_async(x, op=hvd.Sum, name='x'), hvd.allreduce_async_(y, op=hvd.Sum, postscale_factor=0.5),
               hvd.broadcast_async(x, 0), hvd.broadcast_async_(x, 0, name='y')]
    results = [hvd.synchronize(handle) for handle in handles]
    assert results[0].tolist() == results[2].tolist() == x.tolist() == [0, 2, 4, 6, 8, 10]
    assert results[1] is y and y.tolist() == [0, 1, 2, 3, 4, 5] and results[3] is x
    assert hvd.allreduce(torch.zeros(0, 3)).shape == (0, 3)
    assert hvd.allreduce(torch.ones(1, 1, 1, 1, 1, 1, 1, 1, 2)).shape == (1, 1, 1, 1, 1, 1, 1, 1, 2)
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                  torch.float64):
        assert hvd.broadcast(torch.ones(3).to(dtype), 0).dtype == dtype
    parameter = torch.nn.Parameter(torch.ones(2))
    with torch.no_grad():
        assert hvd.allreduce_(parameter) is parameter
    assert hvd.allreduce(parameter).requires_grad
    half = hvd.allreduce(torch.ones(2), compression=hvd.Compression.fp16)
    assert half.dtype == torch.float32


def test_both_ways_refuse_alike(way, hvd, torch):
    columns = torch.ones(3, 4).t()
    for call in (hvd.allreduce, hvd.allreduce_, hvd.allreduce_async, hvd.allreduce_async_):
        with pytest.raises(ValueError, match='contiguous'):
            call(columns)
        with pytest.raises(ValueError, match='torch.Tensor'):
            call([1.0])
        with pytest.raises(ValueError, match='complex'):
            call(torch.zeros(2, dtype=torch.complex64))
        with pytest.raises(ValueError, match='sparse'):
            call(torch.eye(2).to_sparse())
        with pytest.raises(ValueError, match='op must be'):
            call(torch.ones(1), op='sum')
        with pytest.raises(ValueError, match='not registered'):
            call(torch.ones(1), process_set=hvd.ProcessSet([0]))
    with pytest.raises(ValueError, match='from rank 5'):
        hvd.broadcast_(torch.ones(1), 5)
    with pytest.raises(ValueError, match='from rank 5'):
        hvd.broadcast_async_(torch.ones(1), 5)
    hvd.shutdown()
    for call in (hvd.allreduce_, hvd.allreduce_async_):
        with pytest.raises(ValueError, match='init'):
            call(torch.ones(1))


def test_a_runner_is_used(hvd, torch, monkeypatch):
    """Not the slow way by mistake: there every call fills a Request."""
    from horovod.torch import framework
    if not framework.operations._runners[_library.ALLREDUCE]:
        pytest.skip('this PyTorch has no DLPack exchange in C')
    monkeypatch.setattr(framework.operations, '_prepare', None)
    assert hvd.allreduce(torch.ones(2)).tolist() == [1, 1]
    assert hvd.broadcast_(torch.ones(2), 0).tolist() == [1, 1]
    assert hvd.synchronize(hvd.allreduce_async_(torch.ones(2))).tolist() == [1, 1]
    assert _native.handle
