"""The collectives on MXNet's arrays, in place and not. All of them wait for their end.

MXNet computes in the background; a collective waits for the array that it is given and works in its memory.
"""

from __future__ import annotations

import ctypes

import mxnet as mx
import numpy

from horovod.common import _library
from horovod.common import basics as _common_basics
from horovod.common import operations as _common_operations
from horovod.common.process_sets import global_process_set
from horovod.common.util import get_average_backwards_compatibility_fun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence
    from horovod.common.process_sets import ProcessSet

Average = _library.AVERAGE
Sum = _library.SUM
Adasum = _library.ADASUM
Min = _library.MIN
Max = _library.MAX
Product = _library.PRODUCT

_DTYPES = {
    'bool': _library.BOOL,
    'uint8': _library.UINT8,
    'int8': _library.INT8,
    'int32': _library.INT32,
    'int64': _library.INT64,
    'float16': _library.FLOAT16,
    'float32': _library.FLOAT32,
    'float64': _library.FLOAT64,
}

_reduce_op = get_average_backwards_compatibility_fun(_common_basics.shared())


def _new(like, array):
    """An array of the kind of `like` with the values of one of NumPy."""
    made = mx.nd.array(array, dtype=array.dtype)
    return made.as_np_ndarray() if isinstance(like, mx.numpy.ndarray) else made


class _MXNet(_common_operations.Framework):
    def check(self, operation, tensor, writable):
        if not isinstance(tensor, mx.nd.NDArray):
            raise ValueError('hvd.{} takes an MXNet NDArray, but {} was given.'.format(operation, type(tensor).__name__))
        if tensor.stype != 'default':
            raise ValueError("hvd.{} takes dense arrays, but was given one with storage '{}'; use tensor.tostype('default')."
                             .format(operation, tensor.stype))
        dtype = _DTYPES.get(numpy.dtype(tensor.dtype).name)
        if dtype is None:
            raise ValueError('Tensor type {} is not supported by hvd.{}.'.format(numpy.dtype(tensor.dtype).name, operation))
        if writable:
            mx.base.check_call(mx.base._LIB.MXNDArrayWaitToWrite(tensor.handle))
        else:
            tensor.wait_to_read()
        return tensor, dtype

    def address(self, tensor):
        data = ctypes.c_void_p()
        mx.base.check_call(mx.base._LIB.MXNDArrayGetData(tensor.handle, ctypes.byref(data)))
        return data.value

    def empty_like(self, tensor):
        made = mx.nd.empty(tensor.shape, dtype=tensor.dtype)
        made.wait_to_read()
        return made.as_np_ndarray() if isinstance(tensor, mx.numpy.ndarray) else made

    def bytes_of_row(self, tensor):
        bytes_of_row = numpy.dtype(tensor.dtype).itemsize
        for extent in tensor.shape[1:]:
            bytes_of_row *= extent
        return bytes_of_row

    def from_memory(self, tensor, buffer, rows):
        shape, dtype = (rows,) + tuple(tensor.shape[1:]), numpy.dtype(tensor.dtype)
        if buffer is None:
            return _new(tensor, numpy.empty(shape, dtype))
        array = numpy.frombuffer(buffer, numpy.uint8, rows * self.bytes_of_row(tensor)).view(dtype).reshape(shape)
        return _new(tensor, array)

    def splits_from(self, splits):
        if isinstance(splits, mx.nd.NDArray):
            splits = splits.asnumpy()
        if isinstance(splits, numpy.ndarray):
            return [int(number) for number in splits.tolist()]
        return _common_operations.list_of_integers(splits)

    def splits_to(self, numbers):
        return mx.nd.array(numbers, dtype='int32')


_operations = _common_operations.Operations(_MXNet())
_warned_of_gpu = False


def _on_host(tensor):
    """The array itself, or a copy of one on a GPU in the memory of the host."""
    global _warned_of_gpu
    if not isinstance(tensor, mx.nd.NDArray) or tensor.context.device_type in ('cpu', 'cpu_pinned', 'cpu_shared'):
        return tensor
    if not _warned_of_gpu:
        _warned_of_gpu = True
        import warnings
        warnings.warn('horovod.mxnet copies arrays on {} through the host for its collectives.'.format(tensor.context),
                      RuntimeWarning, stacklevel=3)
    return tensor.as_in_context(mx.cpu())


def _back(tensor, result):
    return result if result.context == tensor.context else result.as_in_context(tensor.context)


def _one(tensor, run, in_place=False):
    host = _on_host(tensor)
    result = run(host)
    if not in_place:
        return _back(tensor, result) if host is not tensor else result
    if host is not tensor:
        tensor[:] = _back(tensor, host)
    return tensor


def _several(tensors, run, in_place=False):
    tensors = list(tensors)
    hosts = [_on_host(tensor) for tensor in tensors]
    results = run(hosts)
    return [_one(tensor, lambda unused, result=result: result, in_place) if host is tensor else
            _put(tensor, host, result, in_place) for tensor, host, result in zip(tensors, hosts, results)]


def _put(tensor, host, result, in_place):
    if not in_place:
        return _back(tensor, result)
    tensor[:] = _back(tensor, host)
    return tensor


def _check(op, average):
    op = _reduce_op(op, average)
    assert op != Adasum, 'Adasum is not supported by horovod.mxnet'
    return op


def allreduce(tensor: Any, average: Optional[bool] = None, name: Optional[str] = None, priority: int = 0,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
              op: Optional[int] = None) -> Any:
    """Combines the arrays of all ranks into a new one on every rank.

    Args:
        tensor: An mxnet NDArray. The same shape and type on every rank.
        average: Deprecated; use op. True is hvd.Average, False hvd.Sum.
        name: Matches the calls of the ranks. None: they are matched in their order.
        priority: Ignored.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.
        op: hvd.Average, the default, Sum, Min, Max or Product.

    Returns: A new array.

    Raises:
        ValueError: An argument is wrong, or hvd.init() has not been called.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    op = _check(op, average)
    return _one(tensor, lambda host: _operations.allreduce(host, False, name, op, prescale_factor, postscale_factor,
                                                           process_set))


def allreduce_(tensor: Any, average: Optional[bool] = None, name: Optional[str] = None, priority: int = 0,
               prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
               op: Optional[int] = None) -> Any:
    """Combines the arrays of all ranks in place.

    Args:
        tensor: An mxnet NDArray, which is overwritten with the result.
        average: Deprecated; use op.
        name: Matches the calls of the ranks.
        priority: Ignored.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.
        op: hvd.Average, the default, Sum, Min, Max or Product.

    Returns: The same array.
    """
    op = _check(op, average)
    return _one(tensor, lambda host: _operations.allreduce(host, True, name, op, prescale_factor, postscale_factor,
                                                           process_set), in_place=True)


def _grouped(tensors, average, name, prescale_factor, postscale_factor, process_set, op, in_place):
    op = _check(op, average)
    return _several(tensors, lambda hosts: _operations.synchronize(_operations.grouped_allreduce_async(
        hosts, in_place, name, op, prescale_factor, postscale_factor, process_set)), in_place)


def grouped_allreduce(tensors: Sequence[Any], average: Optional[bool] = None, name: Optional[str] = None, priority: int = 0,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set, op: Optional[int] = None) -> List[Any]:
    """allreduce() of a list of arrays, which succeed or fail together.

    Args:
        tensors: A list of arrays, at least one.
        average: Deprecated; use op.
        name: Matches the calls of the ranks.
        priority: Ignored.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.
        op: hvd.Average, the default, Sum, Min, Max or Product.

    Returns: A list of new arrays.
    """
    return _grouped(tensors, average, name, prescale_factor, postscale_factor, process_set, op, False)


def grouped_allreduce_(tensors: Sequence[Any], average: Optional[bool] = None, name: Optional[str] = None, priority: int = 0,
                       prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set, op: Optional[int] = None) -> List[Any]:
    """grouped_allreduce() in place.

    Args:
        tensors: A list of arrays, at least one, which are overwritten with the results.
        average: Deprecated; use op.
        name: Matches the calls of the ranks.
        priority: Ignored.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.
        op: hvd.Average, the default, Sum, Min, Max or Product.

    Returns: A list of the same arrays.
    """
    return _grouped(tensors, average, name, prescale_factor, postscale_factor, process_set, op, True)


def allgather(tensor: Any, name: Optional[str] = None, priority: int = 0,
              process_set: ProcessSet = global_process_set) -> Any:
    """Concatenates the arrays of all ranks along the first dimension, which may differ, in order of rank.

    Args:
        tensor: An mxnet NDArray.
        name: Matches the calls of the ranks.
        priority: Ignored.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A new array.
    """
    return _one(tensor, lambda host: _operations.synchronize(_operations.allgather_async(host, name, process_set)))


def grouped_allgather(tensors: Sequence[Any], name: Optional[str] = None, priority: int = 0,
                      process_set: ProcessSet = global_process_set) -> List[Any]:
    """allgather() of a list of arrays, which succeed or fail together.

    Args:
        tensors: A list of arrays, at least one.
        name: Matches the calls of the ranks.
        priority: Ignored.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list of new arrays.
    """
    return _several(tensors, lambda hosts: _operations.synchronize(
        _operations.grouped_allgather_async(hosts, name, process_set)))


def broadcast(tensor: Any, root_rank: int, name: Optional[str] = None, priority: int = 0,
              process_set: ProcessSet = global_process_set) -> Any:
    """Broadcasts the array of one rank to all.

    Args:
        tensor: An mxnet NDArray; the same shape and type on every rank.
        root_rank: The rank whose array is sent, as a rank of the world.
        name: Matches the calls of the ranks.
        priority: Ignored.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A new array.
    """
    return _one(tensor, lambda host: _operations.broadcast(host, False, root_rank, name, process_set))


def broadcast_(tensor: Any, root_rank: int, name: Optional[str] = None, priority: int = 0,
               process_set: ProcessSet = global_process_set) -> Any:
    """broadcast() in place.

    Args:
        tensor: An mxnet NDArray, which is overwritten on the other ranks.
        root_rank: The rank whose array is sent.
        name: Matches the calls of the ranks.
        priority: Ignored.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The same array.
    """
    return _one(tensor, lambda host: _operations.broadcast(host, True, root_rank, name, process_set), in_place=True)


def alltoall(tensor: Any, splits: Optional[Any] = None, name: Optional[str] = None, priority: int = 0,
             process_set: ProcessSet = global_process_set) -> Any:
    """Sends each rank its share of the rows of every rank.

    Args:
        tensor: An mxnet NDArray.
        splits: How many rows each rank gets: a list, or an array of integers. None: equal shares.
        name: Matches the calls of the ranks.
        priority: Ignored.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The rows that came from each rank, in order of rank; with splits a pair: those, and how many came from
        each rank.
    """
    received, counts = _operations.synchronize(_operations.alltoall_async(_on_host(tensor), splits, name, process_set))
    received = _back(tensor, received)
    return received if splits is None else (received, counts)


def reducescatter(tensor: Any, op: int = Average, name: Optional[str] = None, priority: int = 0,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> Any:
    """Combines the arrays of all ranks and scatters the rows of the result.

    Args:
        tensor: An mxnet NDArray. The same shape and type on every rank.
        op: hvd.Average or hvd.Sum.
        name: Matches the calls of the ranks.
        priority: Ignored.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A new array.
    """
    return _one(tensor, lambda host: _operations.synchronize(_operations.reducescatter_async(
        host, name, op, prescale_factor, postscale_factor, process_set)))


def grouped_reducescatter(tensors: Sequence[Any], op: int = Average, name: Optional[str] = None, priority: int = 0,
                          process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> List[Any]:
    """reducescatter() of a list of arrays, which succeed or fail together.

    Args:
        tensors: A list of arrays, at least one.
        op: hvd.Average or hvd.Sum.
        name: Matches the calls of the ranks.
        priority: Ignored.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A list of new arrays.
    """
    return _several(tensors, lambda hosts: _operations.synchronize(_operations.grouped_reducescatter_async(
        hosts, name, op, prescale_factor, postscale_factor, process_set)))
