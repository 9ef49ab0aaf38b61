"""Tensors of torch as the operations of the runtime see them, and the one table of pending operations.

Used by mpi_ops (the functions of hvd) and autograd (their gradients), which both start collectives through it.
"""

import torch

from horovod.common import _library
from horovod.common import operations as _common_operations
from horovod.common import registered

DTYPES = {
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
        DTYPES[getattr(torch, _name)] = _code

if not hasattr(torch.Tensor, 'is_cpu'):  # before 1.13; the behaviour since then
    torch.Tensor.is_cpu = property(lambda tensor: tensor.device.type == 'cpu')


def _increment_by_squeezing(tensor):
    """Changes the shape of another view of the elements, which counts as a write to them."""
    tensor.detach().squeeze_()


def _increment_by_writing_nothing(tensor):
    tensor.detach().view(-1)[:0].zero_()  # three times as slow


def _counts_one_write(increment):
    tensor = torch.zeros(2, 1)
    version = tensor._version
    try:
        increment(tensor)
    except RuntimeError:  # a release that lets nobody change the shape of a detached tensor
        return False
    return tensor._version == version + 1 and tensor.shape == (2, 1)


try:
    from torch.autograd.graph import increment_version as _increment_version  # newer releases
except ImportError:
    _increment_version = (_increment_by_squeezing if _counts_one_write(_increment_by_squeezing)
                          else _increment_by_writing_nothing)


# What tensors have whose class only wraps others, as DTensor does, and owns no memory.
_NO_DISPATCH = getattr(torch.Tensor, '__torch_dispatch__', None)  # None: a release without such classes


def cuda_index(tensor):
    """The index of the CUDA device that a tensor of elements in a row is on; None for any other tensor."""
    return tensor.device.index if tensor.is_cuda and tensor.layout is torch.strided else None


def current_stream(index):
    return torch.cuda.current_stream(index)


def device_of(tensor):
    return tensor.device


def place_of_work(tensor):
    """(index, stream): the stream in which the caller works on the device of a tensor. None for the processor."""
    index = tensor.device.index if tensor.is_cuda else None
    return None if index is None else (index, current_stream(index).cuda_stream)


class Torch(_common_operations.Framework):
    tensor_type = torch.Tensor

    def is_plain(self, tensor, in_place):
        if in_place:
            return type(tensor) in (torch.Tensor, torch.nn.Parameter) and not tensor.is_neg()
        return type(tensor) is torch.Tensor and tensor.is_cpu and not tensor.is_neg()

    def check(self, operation, tensor, writable):
        dtype = DTYPES.get(tensor.dtype) if isinstance(tensor, torch.Tensor) else None
        if dtype is not None and tensor.layout is torch.strided and tensor.is_contiguous():
            if _NO_DISPATCH is not None and type(tensor).__torch_dispatch__ is not _NO_DISPATCH:
                self._refuse_wrapper(operation, tensor)
            if tensor.is_neg():
                tensor = self._resolve(operation, tensor, writable)
            if tensor.is_cpu:
                return tensor, dtype
            if cuda_index(tensor) is not None:
                return tensor, (dtype, cuda_index(tensor))
        self._refuse(operation, tensor, dtype, writable)

    @staticmethod
    def _refuse_wrapper(operation, tensor):
        local = 'use tensor.to_local()' if hasattr(tensor, 'to_local') else 'give the tensors that it wraps'
        raise ValueError('hvd.{} cannot take a {}, which has no memory of its own; {}.'.format(
            operation, type(tensor).__name__, local))

    @staticmethod
    def _resolve(operation, tensor, writable):
        """The memory of a lazy negative, such as x.conj().imag, has the other sign."""
        if writable:
            raise ValueError('hvd.{} in place needs a tensor whose memory has its values, but this is a lazy negative '
                             '(tensor.is_neg()) of other memory; use tensor.resolve_neg().'.format(operation))
        return tensor.resolve_neg()

    @staticmethod
    def type_of(tensor):
        """As the second of check(), for a contiguous tensor; None for one that no operation takes."""
        dtype = DTYPES.get(tensor.dtype)
        if dtype is None or tensor.is_cpu:
            return dtype
        index = cuda_index(tensor)
        return None if index is None else (dtype, index)

    @staticmethod
    def _refuse(operation, tensor, dtype, writable=False):
        if not isinstance(tensor, torch.Tensor):
            raise ValueError('hvd.{} takes a torch.Tensor, but {} was given.'.format(operation, type(tensor).__name__))
        if tensor.layout != torch.strided:
            raise ValueError('Tensor type {} of layout {} is not supported by hvd.{}; use tensor.to_dense(), or '
                             'hvd.sparse_allreduce_async.'.format(tensor.dtype, tensor.layout, operation))
        if tensor.device.type != 'cpu' and cuda_index(tensor) is None:
            raise NotImplementedError('hvd.{} of a tensor on {} is not available yet; use tensor.cpu().'
                                      .format(operation, tensor.device))
        if dtype is None:
            raise ValueError('Tensor type {} is not supported by hvd.{}.'.format(tensor.dtype, operation))
        if writable and any(stride == 0 and extent > 1 for stride, extent in zip(tensor.stride(), tensor.shape)):
            raise ValueError('hvd.{} in place cannot write to an expanded tensor, of shape {} and strides {}, whose '
                             'elements share memory; use tensor.clone().'.format(
                                 operation, tuple(tensor.shape), tuple(tensor.stride())))
        raise ValueError('hvd.{} needs a contiguous tensor, but one of shape {} and strides {} was given; use '
                         'tensor.contiguous().'.format(operation, tuple(tensor.shape), tuple(tensor.stride())))

    def address(self, tensor):
        return tensor.data_ptr()

    def note_written(self, tensor):
        if not isinstance(tensor, torch.Tensor):  # gradients that an optimizer processes together
            return
        try:
            _increment_version(tensor)
        except RuntimeError:  # created in inference mode, hence without versions
            pass

    def empty_like(self, tensor):
        if tensor.is_cpu:
            return torch.empty(tensor.shape, dtype=tensor.dtype, device='cpu')
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)

    def bytes_of_row(self, tensor):
        bytes_of_row = tensor.element_size()
        for extent in tensor.shape[1:]:
            bytes_of_row *= extent
        return bytes_of_row

    def from_memory(self, tensor, buffer, rows):
        rest = tensor.shape[1:]
        if buffer is None:
            return torch.empty((rows,) + tuple(rest), dtype=tensor.dtype, device=tensor.device)
        if type(buffer) is registered.DeviceMemory:
            return buffer.tensor(torch, tensor.device).view(tensor.dtype).view((rows,) + tuple(rest))
        if not rest:
            return torch.frombuffer(buffer, dtype=tensor.dtype, count=rows)
        count = rows * self.bytes_of_row(tensor) // tensor.element_size()
        return torch.frombuffer(buffer, dtype=tensor.dtype, count=count).view((rows,) + tuple(rest))

    def adopt(self, tensor, address, nbytes):
        if cuda_index(tensor) is None:
            return registered.adopt(address, nbytes)
        return registered.DeviceMemory(address, nbytes)

    def stream(self, index):
        return current_stream(index).cuda_stream

    def follow(self, index, stream, results=()):
        # A handle of 0 is the default stream, which torch.cuda.ExternalStream does not accept.
        current = current_stream(index)
        if current.cuda_stream != stream:
            earlier = torch.cuda.ExternalStream(stream, index) if stream else torch.cuda.default_stream(index)
            current.wait_stream(earlier)
            for tensor in results:
                if isinstance(tensor, torch.Tensor) and cuda_index(tensor) == index:
                    tensor.record_stream(current)

    def splits_from(self, splits):
        if isinstance(splits, torch.Tensor):
            if splits.dtype != torch.int32 or splits.dim() != 1:
                raise ValueError('splits of hvd.alltoall is a list of integers or an int32 tensor of one dimension, '
                                 'but is a {} tensor of shape {}.'.format(splits.dtype, tuple(splits.shape)))
            return splits.tolist()
        return _common_operations.list_of_integers(splits)

    def splits_to(self, numbers):
        return torch.tensor(numbers, dtype=torch.int32, device='cpu')


adapter = Torch()
operations = _common_operations.Operations(adapter)
synchronize = operations.synchronize


def check_scattered(*tensors):
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.dim() == 0:
            raise ValueError('hvd.reducescatter needs a tensor with at least one dimension, but got a scalar.')
