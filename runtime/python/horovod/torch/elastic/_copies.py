"""Copies of what state_dict() returns, made at each commit: their cost is a part of every step."""

import copy
import pickle

import numpy
import torch

# Immutable types.
_IMMUTABLE = frozenset((bool, bytes, complex, float, int, str, type(None)))


def fits(room, value):
    """Whether a tensor can be copied over an earlier copy of it."""
    return (isinstance(room, torch.Tensor) and room.shape == value.shape and room.dtype is value.dtype and
            room.layout is value.layout is torch.strided and room.device == value.device)


def copied(value, room=None):
    """A deep copy of a part of a state_dict, made without gradients. It reuses the tensors of `room`, an earlier
    copy, if they fit: new memory costs more than the copying."""
    kind = type(value)
    if kind in _IMMUTABLE:
        return value
    if isinstance(value, torch.Tensor):
        return room.copy_(value) if fits(room, value) else value.clone()
    if isinstance(value, dict):
        if type(room) is kind and room.keys() == value.keys():
            for key, item in value.items():
                room[key] = item if type(item) in _IMMUTABLE else copied(item, room[key])
            return room
        fresh = copy.copy(value)  # with the attributes that torch hangs on a state_dict
        for key, item in value.items():
            fresh[key] = copied(item)
        return fresh
    if kind in (list, tuple):
        if _IMMUTABLE.issuperset(map(type, value)):
            return kind(value)
        rooms = room if type(room) is kind and len(room) == len(value) else [None] * len(value)
        return kind([copied(item, item_room) for item, item_room in zip(value, rooms)])
    return copy.deepcopy(value)


def _tensor_of(data, dtype, shape, device, gradient, parameter):
    tensor = torch.from_numpy(numpy.frombuffer(data, numpy.uint8)) if len(data) else torch.empty(0, dtype=torch.uint8)
    tensor = tensor.view(dtype).reshape(shape).to(device)
    return torch.nn.Parameter(tensor, gradient) if parameter else tensor.requires_grad_(gradient)


def reduced(tensor):
    """As __reduce_ex__(), of a tensor whose bytes pickle may leave out of its stream; NotImplemented for kinds that torch pickles."""
    if (type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided or tensor.is_quantized or
            tensor.is_complex() or not tensor.is_leaf):
        return NotImplemented
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return _tensor_of, (pickle.PickleBuffer(data), tensor.dtype, tuple(tensor.shape), str(tensor.device), tensor.requires_grad,
                        type(tensor) is torch.nn.Parameter)


class _Plan:
    """The places of the values of a state_dict(), so that the next copy needs no state_dict(): making one costs more than
    copying a small model."""

    def __init__(self):
        self.plain = True  # the object uses torch's state_dict()
        self._same = []  # (a dict or list, a key in it, the expected value)
        self._lengths = []  # (a dict or list, its expected length)
        self._tensors = []  # (the dict that holds it, its key there, its copy, shape and dtype of the copy)
        self._values = []  # (the dict that holds it, its key there, the dict for the copy)

    def _add_tensor(self, held, name, room):
        """A tensor of a dict, if it can be copied over its earlier copy."""
        fit = isinstance(held[name], torch.Tensor) and fits(room, held[name])
        if fit:
            self._tensors.append((held, name, room, room.shape, room.dtype))
        return fit

    def copy(self):
        """Copies everything over the last copy.

        Returns: Whether that was possible; False if the object is not what it was.
        """
        if not self.plain:
            return False
        for entries, length in self._lengths:
            if len(entries) != length:
                return False
        try:
            for entries, key, value in self._same:
                if entries[key] is not value:
                    return False
            for held, name, room, shape, dtype in self._tensors:
                tensor = held[name]
                if tensor.shape != shape or tensor.dtype is not dtype:
                    return False
                room.copy_(tensor)
            for held, name, kept in self._values:
                value = held[name]
                kept[name] = value if type(value) in _IMMUTABLE else copied(value, kept[name])
        except (AttributeError, IndexError, KeyError):  # it is gone, or no longer a tensor
            return False
        return True


def _makes_it_as(value, base, methods, hooks):
    """Whether an object has these methods of the base, and none of these hooks."""
    attributes = vars(value)
    return (all(getattr(type(value), name, None) is getattr(base, name, None) for name in methods) and
            not any(name in attributes for name in methods) and not any(attributes.get(name) for name in hooks))


class ModulePlan(_Plan):
    """Of a module and a copy of its state_dict().

    Args:
        module: A torch.nn.Module.
        saved: The copy.
    """

    _METHODS = ('state_dict', '_save_to_state_dict', 'get_extra_state')
    _HOOKS = ('_state_dict_hooks', '_state_dict_pre_hooks')

    def __init__(self, module, saved):
        super(ModulePlan, self).__init__()
        self._add(module, '', saved)
        # A tensor that cannot be copied in place, such as a sparse one, needs state_dict().
        self.plain = self.plain and len(self._tensors) == len(saved)

    def _add(self, module, prefix, saved):
        if not _makes_it_as(module, torch.nn.Module, self._METHODS, self._HOOKS):
            self.plain = False
            return
        hooks = [vars(module)[name] for name in self._HOOKS if name in vars(module)]
        for entries in [module._parameters, module._buffers, module._modules] + hooks:
            self._lengths.append((entries, len(entries)))
        for held in (module._parameters, module._buffers):
            for name, tensor in held.items():
                if tensor is None:
                    self._same.append((held, name, None))
                elif prefix + name in saved:
                    self._add_tensor(held, name, saved[prefix + name])
        for name, child in module._modules.items():
            if child is not None:
                self._same.append((module._modules, name, child))
                self._add(child, prefix + name + '.', saved)


class OptimizerPlan(_Plan):
    """Of an optimizer and a copy of its state_dict().

    Args:
        optimizer: A torch.optim.Optimizer.
        saved: The copy.
    """

    _HOOKS = ('_optimizer_state_dict_pre_hooks', '_optimizer_state_dict_post_hooks')

    def __init__(self, optimizer, saved):
        super(OptimizerPlan, self).__init__()
        self.plain = (_makes_it_as(optimizer, torch.optim.Optimizer, ('state_dict',), self._HOOKS) and
                      type(optimizer.param_groups) is list)
        if not self.plain:
            return
        attributes = vars(optimizer)
        self._same += [(attributes, name, attributes[name]) for name in ('state', 'param_groups')]
        self._lengths += [(attributes[name], len(attributes[name])) for name in self._HOOKS if name in attributes]
        self._lengths += [(optimizer.state, len(optimizer.state)), (optimizer.param_groups, len(saved['param_groups']))]
        params = []
        for index, (group, kept) in enumerate(zip(optimizer.param_groups, saved['param_groups'])):
            self._same += [(optimizer.param_groups, index, group), (group, 'params', group['params'])]
            self._same += [(group['params'], place, param) for place, param in enumerate(group['params'])]
            self._lengths += [(group, len(kept)), (group['params'], len(kept['params']))]
            self._add_all(group, kept)
            params += group['params']
        states = [(param, saved['state'][index]) for index, param in enumerate(params) if param in optimizer.state]
        # State of no parameter, or of one in two groups, needs state_dict().
        self.plain = self.plain and len(states) == len(optimizer.state) == len(saved['state'])
        for param, kept in states:
            held = optimizer.state[param]
            self._same.append((optimizer.state, param, held))
            self._lengths.append((held, len(kept)))
            self._add_all(held, kept)

    def _add_all(self, held, kept):
        for name in held:
            if name != 'params' and not self._add_tensor(held, name, kept[name]):
                self._values.append((held, name, kept))
