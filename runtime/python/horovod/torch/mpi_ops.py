"""The collectives on torch tensors, blocking and not, in place and not.

An asynchronous call gives an int handle; the tensors of a pending handle are kept alive in _handle_map until
synchronize() has seen its end. Nothing here is compiled: the runtime gets pointers.
"""

import torch

from horovod.common import _library
from horovod.common import basics as _common_basics
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

# handle -> (output, input): keeps both alive while the runtime works on their memory.
_handle_map = {}

_ALLREDUCE_DTYPES = {
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
if hasattr(torch, 'uint16'):
    _ALLREDUCE_DTYPES[torch.uint16] = _library.UINT16
_COPY_DTYPES = dict(_ALLREDUCE_DTYPES)
_COPY_DTYPES[torch.bool] = _library.BOOL


def _check_has_gpu():
    return torch.cuda.is_available()


def _later(what, instead=None):
    sentence = '{} is not available yet'.format(what)
    return NotImplementedError(sentence + ('; {}.'.format(instead) if instead else '.'))


def _check_tensor(operation, tensor, dtypes):
    """The runtime's code of the tensor's type; raises when the operation cannot take the tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError('hvd.{} takes a torch.Tensor, but {} was given.'.format(operation, type(tensor).__name__))
    if tensor.layout != torch.strided:
        raise _later('hvd.{} of a sparse tensor'.format(operation), 'use tensor.to_dense()')
    if tensor.device.type != 'cpu':
        raise _later('hvd.{} of a tensor on {}'.format(operation, tensor.device), 'use tensor.cpu()')
    dtype = dtypes.get(tensor.dtype)
    if dtype is None:
        raise ValueError('Tensor type {} is not supported by hvd.{}.'.format(tensor.dtype, operation))
    if not tensor.is_contiguous():
        raise ValueError('hvd.{} needs a contiguous tensor, but one of shape {} and strides {} was given; use '
                         'tensor.contiguous().'.format(operation, tuple(tensor.shape), tuple(tensor.stride())))
    return dtype


def _process_set_id(process_set):
    number = process_set.process_set_id
    if number is None:
        raise ValueError('{} is not registered; add it with hvd.add_process_set() first.'.format(process_set))
    return number


def _full_name(operation, name):
    # Unnamed collectives are numbered by the runtime, so that all frameworks of the process share one count.
    return None if name is None else '{}.{}'.format(operation, name)


def _check_op(op):
    if op == Adasum:
        raise _later('op=hvd.Adasum', 'use hvd.Average or hvd.Sum')
    if op not in (Average, Sum, Min, Max, Product):
        raise ValueError('op must be hvd.Average, hvd.Sum, hvd.Min, hvd.Max or hvd.Product, but is {!r}.'.format(op))


def _allreduce_async(tensor, output, name, op, prescale_factor, postscale_factor, process_set):
    _check_op(op)
    dtype = _check_tensor('allreduce', tensor, _ALLREDUCE_DTYPES)
    if output is None:
        output = torch.empty(tensor.shape, dtype=tensor.dtype)
    request = _library.Request(_library.ALLREDUCE, _full_name('allreduce', name), dtype, tensor.shape, reduce_op=op,
                               process_set=_process_set_id(process_set), prescale=prescale_factor,
                               postscale=postscale_factor)
    handle = request.submit(tensor.data_ptr(), output.data_ptr())
    _handle_map[handle] = (output, tensor)
    return handle


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=global_process_set):
    """Starts an allreduce into a new tensor and gives its handle."""
    op = handle_average_backwards_compatibility(op, average)
    return _allreduce_async(tensor, None, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=global_process_set):
    """Starts an allreduce in place and gives its handle."""
    op = handle_average_backwards_compatibility(op, average)
    return _allreduce_async(tensor, tensor, name, op, prescale_factor, postscale_factor, process_set)


class HorovodAllreduce(torch.autograd.Function):
    """Allreduce whose gradient is the allreduce of the gradient with the same arguments."""

    @staticmethod
    def forward(ctx, tensor, average, name, op, prescale_factor, postscale_factor, process_set):
        ctx.arguments = (average, op, prescale_factor, postscale_factor, process_set)
        return synchronize(allreduce_async(tensor, average, name, op, prescale_factor, postscale_factor, process_set))

    @staticmethod
    def backward(ctx, grad_output):
        average, op, prescale_factor, postscale_factor, process_set = ctx.arguments
        grad = allreduce(grad_output.contiguous(), average=average, op=op, prescale_factor=prescale_factor,
                         postscale_factor=postscale_factor, process_set=process_set)
        return grad, None, None, None, None, None, None


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set):
    """Combines the tensor over all ranks, by default as their average, into a new tensor. Differentiable.

    The tensor must have the same shape and type on all ranks; `name` matches it across ranks, and unnamed calls
    must come in the same order everywhere.
    """
    op = handle_average_backwards_compatibility(op, average)
    compressed, ctx = compression.compress(tensor)
    if torch.is_grad_enabled() and isinstance(compressed, torch.Tensor) and compressed.requires_grad:
        reduced = HorovodAllreduce.apply(compressed, None, name, op, prescale_factor, postscale_factor, process_set)
    else:
        reduced = synchronize(_allreduce_async(compressed, None, name, op, prescale_factor, postscale_factor,
                                               process_set))
    return compression.decompress(reduced, ctx)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    """Combines the tensor over all ranks, by default as their average, in place."""
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def _broadcast_async(tensor, output, root_rank, name, process_set):
    dtype = _check_tensor('broadcast', tensor, _COPY_DTYPES)
    if output is None:
        output = torch.empty(tensor.shape, dtype=tensor.dtype)
    request = _library.Request(_library.BROADCAST, _full_name('broadcast', name), dtype, tensor.shape,
                               root_rank=root_rank, process_set=_process_set_id(process_set))
    handle = request.submit(tensor.data_ptr(), output.data_ptr())
    _handle_map[handle] = (output, tensor)
    return handle


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast into a new tensor and gives its handle."""
    return _broadcast_async(tensor, None, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast in place and gives its handle."""
    return _broadcast_async(tensor, tensor, root_rank, name, process_set)


class HorovodBroadcast(torch.autograd.Function):
    """Broadcast whose gradient is the average of the gradients on the root, and zero elsewhere."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, grad_output):
        grad = allreduce(grad_output.contiguous(), op=Average, process_set=ctx.process_set)
        if rank() != ctx.root_rank:
            grad = grad * 0
        return grad, None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Gives every rank a copy of the root's tensor, as a new tensor. Differentiable."""
    if torch.is_grad_enabled() and isinstance(tensor, torch.Tensor) and tensor.requires_grad:
        return HorovodBroadcast.apply(tensor, root_rank, name, process_set)
    return synchronize(broadcast_async(tensor, root_rank, name, process_set))


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Overwrites the tensor with the root's."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def barrier(process_set=global_process_set):
    """Waits until every rank has come here."""
    request = _library.Request(_library.BARRIER, None, None, None, process_set=_process_set_id(process_set))
    error = _library.wait(request.submit())
    if error is not None:
        raise error


def poll(handle):
    """Whether synchronize(handle) would return at once."""
    return handle not in _handle_map or _library.poll(handle)


def synchronize(handle):
    """Waits for an asynchronous call and gives its output, None for a handle that is not known (any more)."""
    tensors = _handle_map.get(handle)
    if tensors is None:
        return None
    error = _library.wait(handle)
    # Not before: if Ctrl-C ended the wait, the runtime still works on this memory.
    _handle_map.pop(handle, None)
    if error is not None:
        raise error
    return tensors[0]


# What follows has its place in the interface, but the runtime cannot do it yet.

def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    raise _later('hvd.sparse_allreduce_async', 'use tensor.to_dense() and hvd.allreduce_async')


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set):
    raise _later('hvd.grouped_allreduce', 'use hvd.allreduce for each tensor')


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=global_process_set):
    raise _later('hvd.grouped_allreduce_', 'use hvd.allreduce_ for each tensor')


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=global_process_set):
    raise _later('hvd.grouped_allreduce_async', 'use hvd.allreduce_async for each tensor')


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=global_process_set):
    raise _later('hvd.grouped_allreduce_async_', 'use hvd.allreduce_async_ for each tensor')


def allgather(tensor, name=None, process_set=global_process_set):
    raise _later('hvd.allgather')


def allgather_async(tensor, name=None, process_set=global_process_set):
    raise _later('hvd.allgather_async')


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    raise _later('hvd.grouped_allgather')


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    raise _later('hvd.grouped_allgather_async')


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    raise _later('hvd.alltoall')


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    raise _later('hvd.alltoall_async')


def reducescatter(tensor, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                  prescale_factor=1.0, postscale_factor=1.0):
    raise _later('hvd.reducescatter')


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                        postscale_factor=1.0):
    raise _later('hvd.reducescatter_async')


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    raise _later('hvd.grouped_reducescatter')


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                                postscale_factor=1.0):
    raise _later('hvd.grouped_reducescatter_async')


def join(device=-1):
    raise _later('hvd.join', 'give every rank the same number of batches')
