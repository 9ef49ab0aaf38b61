"""The collectives on NumPy arrays, blocking and not, in place and not."""

import numpy

from horovod.common import _library, objects
from horovod.common import operations as _common_operations
from horovod.common.process_sets import global_process_set

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
_codes = {}  # dtype -> code, since names of types are made anew each time


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


def allreduce_async(tensor, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=global_process_set):
    """Starts an allreduce into a new array and gives its handle."""
    return _operations.allreduce_async(tensor, False, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=global_process_set):
    """Starts an allreduce in place and gives its handle."""
    return _operations.allreduce_async(tensor, True, name, op, prescale_factor, postscale_factor, process_set)


def allreduce(tensor, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
              process_set=global_process_set):
    """Combines the array over all ranks, by default as their average, into a new array."""
    return synchronize(allreduce_async(tensor, name, op, prescale_factor, postscale_factor, process_set))


def allreduce_(tensor, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    """Combines the array over all ranks, by default as their average, in place."""
    return synchronize(allreduce_async_(tensor, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async(tensors, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=global_process_set):
    """Starts an allreduce of several arrays into new ones and gives one handle for all."""
    return _operations.grouped_allreduce_async(tensors, False, name, op, prescale_factor, postscale_factor,
                                               process_set)


def grouped_allreduce_async_(tensors, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=global_process_set):
    """Starts an allreduce of several arrays in place and gives one handle for all."""
    return _operations.grouped_allreduce_async(tensors, True, name, op, prescale_factor, postscale_factor,
                                               process_set)


def grouped_allreduce(tensors, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
                      process_set=global_process_set):
    """Combines several arrays as one operation, which succeeds or fails as a whole."""
    return list(synchronize(grouped_allreduce_async(tensors, name, op, prescale_factor, postscale_factor,
                                                    process_set)))


def grouped_allreduce_(tensors, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=global_process_set):
    """Combines several arrays as one operation, in place."""
    return list(synchronize(grouped_allreduce_async_(tensors, name, op, prescale_factor, postscale_factor,
                                                     process_set)))


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Starts an allgather and gives its handle."""
    return _operations.allgather_async(tensor, name, process_set)


def allgather(tensor, name=None, process_set=global_process_set):
    """The arrays of all ranks, one after the other along dimension 0, in which they may differ."""
    return synchronize(allgather_async(tensor, name, process_set))


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """Starts an allgather of several arrays and gives one handle for all."""
    return _operations.grouped_allgather_async(tensors, name, process_set)


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """An allgather of several arrays as one operation."""
    return list(synchronize(grouped_allgather_async(tensors, name, process_set)))


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast into a new array and gives its handle."""
    return _operations.broadcast_async(tensor, False, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast in place and gives its handle."""
    return _operations.broadcast_async(tensor, True, root_rank, name, process_set)


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Gives every rank a copy of the root's array, as a new array. The root is a rank of the world, also within a
    process set."""
    return synchronize(broadcast_async(tensor, root_rank, name, process_set))


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Overwrites the array with the root's."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Starts an alltoall and gives its handle; synchronize() gives the array and the received splits."""
    return _operations.alltoall_async(tensor, splits, name, process_set)


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends splits[i] rows to member i of the set, equal shares without splits, and gives what came from all, in order
    of rank; with splits also how many rows came from each."""
    received, received_splits = synchronize(alltoall_async(tensor, splits, name, process_set))
    return received if splits is None else (received, received_splits)


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                        postscale_factor=1.0):
    """Starts a reducescatter and gives its handle."""
    return _operations.reducescatter_async(tensor, name, op, prescale_factor, postscale_factor, process_set)


def reducescatter(tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                  postscale_factor=1.0):
    """Combines the array over all ranks and gives each an equal share of its rows; the first ranks get one more where
    they cannot be shared equally."""
    return synchronize(reducescatter_async(tensor, name, op, process_set, prescale_factor, postscale_factor))


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                                postscale_factor=1.0):
    """Starts a reducescatter of several arrays and gives one handle for all."""
    return _operations.grouped_reducescatter_async(tensors, name, op, prescale_factor, postscale_factor, process_set)


def grouped_reducescatter(tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """A reducescatter of several arrays as one operation."""
    return list(synchronize(grouped_reducescatter_async(tensors, name, op, process_set, prescale_factor,
                                                        postscale_factor)))


def join(device=-1):
    """Says that this rank has no more data, waits until all ranks have said so, and gives the last of them. Meanwhile
    the allreduces of the others go on without this rank."""
    return _operations.join()


def barrier(process_set=global_process_set):
    """Waits until every rank of the set has come here."""
    _operations.barrier(process_set)


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Gives every rank of the set a copy of the root's object; the root gets its own back."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj, name=None, process_set=global_process_set):
    """A list of the objects of all ranks of the set, in order of rank."""
    return objects.allgather_object(obj, name, process_set)
