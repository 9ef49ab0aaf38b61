"""The state of a model, its optimizer and a sampler, beside plain values."""

import copy

import torch

from horovod.common.elastic import ObjectState
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from horovod.torch.mpi_ops import rank


class StateHandler(object):
    """Saves, restores and broadcasts one kind of value."""

    def __init__(self, value):
        self.value = value

    def save(self):
        raise NotImplementedError('{} needs a method save().'.format(type(self).__name__))

    def restore(self):
        raise NotImplementedError('{} needs a method restore().'.format(type(self).__name__))

    def sync(self):
        raise NotImplementedError('{} needs a method sync().'.format(type(self).__name__))

    def set_value(self, value):
        self.value = value
        self.save()


class _StateDictHandler(StateHandler):
    """Of what has state_dict() and load_state_dict(): keeps a deep copy."""

    def __init__(self, value):
        super(_StateDictHandler, self).__init__(value)
        self.save()

    def save(self):
        self._saved_state = copy.deepcopy(self.value.state_dict())

    def restore(self):
        self.value.load_state_dict(self._saved_state)


class ModelStateHandler(_StateDictHandler):
    def sync(self):
        broadcast_parameters(self.value.state_dict(), root_rank=0)


class OptimizerStateHandler(_StateDictHandler):
    def sync(self):
        broadcast_optimizer_state(self.value, root_rank=0)


class SamplerStateHandler(_StateDictHandler):
    def sync(self):
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), root_rank=0, name='sampler_state'))


_handler_registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry():
    """Pairs of a type and the StateHandler for values of it; the first that matches counts."""
    return _handler_registry


def set_handler_registry(registry):
    global _handler_registry
    _handler_registry = registry


def _handler_of(value):
    for kind, handler in _handler_registry:
        if isinstance(value, kind):
            return handler(value)
    return None


class TorchState(ObjectState):
    """A model, an optimizer, and whatever else is given by name."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        kwargs.update((name, value) for name, value in (('model', model), ('optimizer', optimizer))
                      if value is not None)
        handlers = {name: _handler_of(value) for name, value in kwargs.items()}
        self._handlers = {name: handler for name, handler in handlers.items() if handler is not None}
        for name, handler in self._handlers.items():
            object.__setattr__(self, name, handler.value)
        super(TorchState, self).__init__(bcast_object=broadcast_object, get_rank=rank, **{
            name: value for name, value in kwargs.items() if name not in self._handlers})

    def save(self):
        for handler in self._handlers.values():
            handler.save()
        super(TorchState, self).save()

    def restore(self):
        for handler in self._handlers.values():
            handler.restore()
        super(TorchState, self).restore()

    def sync(self):
        for handler in self._handlers.values():
            handler.sync()
        super(TorchState, self).sync()

    def reset(self):
        for handler in self._handlers.values():
            if isinstance(handler.value, ElasticSampler):
                handler.value.reset()

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        handlers = self.__dict__.get('_handlers', {})
        if name in handlers:
            handlers[name].set_value(value)
