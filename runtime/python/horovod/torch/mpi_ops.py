"""The collectives on torch tensors, blocking and not, in place and not.

Nothing here is compiled: the runtime gets pointers. The blocking calls that are not in place are differentiable;
what their gradients are is in autograd.py.
"""

import torch

from horovod.common import _library
from horovod.common import basics as _common_basics
from horovod.common import operations as _common_operations
from horovod.common.exceptions import HorovodInternalError  # noqa: F401 (part of the interface)
from horovod.common.process_sets import (  # noqa: F401 (part of the interface)
    ProcessSet, add_process_set, global_process_set, remove_process_set)
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.torch.compression import Compression

_basics = _common_basics.shared()

init = _basics.init
shutdown = _basics.shutdown
is_initialized = _basics.is_initialized
start_timeline = _basics.start_timeline
stop_timeline = _basics.stop_timeline
size = _basics.size
local_size = _basics.local_size
cross_size = _basics.cross_size
rank = _basics.rank
local_rank = _basics.local_rank
cross_rank = _basics.cross_rank
is_homogeneous = _basics.is_homogeneous
mpi_threads_supported = _basics.mpi_threads_supported
mpi_enabled = _basics.mpi_enabled
mpi_built = _basics.mpi_built
gloo_enabled = _basics.gloo_enabled
gloo_built = _basics.gloo_built
nccl_built = _basics.nccl_built
ddl_built = _basics.ddl_built
ccl_built = _basics.ccl_built
cuda_built = _basics.cuda_built
rocm_built = _basics.rocm_built

Average = _basics.Average
Sum = _basics.Sum
Adasum = _basics.Adasum
Min = _basics.Min
Max = _basics.Max
Product = _basics.Product

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun(_basics)

_DTYPES = {
    torch.bool: _library.BOOL,
    torch.uint8: _library.UINT8,
    torch.int8: _library.INT8,
    torch.int16: _library.INT16,
    torch.int32: _library.INT32,
    torch.int64: _library.INT64,
    torch.float16: _library.FLOAT16,
    torch.float32: _library.FLOAT32,
    torch.float64: _library.FLOAT64,
    torch.bfloat16: _library.BFLOAT16,
}
for _name, _code in (('uint16', _library.UINT16), ('float8_e4m3fn', _library.FLOAT8_E4M3),
                     ('float8_e5m2', _library.FLOAT8_E5M2)):
    if hasattr(torch, _name):  # newer releases
        _DTYPES[getattr(torch, _name)] = _code


class _Torch(_common_operations.Framework):
    def check(self, operation, tensor, writable):
        dtype = _DTYPES.get(tensor.dtype) if isinstance(tensor, torch.Tensor) else None
        if dtype is not None and tensor.layout is torch.strided and tensor.is_cpu and tensor.is_contiguous():
            return tensor, dtype
        self._refuse(operation, tensor, dtype)

    @staticmethod
    def _refuse(operation, tensor, dtype):
        if not isinstance(tensor, torch.Tensor):
            raise ValueError('hvd.{} takes a torch.Tensor, but {} was given.'.format(operation, type(tensor).__name__))
        if tensor.layout != torch.strided:
            raise ValueError('Tensor type {} of layout {} is not supported by hvd.{}; use tensor.to_dense(), or '
                             'hvd.sparse_allreduce_async.'.format(tensor.dtype, tensor.layout, operation))
        if tensor.device.type != 'cpu':
            raise NotImplementedError('hvd.{} of a tensor on {} is not available yet; use tensor.cpu().'
                                      .format(operation, tensor.device))
        if dtype is None:
            raise ValueError('Tensor type {} is not supported by hvd.{}.'.format(tensor.dtype, operation))
        raise ValueError('hvd.{} needs a contiguous tensor, but one of shape {} and strides {} was given; use '
                         'tensor.contiguous().'.format(operation, tuple(tensor.shape), tuple(tensor.stride())))

    def address(self, tensor):
        return tensor.data_ptr()

    def empty_like(self, tensor):
        return torch.empty(tensor.shape, dtype=tensor.dtype)

    def bytes_of_row(self, tensor):
        bytes_of_row = tensor.element_size()
        for extent in tensor.shape[1:]:
            bytes_of_row *= extent
        return bytes_of_row

    def from_memory(self, tensor, buffer, rows):
        rest = tensor.shape[1:]
        if buffer is None:
            return torch.empty((rows,) + tuple(rest), dtype=tensor.dtype)
        if not rest:
            return torch.frombuffer(buffer, dtype=tensor.dtype, count=rows)
        count = rows * self.bytes_of_row(tensor) // tensor.element_size()
        return torch.frombuffer(buffer, dtype=tensor.dtype, count=count).view((rows,) + tuple(rest))

    def splits_from(self, splits):
        if isinstance(splits, torch.Tensor):
            if splits.dtype != torch.int32 or splits.dim() != 1:
                raise ValueError('splits of hvd.alltoall is a list of integers or an int32 tensor of one dimension, '
                                 'but is a {} tensor of shape {}.'.format(splits.dtype, tuple(splits.shape)))
            return splits.tolist()
        return _common_operations.list_of_integers(splits)

    def splits_to(self, numbers):
        return torch.tensor(numbers, dtype=torch.int32)


_operations = _common_operations.Operations(_Torch())
_handle_map = _operations.pending

poll = _operations.poll
synchronize = _operations.synchronize


def _check_has_gpu():
    return torch.cuda.is_available()


def _wants_gradient(*tensors):
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
            return torch.is_grad_enabled()
    return False


# Newer releases want to be told; the indices come from sparse tensors.
_UNCHECKED = {'check_invariants': False} if hasattr(torch.sparse, 'check_sparse_tensor_invariants') else {}


def sparse_zeros(p, sparse_dim, entries=0):
    """A sparse tensor of the shape and type of p in which all is zero, with 0 or 1 entries."""
    return torch.sparse_coo_tensor(torch.zeros(sparse_dim, entries, dtype=torch.int64, device=p.device),
                                   p.new_zeros((entries,) + p.shape[sparse_dim:]), p.shape, **_UNCHECKED)


# ---- allreduce


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=global_process_set):
    """Starts an allreduce into a new tensor and gives its handle."""
    op = handle_average_backwards_compatibility(op, average)
    return _operations.allreduce_async(tensor, False, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=global_process_set):
    """Starts an allreduce in place and gives its handle."""
    op = handle_average_backwards_compatibility(op, average)
    return _operations.allreduce_async(tensor, True, name, op, prescale_factor, postscale_factor, process_set)


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set):
    """Combines the tensor over all ranks, by default as their average, into a new tensor. Differentiable.

    The tensor must have the same shape and type on all ranks; `name` matches it across ranks, and unnamed calls
    must come in the same order everywhere.
    """
    op = handle_average_backwards_compatibility(op, average)
    compressed, ctx = compression.compress(tensor)
    if _wants_gradient(compressed):
        reduced = HorovodAllreduce.apply(compressed, None, name, op, prescale_factor, postscale_factor, process_set)
    else:
        reduced = synchronize(_operations.allreduce_async(compressed, False, name, op, prescale_factor,
                                                          postscale_factor, process_set))
    return compression.decompress(reduced, ctx)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    """Combines the tensor over all ranks, by default as their average, in place."""
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=global_process_set):
    """Starts an allreduce of several tensors into new ones and gives one handle for all."""
    op = handle_average_backwards_compatibility(op, average)
    return _operations.grouped_allreduce_async(tensors, False, name, op, prescale_factor, postscale_factor,
                                               process_set)


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=global_process_set):
    """Starts an allreduce of several tensors in place and gives one handle for all."""
    op = handle_average_backwards_compatibility(op, average)
    return _operations.grouped_allreduce_async(tensors, True, name, op, prescale_factor, postscale_factor,
                                               process_set)


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set):
    """Combines several tensors as one operation, which succeeds or fails as a whole. Differentiable."""
    op = handle_average_backwards_compatibility(op, average)
    compressed, contexts = zip(*[compression.compress(t) for t in tensors]) if len(tensors) else ((), ())
    if _wants_gradient(*compressed):
        reduced = HorovodGroupedAllreduce.apply(None, name, op, prescale_factor, postscale_factor, process_set,
                                                *compressed)
    else:
        reduced = synchronize(_operations.grouped_allreduce_async(compressed, False, name, op, prescale_factor,
                                                                  postscale_factor, process_set))
    return [compression.decompress(t, ctx) for t, ctx in zip(reduced, contexts)]


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=global_process_set):
    """Combines several tensors as one operation, in place."""
    return list(synchronize(grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor,
                                                     process_set)))


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Starts the sum or average of sparse tensors, and gives a function that waits for it and gives the result."""
    if op not in (Average, Sum):
        raise ValueError('hvd.sparse_allreduce_async takes op=hvd.Average or hvd.Sum, but {!r} was given.'.format(op))
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.sparse_coo:
        raise ValueError('hvd.sparse_allreduce_async takes a sparse COO tensor; use hvd.allreduce_async for others.')
    tensor = tensor.detach().coalesce()
    indices = tensor.indices().t().contiguous()
    handle = grouped_allgather_async([indices, tensor.values().contiguous()], name, process_set)

    def wait():
        all_indices, values = synchronize(handle)
        if op == Average:
            values = values / process_set.size()
        return torch.sparse_coo_tensor(all_indices.t(), values, tensor.shape, **_UNCHECKED)

    return wait


# ---- allgather


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Starts an allgather and gives its handle."""
    return _operations.allgather_async(tensor, name, process_set)


def allgather(tensor, name=None, process_set=global_process_set):
    """The tensors of all ranks, one after the other along dimension 0, in which they may differ. Differentiable."""
    if _wants_gradient(tensor):
        return HorovodAllgather.apply(tensor, name, process_set)
    return synchronize(allgather_async(tensor, name, process_set))


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """Starts an allgather of several tensors and gives one handle for all."""
    return _operations.grouped_allgather_async(tensors, name, process_set)


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """An allgather of several tensors as one operation. Differentiable."""
    if _wants_gradient(*tensors):
        return HorovodGroupedAllgather.apply(name, process_set, *tensors)
    return synchronize(grouped_allgather_async(tensors, name, process_set))


# ---- broadcast


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast into a new tensor and gives its handle."""
    return _operations.broadcast_async(tensor, False, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast in place and gives its handle."""
    return _operations.broadcast_async(tensor, True, root_rank, name, process_set)


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Gives every rank a copy of the root's tensor, as a new tensor. Differentiable. The root is a rank of the world,
    also within a process set."""
    if _wants_gradient(tensor):
        return HorovodBroadcast.apply(tensor, root_rank, name, process_set)
    return synchronize(broadcast_async(tensor, root_rank, name, process_set))


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Overwrites the tensor with the root's."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


# ---- alltoall


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Starts an alltoall and gives its handle; synchronize() gives the tensor and the received splits."""
    return _operations.alltoall_async(tensor, splits, name, process_set)


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends splits[i] rows to member i of the set, equal shares without splits, and gives what came from all, in order
    of rank; with splits also how many rows came from each. Differentiable."""
    if _wants_gradient(tensor):
        received, received_splits = HorovodAlltoall.apply(tensor, splits, name, process_set)
    else:
        received, received_splits = synchronize(alltoall_async(tensor, splits, name, process_set))
    return received if splits is None else (received, received_splits)


# ---- reducescatter


def _check_scattered(*tensors):
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.dim() == 0:
            raise ValueError('hvd.reducescatter needs a tensor with at least one dimension, but got a scalar.')


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                        postscale_factor=1.0):
    """Starts a reducescatter and gives its handle."""
    _check_scattered(tensor)
    return _operations.reducescatter_async(tensor, name, op, prescale_factor, postscale_factor, process_set)


def reducescatter(tensor, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                  prescale_factor=1.0, postscale_factor=1.0):
    """Combines the tensor over all ranks and gives each an equal share of its rows; the first ranks get one more
    where they cannot be shared equally. Differentiable."""
    compressed, ctx = compression.compress(tensor)
    if _wants_gradient(compressed):
        _check_scattered(compressed)
        reduced = HorovodReducescatter.apply(compressed, name, op, process_set, prescale_factor, postscale_factor)
    else:
        reduced = synchronize(reducescatter_async(compressed, name, op, process_set, prescale_factor,
                                                  postscale_factor))
    return compression.decompress(reduced, ctx)


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                                postscale_factor=1.0):
    """Starts a reducescatter of several tensors and gives one handle for all."""
    _check_scattered(*tensors)
    return _operations.grouped_reducescatter_async(tensors, name, op, prescale_factor, postscale_factor, process_set)


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """A reducescatter of several tensors as one operation. Differentiable."""
    compressed, contexts = zip(*[compression.compress(t) for t in tensors]) if len(tensors) else ((), ())
    if _wants_gradient(*compressed):
        _check_scattered(*compressed)
        reduced = HorovodGroupedReducescatter.apply(name, op, process_set, prescale_factor, postscale_factor,
                                                    *compressed)
    else:
        reduced = synchronize(grouped_reducescatter_async(compressed, name, op, process_set, prescale_factor,
                                                          postscale_factor))
    return [compression.decompress(t, ctx) for t, ctx in zip(reduced, contexts)]


# ---- without tensors


def join(device=-1):
    """Says that this rank has no more data, waits until all ranks have said so, and gives the last of them. Meanwhile
    the allreduces of the others go on without this rank."""
    return _operations.join()


def barrier(process_set=global_process_set):
    """Waits until every rank of the set has come here."""
    _operations.barrier(process_set)


# At the end, since it needs the functions above.
from horovod.torch.autograd import (  # noqa: E402
    HorovodAllgather, HorovodAllreduce, HorovodAlltoall, HorovodBroadcast, HorovodGroupedAllgather,
    HorovodGroupedAllreduce, HorovodGroupedReducescatter, HorovodReducescatter)
