"""Where gradients are while they are exchanged: in registered memory, and in the order of their parameter's strides."""

import sys

import torch

from horovod.common import registered
from horovod.torch import mpi_ops

CONTIGUOUS = 0
# Bytes. Up to this size reducing a gradient in private memory takes hardly longer than in registered memory (docs/benchmarks.md, private
# and registered memory), and neither hook nor copy is needed.
HOME_ABOVE = 64 * 1024
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def memory_order(tensor):
    """CONTIGUOUS, a memory format whose elements have no gaps either, or None for any other strides."""
    if tensor.is_contiguous():
        return CONTIGUOUS
    memory_format = _CHANNELS_LAST.get(tensor.dim())
    if memory_format is not None and tensor.is_contiguous(memory_format=memory_format):
        return memory_format
    return None


def travel_order(p):
    """The order in which gradients of p travel: that of p, which is the same on all ranks."""
    order = memory_order(p)
    return CONTIGUOUS if order is None else order


def memory_shape(shape, order):
    """The shape of the elements in order of memory. One dimension more tells channels last apart from contiguous, so
    that ranks that disagree get an error and not a wrong sum."""
    if order == CONTIGUOUS:
        return shape
    return (shape[0],) + tuple(shape[2:]) + (shape[1], 1)


def in_order(tensor, order):
    """The tensor, or a copy of it with its elements in this order."""
    if memory_order(tensor) == order:
        return tensor
    return tensor.contiguous() if order == CONTIGUOUS else tensor.contiguous(memory_format=order)


def in_memory_order(flat, shape, order):
    """Elements in a row as a tensor of this shape whose memory has this order."""
    if order == CONTIGUOUS:
        return flat if len(shape) == 1 else flat.view(shape)
    last = len(shape) - 1
    return flat.view((shape[0],) + tuple(shape[2:]) + (shape[1],)).permute(0, last, *range(1, last))


def bytes_of(dtype):
    return torch.empty((), dtype=dtype, device='cpu').element_size()


def zeros_in_a_row(count, dtype, device):
    """This many zeros: host tensors in registered memory, if there is any."""
    if device.type == 'cpu' and dtype in mpi_ops._DTYPES:
        buffer = registered.allocate(count * bytes_of(dtype))
        if buffer is not None:
            return torch.frombuffer(buffer, dtype=dtype, count=count)
    return torch.zeros(count, dtype=dtype, device=device)


def zeros(p):
    """A gradient of zeros for p that is its own: in registered memory, if there is any, so that it is reduced where
    it is."""
    if p.device.type == 'cpu' and mpi_ops.size() > 1:
        tensor = GradientHome(p).tensor(p)
        if tensor is not None:
            return tensor
    return torch.zeros_like(p, requires_grad=False)


def pays_for_a_home(p):
    """Whether gradients of p are worth copying to registered memory, which the processor's tensors have."""
    return p.device.type == 'cpu' and p.numel() * p.element_size() > HOME_ABOVE


class GradientForm:
    """All that decides how a gradient is described, and that description."""

    __slots__ = ('_dtype', '_device', '_shape', '_strides', 'description')

    def __init__(self, tensor, description):
        self._dtype = tensor.dtype
        self._device = tensor.device
        self._shape = tensor.shape
        self._strides = tensor.stride()
        self.description = description

    def fits(self, tensor):
        return (tensor.layout is torch.strided and tensor.dtype == self._dtype and tensor.device == self._device
                and tensor.shape == self._shape and tensor.stride() == self._strides and not tensor.requires_grad)


class GradientHome:
    """Registered memory for the gradient of one parameter. It is lent to one tensor at a time."""

    __slots__ = ('_buffer', '_idle_references', '_dtype', '_shape', '_count', '_nbytes', '_unavailable', '_address',
                 '_strides', 'description')

    def __init__(self, p):
        self._buffer = None
        self._idle_references = 0
        self._address = None  # of the tensor it was last lent to, and its strides
        self._strides = None
        self.description = None  # that tensor's type and shape, as it travels
        self._dtype = p.dtype
        self._shape = p.shape
        self._count = p.numel()
        self._nbytes = p.numel() * p.element_size()
        self._unavailable = self._nbytes == 0 or p.dtype not in mpi_ops._DTYPES

    def fits(self, tensor):
        return tensor.is_cpu and tensor.dtype == self._dtype and tensor.shape == self._shape

    def holds(self, tensor):
        """Whether this is the tensor that it was lent to last."""
        return (self._address is not None and tensor.layout is torch.strided and tensor.data_ptr() == self._address
                and tensor.stride() == self._strides and self.fits(tensor))

    def _references(self):
        return sys.getrefcount(self._buffer)

    def tensor(self, p):
        """A tensor over the home with the strides of p, or None if there is no such memory. If there is still a reference to
        the last tensor, say a script that compares p.grad with that of an earlier step, that one keeps its memory and
        this one gets new memory, so that no gradient changes unexpectedly."""
        order = memory_order(p)
        if self._unavailable or order is None:
            return None
        if self._buffer is None or self._references() > self._idle_references:
            self._buffer = registered.allocate(self._nbytes)
            if self._buffer is None:
                self._unavailable = True
                return None
            # A tensor made by frombuffer holds one more reference until its storage is gone.
            self._idle_references = self._references()
            self._address = registered.address(self._buffer)
        tensor = self._over_buffer(order)
        if self._strides != tensor.stride():
            self._strides = tensor.stride()
            self.description = (mpi_ops._DTYPES[self._dtype], memory_shape(self._shape, order))
        return tensor

    def _over_buffer(self, order):
        return in_memory_order(torch.frombuffer(self._buffer, dtype=self._dtype, count=self._count), self._shape, order)
