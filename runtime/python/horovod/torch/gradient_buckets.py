"""Gradients that are views of buckets: DistributedOptimizer(gradient_as_bucket_view=True).

The gradients of a bucket are consecutive, in one piece of memory per type and device. As soon as autograd has
made a gradient, its values move there and p.grad becomes a view of that place, until a script drops p.grad.
The memory is exchanged as it is: nothing is packed before, unpacked or written back behind it.
"""

import torch

from horovod.common import _library
from horovod.torch import framework, gradient_memory, mpi_ops
from horovod.torch.parameters import cut_by_bytes

# Bytes of the parameters of a bucket. The first one is small, so that the exchange begins early.
FIRST_BYTES = 1 << 20
BUCKET_BYTES = 25 << 20
_ALIGNMENT = 64  # bytes: a cache line of the processor, and more than GPU kernels need


def plan(parameters):
    """The parameters as lists of those that share a bucket: the last ones first, as their gradients come first."""
    return cut_by_bytes(parameters, FIRST_BYTES, BUCKET_BYTES)


def _form_of(p):
    """Everything that determines the place and layout of p's gradient in its bucket."""
    return p.dtype, framework.device_of(p), p.shape, gradient_memory.travel_order(p)


def _described(tensor, order=gradient_memory.CONTIGUOUS):
    dtype = mpi_ops._Torch.type_of(tensor)
    if dtype is None:
        mpi_ops._Torch._refuse('DistributedOptimizer', tensor, mpi_ops._DTYPES.get(tensor.dtype))
    return dtype, gradient_memory.memory_shape(tensor.shape, order)


class GradientBucket:
    """The memory of a bucket, made for the forms that its parameters have when the first gradient comes, and again when one
    of them has changed. `gradients` have a `parameter()` and their `place` among them."""

    def __init__(self, number, gradients):
        # Named by number, so that ranks whose buckets have other parameters get an error instead of waiting for each other.
        self.name = 'bucket.{}'.format(number)
        self.gradients = gradients
        self.views = ()  # by position; not views in autograd's sense, so a script may detach_() them
        self._forms = ()
        self._addresses = ()
        self._flats = ()
        self._apart = self._whole = ()  # descriptions of the views and of the flats
        self._agreed = None  # the generation in which all ranks have this layout
        self._made_in = {}  # index of a device -> the stream in which its memory was allocated
        self._streams = set()  # (index, stream) of all that use it

    def bring(self, gradient):
        """Autograd has added to p.grad: its values move to their place, and p.grad becomes the view of it."""
        p = gradient.parameter()
        if not self._is_home(gradient, p.grad):
            if not self._fits(gradient):
                self._lay_out()
            self._move(gradient, p)

    def zeros(self, gradient):
        """The view at the place of the gradient, with zeros in it."""
        if not self._fits(gradient):
            self._lay_out()
        self._enter(gradient.parameter())
        return self.views[gradient.place].zero_()

    def gather(self, apart):
        """Has the gradients in their places, zeros for those that travel apart. Gives the tensors that are exchanged, and
        their descriptions: the first time in a world each gradient separately, which ranks compare, then the memory as a
        whole."""
        away = [gradient for gradient in self.gradients if not self._is_home(gradient, gradient.parameter().grad)]
        if not all([self._fits(gradient) for gradient in away]):
            self._lay_out()
            away = self.gradients
        for gradient in away:
            p = gradient.parameter()
            if gradient in apart:
                self.zeros(gradient)
            else:
                self._move(gradient, p)
        for flat in self._flats:
            self._enter(flat)
        if self._agreed == _library.lib().hvd_generation():
            return self._flats, self._whole
        return self.views, self._apart

    def note_exchanged(self):
        """An exchange has succeeded, so all ranks have the same layout."""
        self._agreed = _library.lib().hvd_generation()

    def _is_home(self, gradient, grad):
        # Compares the address, because a module that is converted keeps the tensor object but gets other memory.
        return (self.views and grad is self.views[gradient.place]
                and grad.data_ptr() == self._addresses[gradient.place])

    def _fits(self, gradient):
        return self._forms and self._forms[gradient.place] == _form_of(gradient.parameter())

    def _move(self, gradient, p):
        """Copies p.grad to its place, and makes it the view of it if that makes no difference to a script."""
        grad, view = p.grad, self.views[gradient.place]
        self._enter(p)
        view.copy_(grad.detach() if grad.layout is torch.strided else grad.detach().to_dense())
        if (grad.layout is torch.strided and not grad.requires_grad and grad.dtype == view.dtype
                and grad.device == view.device and grad.shape == view.shape):
            p.grad = view

    def _enter(self, tensor):
        """The stream in which the caller works on the device of this tensor is about to use the memory there."""
        place = framework.place_of_work(tensor)
        if place is None or place in self._streams:
            return
        self._streams.add(place)
        framework.adapter.follow(place[0], self._made_in[place[0]],
                                 [flat for flat in self._flats if flat.device == tensor.device])

    def _lay_out(self):
        forms = [_form_of(gradient.parameter()) for gradient in self.gradients]
        counts, begins = {}, []
        for dtype, device, shape, _ in forms:
            begins.append(counts.get((dtype, device), 0))
            unit = max(_ALIGNMENT // gradient_memory.bytes_of(dtype), 1)
            counts[dtype, device] = begins[-1] - (-shape.numel() // unit) * unit
        flats = {key: gradient_memory.zeros_in_a_row(count, *key) for key, count in counts.items()}
        views = []
        for (dtype, device, shape, order), begin in zip(forms, begins):
            part = flats[dtype, device][begin:begin + shape.numel()]
            views.append(gradient_memory.in_memory_order(part, shape, order).detach())
        self._forms, self.views, self._flats = forms, tuple(views), tuple(flats.values())
        self._addresses = [view.data_ptr() for view in views]
        self._apart = [_described(view, form[3]) for view, form in zip(views, forms)]
        self._whole = [_described(flat) for flat in self._flats]
        self._agreed = None
        places = [framework.place_of_work(flat) for flat in self._flats]
        self._streams = {place for place in places if place is not None}
        self._made_in = dict(self._streams)
