"""The optimizer behind DistributedOptimizer(op=hvd.Adasum).

Adasum combines the changes of the ranks' own steps, not their gradients: as soon as a gradient is ready, the wrapped
class steps that one parameter, the change is exchanged, and step() adds the combined change to the parameter's old value.
"""

import contextlib
import weakref

import torch

from horovod.common import _native
from horovod.torch.mpi_ops import (
    Adasum, HorovodInternalError, allreduce_async_, global_process_set, synchronize)
from horovod.torch.parameters import after_gradient, keep_travel_name, names_of, remove_hooks, travel_name
from horovod.torch.wrapping import plain_step


class _DistributedAdasumOptimizer:
    """The class that DistributedOptimizer() derives from the class of the optimizer it wraps."""

    def _hvd_setup(self, named_parameters, compression, backward_passes_per_step):
        self.backward_passes_per_step = backward_passes_per_step
        self.op = Adasum
        self.process_set = global_process_set
        self._compression = compression
        self._parameter_names = names_of(self.param_groups, named_parameters)
        self._handles = {}  # p -> (handle, change in use by the runtime, its context)
        self._allreduce_delay = {}
        self._requires_update = set()
        self._hooks = []
        this = weakref.ref(self)  # the parameter owns the hook, which must not keep the optimizer alive
        for group in self.param_groups:
            for p in group['params']:
                if p.requires_grad:
                    p.grad = torch.zeros_like(p)
                    keep_travel_name(p, self._parameter_names[p], self.process_set)
                    self._requires_update.add(p)
                    self._allreduce_delay[p] = backward_passes_per_step
                    self._hooks.append(after_gradient(p, self._hook(this, weakref.ref(p))))

    def _hvd_release(self):
        """Releases the parameters before they are adopted again."""
        if self._handles:
            raise ValueError('This optimizer is being wrapped again while its steps are exchanged; call step() before.')
        remove_hooks(self._hooks)

    @staticmethod
    def _hook(this, p_ref):
        def gradient_is_ready(*unused):
            optimizer, p = this(), p_ref()
            if optimizer is not None and p is not None:
                optimizer._gradient_is_ready(p)

        return gradient_is_ready

    def _gradient_is_ready(self, p):
        if self._allreduce_delay[p] <= 0 or p in self._handles:
            raise AssertionError(
                'Gradients were computed more than backward_passes_per_step times before step() was called; call '
                'step(), or give DistributedOptimizer a larger backward_passes_per_step.')
        self._allreduce_delay[p] -= 1
        if self._allreduce_delay[p] == 0:
            with torch.no_grad():
                self._submit(p)

    def _submit(self, p):
        """Steps this parameter alone, undoes the step, and starts the exchange of its change."""
        start = p.detach().clone()
        self._step_only(p)
        change = (p.detach() - start).contiguous()
        p.copy_(start)
        compressed, ctx = self._compression.compress(change)
        name = travel_name(p, self._parameter_names[p], self.process_set)
        handle = allreduce_async_(compressed, op=Adasum, name=name)
        self._handles[p] = (handle, compressed, ctx)

    def _step_only(self, p):
        """A step of the wrapped class with this parameter only, without hooks: step() runs them."""
        groups = self.param_groups
        own = next(group for group in groups if any(q is p for q in group['params']))
        parameters = own['params']
        try:
            own['params'] = [p]
            self.param_groups = [own]
            plain_step(self)(self)
        finally:
            own['params'] = parameters
            self.param_groups = groups

    def synchronize(self):
        """Nothing: there are no gradients to wait for."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        raise AssertionError('skip_synchronize() does not go with op=hvd.Adasum, which exchanges steps and not '
                             'gradients.')
        yield

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        with torch.no_grad():
            self._finish()
        _native.call('note_step')
        return loss

    def _finish(self):
        for group in self.param_groups:  # in the same order on all ranks
            for p in group['params']:
                if p in self._requires_update and p not in self._handles:
                    self._submit(p)
        first_error = None
        for p, (handle, change, ctx) in list(self._handles.items()):
            try:
                synchronize(handle)
                if first_error is None:
                    p.add_(self._compression.decompress(change, ctx))
            except HorovodInternalError as error:
                first_error = first_error or error
            del self._handles[p]
        self._reset_counters()
        if first_error is not None:
            raise first_error

    def _reset_counters(self):
        for p in self._allreduce_delay:
            self._allreduce_delay[p] = self.backward_passes_per_step

    def set_backward_passes_per_step(self, passes):
        """Sets the number of backward() calls whose gradients are added up before a parameter is stepped, from the next step on."""
        if passes <= 0:
            raise ValueError('backward_passes_per_step must be greater than 0, but is {}.'.format(passes))
        self.backward_passes_per_step = passes
        self._reset_counters()

    def discard(self):
        """Drops the steps that are being exchanged, if a script skips a batch. All ranks have to call it."""
        for p, (handle, _, _) in list(self._handles.items()):
            synchronize(handle)
            del self._handles[p]
        self._reset_counters()

    def zero_grad(self, *args, **kwargs):
        if self._handles:
            raise AssertionError('optimizer.zero_grad() was called after loss.backward() but before '
                                 'optimizer.step(), while steps are being exchanged.')
        return super(_DistributedAdasumOptimizer, self).zero_grad(*args, **kwargs)
