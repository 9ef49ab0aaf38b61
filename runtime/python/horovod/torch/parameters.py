"""The facts that an optimizer wrapper needs about its parameters: their names, their groups, when a gradient is there."""

import re
import weakref

import torch

from horovod.common import _library, _native
from horovod.common.util import split_list
from horovod.torch import framework

_HAS_POST_HOOK = hasattr(torch.Tensor, 'register_post_accumulate_grad_hook')  # PyTorch 2.1
# Bytes of a gradient whose exchange costs more than its data, and of those that are fused: few enough that the first of them hardly waits
# for the last.
SMALL_BYTES = 16 << 10
TOGETHER_BYTES = 64 << 10


def default_name(group, index):
    return 'allreduce.noname.{}.{}'.format(group, index)


def names_of(param_groups, named_parameters):
    """tensor -> name for all parameters; raises the three errors of named_parameters."""
    if named_parameters is None:
        return {p: default_name(i, j) for i, group in enumerate(param_groups) for j, p in enumerate(group['params'])}
    named_parameters = list(named_parameters)
    for entry in named_parameters:
        if not isinstance(entry, tuple):
            raise ValueError('named_parameters must be a sequence of (name, parameter) tuples, as '
                             'model.named_parameters() gives, but has a {}.'.format(type(entry).__name__))
    added = set()
    twice = set()
    for name, _ in named_parameters:
        (twice if name in added else added).add(name)
    if twice:
        raise ValueError('named_parameters must have each name once, but has these more often: {}.'.format(
            ', '.join(str(name) for name in sorted(twice, key=str))))
    names = {p: name for name, p in named_parameters}
    missing = sum(1 for group in param_groups for p in group['params'] if p not in names)
    if missing:
        raise ValueError('named_parameters must name every parameter of the optimizer, but {} of them have no name; '
                         'are all models in it?'.format(missing))
    return names


def _name_key(name):
    """Sorts names as people do: layers.2 before layers.10."""
    return [(0, int(part), '') if part.isdigit() else (1, 0, part) for part in re.split('([0-9]+)', str(name)) if part]


def in_name_order(parameters, names):
    """The parameters in the order of their names, which is the same on all ranks. That of an optimizer's groups need not be: a
    script may have made them from a set."""
    return sorted(parameters, key=lambda p: _name_key(names[p]))


class _TravelNames:
    """Names of the gradients' collectives, different for any two parameters of this process: the second parameter that is
    called `weight` in a world, of another model say, is sent as `weight#2`."""

    def __init__(self):
        self._generation = None
        self._used = {}  # (process set, name) -> how many parameters had it
        self._given = {}  # id(p) -> (weak reference to p, {(process set, name): name used in collectives})

    def of(self, p, name, process_set):
        generation = _library.lib().hvd_generation()
        if generation != self._generation:  # another world, in which other ranks may start again
            self._generation, self._used, self._given = generation, {}, {}
        reference, given = self._given.get(id(p), (None, None))
        if reference is None or reference() is not p:
            given = {}
            self._given[id(p)] = (weakref.ref(p), given)
        key = (process_set.process_set_id, name)
        if key not in given:
            self._used[key] = self._used.get(key, 0) + 1
            given[key] = name if self._used[key] == 1 else '{}#{}'.format(name, self._used[key])
        return given[key]


travel_name = _TravelNames().of


def keep_travel_name(p, name, process_set):
    """Names p when it is wrapped, since all ranks wrap their models in the same order. The order in which they use
    them may differ, and then gradients of different models would be added. In an elastic job names are given in the order of
    use: ranks that come from an earlier world wrap nothing in this one."""
    if not _native.is_elastic():
        travel_name(p, name, process_set)


def check_groups(groups):
    """Raises the errors of the argument `groups`."""
    if groups is None:
        return
    if isinstance(groups, bool) or not isinstance(groups, (list, int)):
        raise ValueError('groups must be a list of lists of parameters or a number of groups, but is {!r}.'
                         .format(groups))
    if isinstance(groups, int):
        if groups <= 0:
            raise ValueError('groups must be a positive number, but is {}.'.format(groups))
        return
    added = set()
    for group in groups:
        for p in _members(group):
            if not isinstance(p, torch.Tensor):
                raise ValueError('groups must be made of parameters, but has a {}.'.format(type(p).__name__))
            if id(p) in added:
                raise ValueError('groups has one parameter twice.')
            added.add(id(p))


def _members(group):
    return list(group) if isinstance(group, (list, tuple)) else [group]


def groups_of(parameters, groups):
    """The parameters as lists of those that are exchanged together, in the order of `parameters`; those of no group are not in
    any."""
    if groups is None:
        return []
    if isinstance(groups, int):
        return [chunk for chunk in split_list(parameters, min(groups, len(parameters) or 1)) if chunk]
    places = {p: place for place, p in enumerate(parameters)}
    found = [sorted([p for p in _members(group) if p in places], key=places.get) for group in groups]
    return sorted([group for group in found if group], key=lambda group: places[group[0]])


def bytes_of_gradient(p):
    return p.numel() * p.element_size()


def cut_by_bytes(parameters, first, most):
    """The parameters as lists of up to `most` bytes, the first list of up to `first`, or of one that is larger: the last
    ones first, as their gradients come first."""
    lists, current, nbytes = [], [], 0
    for p in reversed(parameters):
        more = bytes_of_gradient(p)
        if current and nbytes + more > (most if lists else first):
            lists.append(current)
            current, nbytes = [], 0
        current.append(p)
        nbytes += more
    return lists + [current] if current else lists


def small_together(parameters):
    """The processor's parameters with small gradients, as lists of those that are exchanged together:
    neighbours, since their gradients come soon after each other. Each exchange costs Python and the
    ranks the same, whatever its size."""
    small = [p for p in parameters if p.device.type == 'cpu' and bytes_of_gradient(p) <= SMALL_BYTES]
    # The first parameter gets its gradient last: while waiting for that, checking its list is enough.
    return [together[::-1] for together in cut_by_bytes(small, TOGETHER_BYTES, TOGETHER_BYTES)]


def apart_by_device(groups):
    """The same groups, but each with one device: what a request can have."""
    apart = []
    for group in groups:
        by_device = {}
        for p in group:
            by_device.setdefault(framework.device_of(p), []).append(p)
        apart += by_device.values()
    return apart


def loses_hook(p):
    """A function that tells of p whether it has another type, device or shape now, with which a hook of after_gradient() is gone in
    older releases, or holds a node that takes no other shape; None if hooks stay."""
    if _HAS_POST_HOOK:
        return None
    dtype, device, shape = p.dtype, p.device, p.shape
    return lambda p: p.dtype != dtype or p.device != device or p.shape != shape


def after_gradient(p, call):
    """Runs call() whenever autograd has added to p.grad, with arguments that depend on the release of PyTorch; returns
    what has to be kept alive for it."""
    if _HAS_POST_HOOK:
        return p.register_post_accumulate_grad_hook(call)
    # The node that adds to p.grad. It lives only as long as there is a reference to it.
    with torch.enable_grad():
        accumulate_grad = p.expand_as(p).grad_fn.next_functions[0][0]
    return accumulate_grad, accumulate_grad.register_hook(call)


def remove_hooks(hooks):
    """Removes and drops what after_gradient() and register_hook() returned."""
    for hook in hooks:
        (hook[1] if isinstance(hook, tuple) else hook).remove()
    del hooks[:]
