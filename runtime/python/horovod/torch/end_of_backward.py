"""The end of backward(): where optimizers agree with those of other ranks about the gradients that it has computed.

Autograd calls back when a backward() ends, also a nested one, as reentrant checkpointing has it, for the
part that it has computed. After an exception it drops the callback.
"""

import gc
import threading
import weakref

import torch

_expecting = {}  # id of an optimizer -> (weak reference, thread) with new gradients
# Distinguishes a nested backward() from the outer one; older releases cannot.
_graph_task = getattr(torch._C, '_current_graph_task_id', None)


_wrapped_by = {}  # id of a parameter -> (weak reference to it, to the optimizer that was wrapped last)
may_find_garbage = False


def note_wrapped(p, optimizer):
    """A script may have dropped an earlier optimizer of this parameter, as one that trains in phases does. A schedule makes a cycle
    with its optimizer, so some ranks would have freed that and others not, whose hooks would exchange gradients for it."""
    global may_find_garbage
    key = id(p)
    reference, other = _wrapped_by.get(key, (None, None))
    if other is not None and reference() is p and other() not in (None, optimizer):
        may_find_garbage = True
    _wrapped_by[key] = (weakref.ref(p, lambda _: _wrapped_by.pop(key, None)), weakref.ref(optimizer))


def collect_garbage():
    """In the first backward() after that: frees what is no longer reachable on any rank."""
    global may_find_garbage
    may_find_garbage = False
    gc.collect()


class _Callback:
    """Queued in autograd, which calls it at the end, or drops it."""

    __slots__ = ('_optimizer', '_has_run')

    def __init__(self, optimizer):
        self._optimizer = weakref.ref(optimizer)
        self._has_run = False

    def __call__(self):
        self._has_run = True
        optimizer = self._optimizer()
        mine = _expecting.get(id(optimizer))
        if mine is None:
            return  # ended by another optimizer's callback or a nested backward()
        together = [key for key, each in _expecting.items() if each[1] == mine[1]]
        end_together([_expecting.pop(key)[0]() for key in together])

    def __del__(self):
        optimizer = self._optimizer()
        if not self._has_run and optimizer is not None and _expecting.pop(id(optimizer), None) is not None:
            optimizer._backward_failed()


def expect(optimizer, last):
    """Called within a backward() that has computed a gradient: the optimizer is notified of its end. last: what this gave the
    last time."""
    thread = threading.get_ident()
    task = None if _graph_task is None else (_graph_task(), thread)
    if task is None or task != last or id(optimizer) not in _expecting:
        torch.autograd.Variable._execution_engine.queue_callback(_Callback(optimizer))
        _expecting[id(optimizer)] = (weakref.ref(optimizer), thread)
    return task


def end_together(optimizers):
    """All optimizers send their votes before the first one waits for other ranks, whose order may differ."""
    optimizers = sorted([optimizer for optimizer in optimizers if optimizer is not None], key=lambda each: each._hvd_number)
    first_error = None
    with torch.no_grad():
        for step in ('_begin_end_of_backward', '_end_backward'):
            for optimizer in optimizers:
                try:
                    getattr(optimizer, step)()
                except Exception as error:
                    first_error = first_error or error
    if first_error is not None:
        raise first_error


class Guard:
    """Watches a gradient that is not combined yet when backward() ends, since other ranks have not computed it. A script that
    changes it before step() would change data that is discarded, or that is being sent: silently wrong numbers. While its memory
    is in flight, p.grad is a copy."""

    __slots__ = ('original', '_watched', '_version', '_norm')

    def __init__(self, p, under_way):
        self.original = grad = p.grad
        if under_way and grad.layout is torch.strided:
            p.grad = grad = grad.detach().clone()
        self._watched = grad
        self._version = grad._version
        self._norm = self._norm_of(grad)

    @staticmethod
    def _norm_of(grad):
        grad = grad.detach()
        if grad.layout is not torch.strided:
            grad = grad.coalesce().values() if grad.layout is torch.sparse_coo else grad.to_dense()
        norm = grad.double().norm() if not grad.is_complex() else grad.abs().double().norm()
        return float(norm)

    def is_intact(self, p):
        grad = p.grad
        if grad is not self._watched or grad._version != self._version:
            return False
        norm = self._norm_of(grad)  # GradScaler's unscale_() on the CPU does not increment the version
        return norm == self._norm or norm != norm and self._norm != self._norm
