"""The state of a model, its optimizer and a sampler, beside plain values."""

from __future__ import annotations

import copy
import types
import weakref

import torch

from horovod.common.commit_store import CommitRefused
from horovod.common.elastic import ObjectState
from horovod.torch.elastic._copies import ModulePlan, OptimizerPlan, copied, reduced
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from horovod.torch.mpi_ops import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class StateHandler:
    """Saves, restores and broadcasts one kind of value.

    Args:
        value: The value to handle.
    """

    def __init__(self, value):
        self.value = value

    def save(self):
        """Keeps a copy of the value in memory."""
        raise NotImplementedError('{} needs a method save().'.format(type(self).__name__))

    def restore(self):
        """Restores the copy."""
        raise NotImplementedError('{} needs a method restore().'.format(type(self).__name__))

    def sync(self):
        """Broadcasts the value of rank 0 to all ranks. A collective."""
        raise NotImplementedError('{} needs a method sync().'.format(type(self).__name__))

    def set_value(self, value):
        """Replaces the value and saves it.

        Args:
            value: The new value.
        """
        self.value = value
        self.save()


class _StateDictHandler(StateHandler):
    """Handles objects with state_dict() and load_state_dict(): keeps a deep copy."""

    _plan_of = None  # a class of _copies.py: copies without state_dict()

    def __init__(self, value):
        super(_StateDictHandler, self).__init__(value)
        self._saved_state = None
        self._plan = None
        self.save()

    def save(self):
        """Keeps a copy of the value in memory."""
        with torch.no_grad():
            if self._plan is not None and self._plan.copy():
                return
            self._saved_state = copied(self.value.state_dict(), self._saved_state)
            if self._plan_of is not None and (self._plan is None or self._plan.plain):
                self._plan = self._plan_of(self.value, self._saved_state)

    def restore(self):
        """Restores the copy."""
        # Optimizers of newer torch releases keep working in the tensors that they are given.
        with torch.no_grad():
            fresh = copied(self._saved_state)
        self.value.load_state_dict(fresh)

    def set_value(self, value):
        """Replaces the value and saves it.

        Args:
            value: The new value.
        """
        self._plan = None
        super(_StateDictHandler, self).set_value(value)


class ModelStateHandler(_StateDictHandler):
    """Handles a torch.nn.Module through its state_dict()."""

    _plan_of = ModulePlan

    def sync(self):
        """Broadcasts the parameters and buffers of rank 0 to all ranks."""
        broadcast_parameters(self.value.state_dict(), root_rank=0)


class OptimizerStateHandler(_StateDictHandler):
    """Handles a torch.optim.Optimizer through its state_dict()."""

    _plan_of = OptimizerPlan

    def sync(self):
        """Broadcasts the optimizer state of rank 0 to all ranks."""
        broadcast_optimizer_state(self.value, root_rank=0)


class SamplerStateHandler(_StateDictHandler):
    """Handles an ElasticSampler through its state_dict()."""

    def sync(self):
        """Broadcasts the sampler state of rank 0 to all ranks."""
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), root_rank=0, name='sampler_state'))


def _is_bound(value, owner):
    """Whether a part of a state_dict() belongs to its object alone, such as a method of it."""
    return isinstance(value, weakref.ref) or isinstance(value, types.MethodType) and value.__self__ is owner


class ObjectStateHandler(_StateDictHandler):
    """Handles any other object through its state_dict() and load_state_dict(): a scheduler, a GradScaler, a loader."""

    def save(self):
        """Keeps a copy of the value in memory."""
        with torch.no_grad():
            self._saved_state = copied(self._state(), self._saved_state)

    def restore(self):
        """Restores the copy."""
        with torch.no_grad():
            self._load(copied(self._saved_state))

    def sync(self):
        """Broadcasts the state of rank 0 to all ranks."""
        state = broadcast_object(self._state(), root_rank=0, name='object_state')
        if rank() != 0:
            self._load(state)

    def _state(self):
        """Without the methods of the object, by which a copy would have all that the object knows, such as the model of a
        scheduler's optimizer, which it has already."""
        state = self.value.state_dict()
        if type(state) is not dict:
            return state
        return {name: value for name, value in state.items() if not _is_bound(value, self.value)}

    def _load(self, state):
        if type(state) is dict:
            own = self.value.state_dict()
            if type(own) is dict:
                state.update((name, value) for name, value in own.items() if _is_bound(value, self.value))
        self.value.load_state_dict(state)


_handler_registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry():
    """The handlers that TorchState chooses from; the first type that matches counts. Any other object that has state_dict() and
    load_state_dict() is looked after by these.

    Returns: A list of pairs (type, StateHandler class).
    """
    return _handler_registry


def set_handler_registry(registry):
    """Replaces the handlers that TorchState chooses from.

    Args:
        registry: A list of pairs (type, StateHandler class).
    """
    global _handler_registry
    _handler_registry = registry


def _handler_of(value):
    for kind, handler in _handler_registry:
        if isinstance(value, kind):
            return handler(value)
    has_state = all(callable(getattr(value, name, None)) for name in ('state_dict', 'load_state_dict'))
    return ObjectStateHandler(value) if has_state and not isinstance(value, type) else None


class TorchState(ObjectState):
    """State of a model, an optimizer and any other values, for hvd.elastic.run.

    Args:
        model: A torch.nn.Module, or None.
        optimizer: A torch.optim.Optimizer, or None.
        kwargs: Further values by name. Whatever has state_dict() and load_state_dict(), such as a
            scheduler, a GradScaler or a sampler, is saved by these; lists, dicts, sets, arrays and
            tensors are copied; objects of other classes are kept as they are.

    Example:

        state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0)
    """

    def __init__(self, model: Optional[torch.nn.Module] = None, optimizer: Optional[torch.optim.Optimizer] = None,
                 **kwargs: Any) -> None:
        kwargs.update((name, value) for name, value in (('model', model), ('optimizer', optimizer))
                      if value is not None)
        handlers = {name: _handler_of(value) for name, value in kwargs.items()}
        self._handlers = {name: handler for name, handler in handlers.items() if handler is not None}
        for name, handler in self._handlers.items():
            object.__setattr__(self, name, handler.value)
        super(TorchState, self).__init__(bcast_object=broadcast_object, get_rank=rank, **{
            name: value for name, value in kwargs.items() if name not in self._handlers})

    def save(self) -> None:
        """Keeps a copy of everything in memory."""
        for handler in self._handlers.values():
            handler.save()
        super(TorchState, self).save()

    def restore(self) -> None:
        """Restores what save() kept."""
        for handler in self._handlers.values():
            handler.restore()
        super(TorchState, self).restore()

    def sync(self) -> None:
        """Broadcasts the state of rank 0 to all ranks. A collective."""
        for handler in self._handlers.values():
            handler.sync()
        super(TorchState, self).sync()

    def reset(self) -> None:
        """Divides the rest of each sampler among the ranks of the new world."""
        for handler in self._handlers.values():
            if isinstance(handler.value, ElasticSampler):
                handler.value.reset()

    def _kept(self):
        for name, handler in self._handlers.items():
            if not isinstance(handler, _StateDictHandler) or not type(handler).__module__.startswith('horovod.'):
                raise CommitRefused('{} is looked after by a {}, which is not horovod\'s own'.format(name, type(handler).__name__))
        handlers = {name: handler._saved_state for name, handler in self._handlers.items()}
        return dict(super(TorchState, self)._kept(), handlers=handlers)

    def _use_kept(self, kept):
        for name, handler in self._handlers.items():
            handler._saved_state, handler._plan = kept['handlers'][name], None
        super(TorchState, self)._use_kept(kept)

    def _reduce_kept(self, value):
        return reduced(value) if isinstance(value, torch.Tensor) else NotImplemented

    def _copy_leaf(self, value):
        if not isinstance(value, torch.Tensor):
            return super(TorchState, self)._copy_leaf(value)
        return copy.deepcopy(value) if value.is_leaf else value.detach().clone()

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        handlers = self.__dict__.get('_handlers', {})
        if name in handlers:
            handlers[name].set_value(value)
