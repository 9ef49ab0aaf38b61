"""DistributedOptimizer: an optimizer whose gradients are combined over all ranks while backward() still runs.

Each gradient has a home in registered memory, where the ranks of a host reduce it in place. A hook on the parameter
copies the incoming gradient there and hands autograd the copy, which becomes p.grad, so that the framework's own
buffer is free at once (_GradientHome). Whatever stands in the way of that, such as a p.grad that is set already,
create_graph, compression, or odd strides, is done without it, at the price of a copy in the runtime.
"""

import contextlib
import inspect
import os
import sys
import warnings
import weakref

import torch

from horovod.common import _library
from horovod.common import registered
from horovod.common.process_sets import global_process_set
from horovod.torch import mpi_ops
from horovod.torch.compression import Compression, NoneCompressor
from horovod.torch.mpi_ops import Adasum, Average, rocm_built, size, synchronize

_HAS_POST_HOOK = hasattr(torch.Tensor, 'register_post_accumulate_grad_hook')  # PyTorch 2.1


class _GradientHome(object):
    """Registered memory for the gradient of one parameter. It is lent to one tensor at a time."""

    __slots__ = ('_buffer', '_idle_references', '_dtype', '_shape', '_nbytes', '_unavailable')

    def __init__(self, p):
        self._buffer = None
        self._idle_references = 0
        self._dtype = p.dtype
        self._shape = p.shape
        self._nbytes = p.numel() * p.element_size()
        self._unavailable = self._nbytes == 0 or p.dtype not in mpi_ops._ALLREDUCE_DTYPES

    def fits(self, tensor):
        return tensor.dtype == self._dtype and tensor.shape == self._shape

    def _references(self):
        return sys.getrefcount(self._buffer)

    def tensor(self):
        """A tensor over the home, or None when there is no such memory. When somebody still has the last tensor,
        say a script that compares p.grad with that of an earlier step, that one keeps its memory and this one gets
        new: no gradient changes behind anybody's back."""
        if self._unavailable:
            return None
        if self._buffer is None or self._references() > self._idle_references:
            self._buffer = registered.allocate(self._nbytes)
            if self._buffer is None:
                self._unavailable = True
                return None
            # A tensor made by frombuffer holds one reference more until its storage is gone.
            self._idle_references = self._references()
        return torch.frombuffer(self._buffer, dtype=self._dtype).view(self._shape)


def _check_groups(groups):
    if groups is None:
        return
    if isinstance(groups, bool) or not isinstance(groups, (list, int)):
        raise ValueError('groups must be a list of lists of parameters or a number of groups, but is {!r}.'
                         .format(groups))
    if isinstance(groups, int):
        if groups <= 0:
            raise ValueError('groups must be a positive number, but is {}.'.format(groups))
        return
    seen = set()
    for group in groups:
        members = group if isinstance(group, (list, tuple)) else [group]
        for p in members:
            if not isinstance(p, torch.Tensor):
                raise ValueError('groups must be made of parameters, but has a {}.'.format(type(p).__name__))
            if id(p) in seen:
                raise ValueError('groups has one parameter twice.')
            seen.add(id(p))


def _names_of(param_groups, named_parameters):
    """tensor -> name for all parameters; raises the three errors of named_parameters."""
    if named_parameters is None:
        return {p: 'allreduce.noname.{}.{}'.format(i, j)
                for i, group in enumerate(param_groups) for j, p in enumerate(group['params'])}
    named_parameters = list(named_parameters)
    for entry in named_parameters:
        if not isinstance(entry, tuple):
            raise ValueError('named_parameters must be a sequence of (name, parameter) tuples, as '
                             'model.named_parameters() gives, but has a {}.'.format(type(entry).__name__))
    seen = set()
    twice = set()
    for name, _ in named_parameters:
        (twice if name in seen else seen).add(name)
    if twice:
        raise ValueError('named_parameters must have each name once, but has these more often: {}.'.format(
            ', '.join(str(name) for name in sorted(twice, key=str))))
    names = {p: name for name, p in named_parameters}
    missing = sum(1 for group in param_groups for p in group['params'] if p not in names)
    if missing:
        raise ValueError('named_parameters must name every parameter of the optimizer, but {} of them have no name; '
                         'are all models in it?'.format(missing))
    return names


class _DistributedOptimizer(object):
    """What DistributedOptimizer() puts in front of the class of the optimizer it wraps."""

    def _hvd_setup(self, named_parameters, compression, backward_passes_per_step, op, gradient_predivide_factor,
                   sparse_as_dense, process_set):
        self.backward_passes_per_step = backward_passes_per_step
        self.op = op
        self.gradient_predivide_factor = gradient_predivide_factor
        self.process_set = process_set
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._parameter_names = _names_of(self.param_groups, named_parameters)
        self._handles = {}  # p -> (handle, tensor the runtime works on, ctx of its compression)
        self._requires_update = set()
        self._allreduce_delay = {}
        self._homes = {}
        self._requests = {}  # p -> (dtype, shape, prepared request)
        self._hooks = []
        self._synchronized = False
        self._should_synchronize = True
        self._active = process_set.included() and (size() > 1 or os.environ.get('HOROVOD_ELASTIC') == '1')
        if self._active:
            self._adopt_parameters()

    # ---- hooks

    def _adopt_parameters(self):
        """Hooks every parameter that wants gradients now and had none of our hooks so far: all at construction,
        later those that were unfrozen or added with add_param_group()."""
        requires_update = self._requires_update
        for i, group in enumerate(self.param_groups):
            for j, p in enumerate(group['params']):
                if p.requires_grad and p not in requires_update:
                    requires_update.add(p)
                    if p not in self._parameter_names:
                        self._parameter_names[p] = 'allreduce.noname.{}.{}'.format(i, j)
                    self._allreduce_delay[p] = self.backward_passes_per_step
                    self._register_hooks(p)

    def _register_hooks(self, p):
        # Hooks outlive the optimizer, since the parameter owns them; they must not keep it alive.
        this = weakref.ref(self)

        def before_accumulation(grad):
            optimizer = this()
            return None if optimizer is None else optimizer._bring_home(p_ref(), grad)

        def after_accumulation(*unused):
            optimizer = this()
            if optimizer is not None:
                optimizer._gradient_is_ready(p_ref())

        p_ref = weakref.ref(p)
        if self._compression is NoneCompressor and p.is_leaf:
            before_accumulation.__torch_unserializable__ = True  # silences a warning when p is pickled
            self._homes[p] = _GradientHome(p)
            self._hooks.append(p.register_hook(before_accumulation))
        if _HAS_POST_HOOK:
            self._hooks.append(p.register_post_accumulate_grad_hook(after_accumulation))
        else:
            # The node that adds to p.grad. It lives only as long as somebody holds it.
            with torch.enable_grad():
                accumulate_grad = p.expand_as(p).grad_fn.next_functions[0][0]
            self._hooks.append((accumulate_grad, accumulate_grad.register_hook(after_accumulation)))

    def _bring_home(self, p, grad):
        """Runs before autograd adds `grad` to p.grad: a copy in registered memory, or None to leave it alone."""
        # With grad mode on, the gradient is itself part of a graph (create_graph).
        if p is None or p.grad is not None or grad is None or torch.is_grad_enabled():
            return None
        home = self._homes[p]
        if (grad.layout != torch.strided or not home.fits(grad) or grad.device.type != 'cpu'
                or not p.is_contiguous()):
            return None
        tensor = home.tensor()
        if tensor is None:
            return None
        tensor.copy_(grad)
        return tensor

    def _gradient_is_ready(self, p):
        """Runs after autograd added to p.grad."""
        if p is None:
            return
        if self._allreduce_delay[p] <= 0 or p in self._handles:
            raise AssertionError(
                'Gradients were computed more than backward_passes_per_step times before step() was called; call '
                'step(), or give DistributedOptimizer a larger backward_passes_per_step.')
        self._allreduce_delay[p] -= 1
        if self._allreduce_delay[p] == 0:
            self._submit(p)

    # ---- exchange

    def _scaling(self):
        if self.op == Average:
            return 1.0 / self.gradient_predivide_factor, self.gradient_predivide_factor
        return 1.0, 1.0

    def _submit(self, p):
        """Starts the allreduce of p.grad."""
        grad = p.grad.detach()
        if grad.layout != torch.strided:
            if not self._sparse_as_dense:
                raise NotImplementedError(
                    'The gradient of {} is sparse, which DistributedOptimizer cannot exchange yet; give it '
                    'sparse_as_dense=True.'.format(self._parameter_names[p]))
            grad = grad.to_dense()
        tensor, ctx = self._compression.compress(grad)
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        dtype = mpi_ops._check_tensor('allreduce', tensor, mpi_ops._ALLREDUCE_DTYPES)
        prepared = self._requests.get(p)
        if prepared is None or prepared[0] != dtype or prepared[1] != tensor.shape:
            prescale, postscale = self._scaling()
            request = _library.Request(
                _library.ALLREDUCE, 'allreduce.{}'.format(self._parameter_names[p]), dtype, tensor.shape,
                reduce_op=self.op, process_set=self.process_set.process_set_id, prescale=prescale,
                postscale=postscale)
            prepared = self._requests[p] = (dtype, tensor.shape, request)
        address = tensor.data_ptr()
        handle = prepared[2].submit(address, address)
        mpi_ops._handle_map[handle] = (tensor, tensor)
        self._handles[p] = (handle, tensor, ctx)

    def _submit_missing(self):
        """Starts what backward() did not: parameters that took no part in it send zeros, since others may have
        computed a gradient for them."""
        self._adopt_parameters()
        for group in self.param_groups:
            for p in group['params']:
                if p in self._requires_update and p not in self._handles:
                    if p.grad is None:
                        home = self._homes.get(p)
                        zeros = home.tensor() if home is not None and home.fits(p) else None
                        p.grad = torch.zeros_like(p) if zeros is None else zeros.zero_()
                    self._submit(p)

    def _write_back(self, p, tensor, ctx):
        reduced = self._compression.decompress(tensor, ctx)
        grad = p.grad
        if grad is None:
            p.grad = reduced
        elif grad.layout != torch.strided:
            p.grad = reduced.to_sparse(grad.sparse_dim())
        elif reduced.data_ptr() != grad.data_ptr():  # else it was reduced where it is
            grad.copy_(reduced)

    def synchronize(self):
        """Waits until all gradients are combined. step() does it; call it before if you need them earlier, for
        example to clip them, and then step within skip_synchronize()."""
        if self._active:
            with torch.no_grad():
                self._synchronize()
        self._synchronized = True

    def _synchronize(self):
        first_error = None
        try:
            self._submit_missing()
        except mpi_ops.HorovodInternalError as error:
            first_error = error
        for p, (handle, tensor, ctx) in list(self._handles.items()):
            try:
                synchronize(handle)
                if first_error is None:
                    self._write_back(p, tensor, ctx)
            except mpi_ops.HorovodInternalError as error:
                first_error = first_error or error
            del self._handles[p]  # not reached when Ctrl-C ended the wait
        self._reset_counters()
        if first_error is not None:
            raise first_error

    def _reset_counters(self):
        for p in self._allreduce_delay:
            self._allreduce_delay[p] = self.backward_passes_per_step

    # ---- what scripts call

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Within it step() takes the gradients as they are; use it after synchronize()."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn('optimizer.step() called without optimizer.skip_synchronize() context after '
                              'optimizer.synchronize(). The gradients are exchanged a second time, which slows '
                              'training down; put the step into `with optimizer.skip_synchronize():`.',
                              stacklevel=2)
            if closure is None:
                self.synchronize()
            elif self._active:
                if self._handles:
                    self.synchronize()
                closure = self._synchronized_closure(closure)
        self._synchronized = False
        result = super(_DistributedOptimizer, self).step() if closure is None else (
            super(_DistributedOptimizer, self).step(closure))
        self._synchronized = False
        return result

    # Optimizer's constructor would wrap this method in one that runs step hooks, and wraps the base class's, too.
    step.hooked = True

    def _synchronized_closure(self, closure):
        def evaluate():
            loss = closure()
            self.synchronize()
            return loss

        return evaluate

    def zero_grad(self, *args, **kwargs):
        if self._handles:
            raise AssertionError('optimizer.zero_grad() was called after loss.backward() but before '
                                 'optimizer.step() or optimizer.synchronize(), while gradients are being exchanged.')
        return super(_DistributedOptimizer, self).zero_grad(*args, **kwargs)

    def set_backward_passes_per_step(self, passes):
        """From the next step on, gradients of so many backward() calls are added up before they are exchanged."""
        if passes <= 0:
            raise ValueError('backward_passes_per_step must be greater than 0, but is {}.'.format(passes))
        self.backward_passes_per_step = passes
        self._reset_counters()

    def load_state_dict(self, *args, **kwargs):
        # What is in flight belongs to the state that is being replaced.
        for handle, _, _ in list(self._handles.values()):
            try:
                synchronize(handle)
            except mpi_ops.HorovodInternalError:
                pass
        self._handles.clear()
        self._synchronized = False
        self._reset_counters()
        return super(_DistributedOptimizer, self).load_state_dict(*args, **kwargs)


def _constructor_arguments(optimizer):
    """Defaults of the optimizer that its class takes by name; some classes insist on some of them."""
    try:
        accepted = inspect.signature(type(optimizer).__init__).parameters
    except (TypeError, ValueError):
        return {}
    return {name: value for name, value in optimizer.defaults.items() if name in accepted}


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none, backward_passes_per_step=1,
                         op=Average, gradient_predivide_factor=1.0, num_groups=0, groups=None, sparse_as_dense=False,
                         process_set=global_process_set):
    """An optimizer of the same class and options that combines gradients over all ranks before each step.

    optimizer: the one to wrap; its state is not taken over, so load checkpoints afterwards.
    named_parameters: (name, parameter) of all parameters in it, usually model.named_parameters(): names in messages.
    compression: how gradients travel, hvd.Compression.none or fp16.
    backward_passes_per_step: so many backward() calls are added up locally before gradients are exchanged.
    op: hvd.Average or hvd.Sum.
    gradient_predivide_factor: with Average, divide by this before adding up, and by size()/this after it.
    num_groups, groups: which gradients to exchange together. Checked, and otherwise left to the runtime, which
        decides that by itself; results do not depend on it.
    sparse_as_dense: exchange sparse gradients as dense ones.
    """
    if gradient_predivide_factor != 1.0:
        if rocm_built():
            raise ValueError('gradient_predivide_factor is not supported with ROCm.')
        if op != Average:
            raise ValueError('gradient_predivide_factor needs op=hvd.Average, since it says when to divide.')
    if backward_passes_per_step <= 0:
        raise ValueError('backward_passes_per_step must be greater than 0, but is {}.'
                         .format(backward_passes_per_step))
    if num_groups != 0:
        warnings.warn('The argument num_groups is deprecated; use groups instead.', DeprecationWarning, stacklevel=2)
        if groups is None:
            groups = num_groups
    _check_groups(groups)
    mpi_ops._check_op(op)
    mpi_ops._process_set_id(process_set)
    base = type(optimizer)
    cls = type(base.__name__, (_DistributedOptimizer, base), {'__module__': base.__module__, '__doc__': base.__doc__})
    distributed = cls(optimizer.param_groups, **_constructor_arguments(optimizer))
    distributed._hvd_setup(named_parameters, compression, backward_passes_per_step, op, gradient_predivide_factor,
                           sparse_as_dense, process_set)
    return distributed
