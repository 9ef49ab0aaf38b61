"""The collectives on NumPy arrays, blocking and not, in place and not."""

from __future__ import annotations

import numpy

from horovod.common import _library, objects
from horovod.common import operations as _common_operations
from horovod.common.process_sets import global_process_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence
    from numpy.typing import ArrayLike
    from horovod.common.process_sets import ProcessSet

Average = _library.AVERAGE
Sum = _library.SUM
Adasum = _library.ADASUM
Min = _library.MIN
Max = _library.MAX
Product = _library.PRODUCT

# By name, since bfloat16 and float8 come from a package of their own (ml_dtypes).
_DTYPES = {
    'bool': _library.BOOL,
    'uint8': _library.UINT8,
    'int8': _library.INT8,
    'uint16': _library.UINT16,
    'int16': _library.INT16,
    'int32': _library.INT32,
    'int64': _library.INT64,
    'float16': _library.FLOAT16,
    'float32': _library.FLOAT32,
    'float64': _library.FLOAT64,
    'bfloat16': _library.BFLOAT16,
    'float8_e4m3fn': _library.FLOAT8_E4M3,
    'float8_e5m2': _library.FLOAT8_E5M2,
}
_codes = {}  # dtype -> code, since the names of types are created on each access


class _Numpy(_common_operations.Framework):
    def check(self, operation, tensor, writable):
        if writable:
            if not isinstance(tensor, numpy.ndarray):
                raise ValueError('hvd.{} changes an array in place, but {} was given.'.format(
                    operation, type(tensor).__name__))
            if not tensor.flags.c_contiguous or not tensor.flags.writeable:
                raise ValueError('hvd.{} in place needs a writable contiguous array; use the form that gives a new '
                                 'one.'.format(operation))
        else:
            tensor = numpy.asarray(tensor, order='C')
        dtype = _codes.get(tensor.dtype)
        if dtype is None and tensor.dtype.isnative:
            dtype = _DTYPES.get(tensor.dtype.name)
            if dtype is not None:
                _codes[tensor.dtype] = dtype
        if dtype is None:
            raise ValueError('Tensor type {} is not supported by hvd.{}.'.format(tensor.dtype, operation))
        return tensor, dtype

    def address(self, tensor):
        return tensor.__array_interface__['data'][0]

    def empty_like(self, tensor):
        return numpy.empty(tensor.shape, tensor.dtype)

    def bytes_of_row(self, tensor):
        bytes_of_row = tensor.itemsize
        for extent in tensor.shape[1:]:
            bytes_of_row *= extent
        return bytes_of_row

    def from_memory(self, tensor, buffer, rows):
        shape = (rows,) + tensor.shape[1:]
        if buffer is None:
            return numpy.empty(shape, tensor.dtype)
        nbytes = rows * self.bytes_of_row(tensor)
        return numpy.frombuffer(buffer, numpy.uint8, nbytes).view(tensor.dtype).reshape(shape)

    def splits_from(self, splits):
        if isinstance(splits, numpy.ndarray):
            if splits.dtype.kind not in 'iu' or splits.ndim != 1:
                raise ValueError('splits of hvd.alltoall is a list of integers or an integer array of one dimension, '
                                 'but is a {} array of shape {}.'.format(splits.dtype, splits.shape))
            return splits.tolist()
        return _common_operations.list_of_integers(splits)

    def splits_to(self, numbers):
        return numpy.array(numbers, dtype=numpy.int32)


_operations = _common_operations.Operations(_Numpy())
_handle_map = _operations.pending

poll = _operations.poll
synchronize = _operations.synchronize


def allreduce_async(tensor: ArrayLike, name: Optional[str] = None, op: int = Average, prescale_factor: float = 1.0,
                    postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> int:
    """Starts an allreduce() and returns at once.

    Do not change the array before synchronize(), which raises HorovodInternalError if the operation
    fails.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. The same shape and dtype on every rank.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns a new array.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.

    Example:

        handle = hvd.allreduce_async(x, name='x')
        ...
        x = hvd.synchronize(handle)
    """
    return _operations.allreduce_async(tensor, False, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor: numpy.ndarray, name: Optional[str] = None, op: int = Average,
                     prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> int:
    """Starts an allreduce_(), which is in place, and returns at once.

    Do not change the array before synchronize(), which raises HorovodInternalError if the operation
    fails.

    Args:
        tensor: A writable, contiguous numpy.ndarray. The same shape and dtype on every rank. It is
            overwritten with the result.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the array itself.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.allreduce_async(tensor, True, name, op, prescale_factor, postscale_factor, process_set)


def allreduce(tensor: ArrayLike, name: Optional[str] = None, op: int = Average, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> numpy.ndarray:
    """Combines the arrays of all ranks into a new one on every rank.

    The result has the same bits on every rank.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. The same shape and dtype on every rank.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A new array of the same shape and dtype.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.

    Example:

        mean = hvd.allreduce(loss, name='loss')
    """
    return _operations.allreduce(tensor, False, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_(tensor: numpy.ndarray, name: Optional[str] = None, op: int = Average, prescale_factor: float = 1.0,
               postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> numpy.ndarray:
    """Combines the arrays of all ranks in place.

    Args:
        tensor: A writable, contiguous numpy.ndarray. The same shape and dtype on every rank. It is
            overwritten with the result.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The same array.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    return _operations.allreduce(tensor, True, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async(tensors: Sequence[ArrayLike], name: Optional[str] = None, op: int = Average,
                            prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set) -> int:
    """Starts a grouped_allreduce() and returns at once.

    Do not change the arrays before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensors: A list of arrays, or of whatever numpy.asarray() takes, at least one. Each has the
            same shape and dtype on every rank; the dtypes of the members may differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: One handle for poll() and synchronize(); synchronize(handle) returns a tuple of new
        arrays.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.grouped_allreduce_async(tensors, False, name, op, prescale_factor, postscale_factor,
                                               process_set)


def grouped_allreduce_async_(tensors: Sequence[numpy.ndarray], name: Optional[str] = None, op: int = Average,
                             prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set) -> int:
    """Starts a grouped_allreduce_(), which is in place, and returns at once.

    Do not change the arrays before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensors: A list of writable, contiguous numpy.ndarrays, at least one. Each has the same
            shape and dtype on every rank; the dtypes of the members may differ. They are
            overwritten with the results.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: One handle for poll() and synchronize(); synchronize(handle) returns a tuple of the
        same arrays.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.grouped_allreduce_async(tensors, True, name, op, prescale_factor, postscale_factor,
                                               process_set)


def grouped_allreduce(tensors: Sequence[ArrayLike], name: Optional[str] = None, op: int = Average,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> List[numpy.ndarray]:
    """Combines several arrays of all ranks as one operation.

    The ranks agree about all of them at once; all succeed or all fail.

    Args:
        tensors: A list of arrays, or of whatever numpy.asarray() takes, at least one. Each has the
            same shape and dtype on every rank; the dtypes of the members may differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list of new arrays, in the same order.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    return list(synchronize(grouped_allreduce_async(tensors, name, op, prescale_factor, postscale_factor,
                                                    process_set)))


def grouped_allreduce_(tensors: Sequence[numpy.ndarray], name: Optional[str] = None, op: int = Average,
                       prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> List[numpy.ndarray]:
    """Combines several arrays of all ranks as one operation, in place.

    Args:
        tensors: A list of writable, contiguous numpy.ndarrays, at least one. Each has the same
            shape and dtype on every rank; the dtypes of the members may differ. They are
            overwritten with the results.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list of the same arrays.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    return list(synchronize(grouped_allreduce_async_(tensors, name, op, prescale_factor, postscale_factor,
                                                     process_set)))


def allgather_async(tensor: ArrayLike, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Starts an allgather() and returns at once.

    Do not change the array before synchronize(), which raises HorovodInternalError if the operation
    fails.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. The same dtype and dimensions on every
            rank, except for dimension 0.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the concatenated
        array.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.allgather_async(tensor, name, process_set)


def allgather(tensor: ArrayLike, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> numpy.ndarray:
    """Concatenates the arrays of all ranks along dimension 0.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. The same dtype and dimensions on every
            rank, except for dimension 0.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A new array on every rank: the rows of the first rank of the set, then those of the
        next.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.

    Example:

        predictions = hvd.allgather(own_predictions)  # ranks may bring different numbers of rows
    """
    return synchronize(allgather_async(tensor, name, process_set))


def grouped_allgather_async(tensors: Sequence[ArrayLike], name: Optional[str] = None,
                            process_set: ProcessSet = global_process_set) -> int:
    """Starts a grouped_allgather() and returns at once.

    Do not change the arrays before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensors: A list of arrays, or of whatever numpy.asarray() takes, at least one. Each has the
            same dtype and dimensions on every rank, except for dimension 0; the dtypes of the
            members may differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: One handle for poll() and synchronize(); synchronize(handle) returns a tuple of arrays.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.grouped_allgather_async(tensors, name, process_set)


def grouped_allgather(tensors: Sequence[ArrayLike], name: Optional[str] = None,
                      process_set: ProcessSet = global_process_set) -> List[numpy.ndarray]:
    """Concatenates several arrays of all ranks as one operation.

    Args:
        tensors: A list of arrays, or of whatever numpy.asarray() takes, at least one. Each has the
            same dtype and dimensions on every rank, except for dimension 0; the dtypes of the
            members may differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list of new arrays, in the same order.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    return list(synchronize(grouped_allgather_async(tensors, name, process_set)))


def broadcast_async(tensor: ArrayLike, root_rank: int, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Starts a broadcast() and returns at once.

    Do not change the array before synchronize(), which raises HorovodInternalError if the operation
    fails.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. The same shape and dtype on every rank.
        root_rank: The rank whose array is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns a new array.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.broadcast_async(tensor, False, root_rank, name, process_set)


def broadcast_async_(tensor: numpy.ndarray, root_rank: int, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> int:
    """Starts a broadcast_(), which is in place, and returns at once.

    Do not change the array before synchronize(), which raises HorovodInternalError if the operation
    fails.

    Args:
        tensor: A writable, contiguous numpy.ndarray. The same shape and dtype on every rank. It is
            overwritten with the root's on the other ranks.
        root_rank: The rank whose array is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the array itself.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.broadcast_async(tensor, True, root_rank, name, process_set)


def broadcast(tensor: ArrayLike, root_rank: int, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> numpy.ndarray:
    """Broadcasts the root\'s array to every rank.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. The same shape and dtype on every rank.
        root_rank: The rank whose array is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A new array on every rank.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    return _operations.broadcast(tensor, False, root_rank, name, process_set)


def broadcast_(tensor: numpy.ndarray, root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> numpy.ndarray:
    """Overwrites the array with the root's.

    Args:
        tensor: A writable, contiguous numpy.ndarray. The same shape and dtype on every rank. It is
            overwritten with the root's on the other ranks.
        root_rank: The rank whose array is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The same array.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    return _operations.broadcast(tensor, True, root_rank, name, process_set)


def alltoall_async(tensor: ArrayLike, splits: Optional[ArrayLike] = None,
                   name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> int:
    """Starts an alltoall() and returns at once.

    Do not change the array before synchronize(), which raises HorovodInternalError if the operation
    fails.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. The same dtype and dimensions on every
            rank, except for dimension 0.
        splits: How many rows go to each member of the set, in order of rank: a list of integers, or
            an integer array of one dimension. None: equal shares.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the pair of received
        array and received splits, also when splits is None.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.alltoall_async(tensor, splits, name, process_set)


def alltoall(tensor: ArrayLike, splits: Optional[ArrayLike] = None,
             name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Any:
    """Sends rows of the array to each rank and returns the rows that were sent to this one.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. The same dtype and dimensions on every
            rank, except for dimension 0.
        splits: How many rows go to each member of the set, in order of rank: a list of integers, or
            an integer array of one dimension. None: equal shares.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The received rows, in order of the rank that sent them. With splits, a pair of that
        array and the number of rows from each rank (int32).

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.

    Example:

        received, rows = hvd.alltoall(x, splits=[1, 3])  # on two ranks: row 0 goes to rank 0, rows 1-3 to rank 1
    """
    received, received_splits = synchronize(alltoall_async(tensor, splits, name, process_set))
    return received if splits is None else (received, received_splits)


def reducescatter_async(tensor: ArrayLike, name: Optional[str] = None, op: int = Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0) -> int:
    """Starts a reducescatter() and returns at once.

    Do not change the array before synchronize(), which raises HorovodInternalError if the operation
    fails.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. At least one dimension; the same shape
            and dtype on every rank.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average or hvd.Sum; any other is a HorovodInternalError on every rank.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the rows of this
        rank.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.reducescatter_async(tensor, name, op, prescale_factor, postscale_factor, process_set)


def reducescatter(tensor: ArrayLike, name: Optional[str] = None, op: int = Average,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> numpy.ndarray:
    """Combines the arrays of all ranks and scatters the rows of the result.

    Dimension 0 is shared equally; if that is not possible, the first ranks get one more row.

    Args:
        tensor: An array, or whatever numpy.asarray() takes. At least one dimension; the same shape
            and dtype on every rank.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average or hvd.Sum; any other is a HorovodInternalError on every rank.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A new array with the rows of this rank.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    return synchronize(reducescatter_async(tensor, name, op, process_set, prescale_factor, postscale_factor))


def grouped_reducescatter_async(tensors: Sequence[ArrayLike], name: Optional[str] = None, op: int = Average,
                                process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> int:
    """Starts a grouped_reducescatter() and returns at once.

    Do not change the arrays before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensors: A list of arrays, or of whatever numpy.asarray() takes, at least one. Each has at
            least one dimension and the same shape and dtype on every rank; the dtypes of the
            members may differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average or hvd.Sum; any other is a HorovodInternalError on every rank.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: One handle for poll() and synchronize(); synchronize(handle) returns a tuple of arrays.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
    """
    return _operations.grouped_reducescatter_async(tensors, name, op, prescale_factor, postscale_factor, process_set)


def grouped_reducescatter(tensors: Sequence[ArrayLike], name: Optional[str] = None, op: int = Average,
                          process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> List[numpy.ndarray]:
    """A reducescatter() of several arrays as one operation.

    Args:
        tensors: A list of arrays, or of whatever numpy.asarray() takes, at least one. Each has at
            least one dimension and the same shape and dtype on every rank; the dtypes of the
            members may differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average or hvd.Sum; any other is a HorovodInternalError on every rank.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A list of new arrays, in the same order.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
    """
    return list(synchronize(grouped_reducescatter_async(tensors, name, op, process_set, prescale_factor,
                                                        postscale_factor)))


def join(device: int = -1) -> int:
    """Announces that this rank has no more data and waits until every rank has announced the same.

    Meanwhile the allreduces of the other ranks continue without this one, which contributes zeros to sums
    and averages and is left out of Min, Max and Product. Other collectives raise
    HorovodInternalError.

    Args:
        device: Ignored, since everything is on the CPU; there for scripts written for Horovod.

    Returns: The rank that joined last, the same number on every rank.

    Raises:
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        ValueError: hvd.init() has not been called.
    """
    return _operations.join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until every rank of the set has called barrier().

    Args:
        process_set: The ranks that take part; this rank must be one of them.

    Raises:
        ValueError: hvd.init() has not been called, or this rank is not in the process set.
        HorovodInternalError: A rank of the set left or died.
    """
    _operations.barrier(process_set)


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """Broadcasts the root\'s object to every rank.

    The object is pickled, with cloudpickle if it is installed.

    Args:
        obj: Any object that can be pickled; looked at on the root only.
        root_rank: The rank whose object is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. None means 'broadcast_object'.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The copy; on the root the object itself.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.

    Example:

        epoch = hvd.broadcast_object(epoch, root_rank=0)
    """
    return objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """Gives every rank the objects of all ranks.

    The object is pickled, with cloudpickle if it is installed.

    Args:
        obj: Any object that can be pickled.
        name: Matches the calls of the ranks. None means 'allgather_object'.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list of copies, in order of rank.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.

    Example:

        hosts = hvd.allgather_object(socket.gethostname())
    """
    return objects.allgather_object(obj, name, process_set)
