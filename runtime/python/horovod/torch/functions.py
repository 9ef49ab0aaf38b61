"""Broadcasting models, optimizers and any Python object."""

from __future__ import annotations

import torch

from horovod.common import objects
from horovod.torch import gradient_memory, mpi_ops, wrapping
from horovod.torch.mpi_ops import Sum, allreduce, broadcast_async_, global_process_set, rank, synchronize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union
    from horovod.common.process_sets import ProcessSet


def broadcast_parameters(params: Union[Mapping[str, Any], Iterable[Tuple[str, Any]]], root_rank: int) -> None:
    """Gives every rank the root's parameters, in place.

    Args:
        params: A state_dict, or an iterable of (name, tensor) or of tensors, such as
            model.named_parameters(). Values that are not tensors are skipped.
        root_rank: The rank whose parameters are sent.

    Raises:
        ValueError: params is of another type.
        HorovodInternalError: The ranks have different parameters, or a rank left or died.

    Example:

        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    """
    if isinstance(params, dict):
        entries = sorted(params.items())
    elif isinstance(params, torch.Tensor) or isinstance(params, (str, bytes)) or not hasattr(params, '__iter__'):
        raise ValueError('invalid params of type: {}'.format(type(params)))
    else:
        entries = [entry if isinstance(entry, tuple) else (None, entry) for entry in params]
    pending = []
    for name, tensor in entries:
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            continue  # extra state of a module, which is not a parameter
        pending.append(_broadcast_any_async(tensor, root_rank, name))
    _finish(pending)


def _broadcast_any_async(tensor, root_rank, name):
    """Starts a broadcast in place of a tensor with any strides; gives what _finish wants."""
    if tensor.layout == torch.strided and not tensor.is_contiguous():
        if any(stride == 0 and extent > 1 for stride, extent in zip(tensor.stride(), tensor.shape)):
            raise ValueError('The parameter {}is an expanded tensor, of shape {} and strides {}, whose elements share memory, '
                             'so that it cannot be broadcast in place; use tensor.clone().'.format(
                                 '' if name is None else name + ' ', tuple(tensor.shape), tuple(tensor.stride())))
        contiguous = tensor.detach().contiguous()
        return broadcast_async_(contiguous, root_rank, name), tensor, contiguous
    return broadcast_async_(tensor, root_rank, name), None, None


def _finish(pending):
    first_error = None
    for handle, tensor, contiguous in pending:
        try:
            synchronize(handle)
        except Exception as error:  # must not leave the other handles in flight
            first_error = first_error or error
        else:
            if tensor is not None:
                with torch.no_grad():
                    tensor.copy_(contiguous)
    if first_error is not None:
        raise first_error


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: Optional[torch.nn.Module] = None) -> None:
    """Gives every rank the root's optimizer: its state and the options of its parameter groups.

    An optimizer without state first gets the state that one step on zero gradients leaves, and zero
    gradients where there were none; its parameters do not change.

    Args:
        optimizer: The optimizer, on every rank with the same parameters. State follows the names of the
            parameters where these are known: from the model, from the named_parameters of
            DistributedOptimizer, or from those of the optimizer itself (PyTorch 2.6). Otherwise it
            follows their order, which has to be the same on all ranks.
        root_rank: The rank whose optimizer is sent.
        model: Gives the names of the parameters, and tells which of them have sparse gradients: those of
            its embeddings with sparse=True.

    Raises:
        ValueError: The optimizer is torch.optim.LBFGS, or the ranks have different parameters.
        HorovodInternalError: A rank left or died.

    Example:

        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError('hvd.broadcast_optimizer_state cannot broadcast torch.optim.LBFGS, whose state is not kept '
                         'for each parameter.')
    params = [p for group in optimizer.param_groups for p in group['params']]
    if not optimizer.state:
        _create_state(optimizer, [p for p in params if p.requires_grad], _sparse_parameters(optimizer, model))
    is_root = rank() == root_rank
    description = None
    if is_root:
        groups = [{key: value for key, value in group.items() if key not in ('params', 'param_names')}
                  for group in optimizer.param_groups]
        state = [(index, [_describe(key, value) for key, value in optimizer.state[p].items()])
                 for index, p in enumerate(params) if p in optimizer.state]
        description = (_Layout(optimizer, model), groups, state)
    description = broadcast_object(description, root_rank, name='optimizer_state')
    layout, root_groups, root_state = description
    # All ranks must know, since ranks that are alike would wait for the others below.
    ordered, own_groups, problem = _Layout(optimizer, model).in_order_of(layout, optimizer)
    _agree(problem is None, 'hvd.broadcast_optimizer_state needs the same parameters on all ranks, but {} on rank {}, and the '
           'root is rank {}.'.format(problem, rank(), root_rank), 'optimizer_state.agree')
    if not is_root:
        for group, options in zip(own_groups, root_groups):
            for key, value in options.items():
                _assign(group, key, value)
        with_state = {index for index, _ in root_state}
        for index, p in enumerate(ordered):
            if index not in with_state:
                optimizer.state.pop(p, None)
    pending = []
    for index, entries in root_state:
        p = ordered[index]
        own = optimizer.state[p]
        if not is_root:
            for key in [key for key in own if key not in {entry[0] for entry in entries}]:
                del own[key]
        for key, kind, value in entries:
            if kind == 'tensor':
                if not is_root:
                    shape, dtype, device = value
                    tensor = own.get(key)
                    if not isinstance(tensor, torch.Tensor) or tensor.shape != shape or tensor.dtype != dtype:
                        own[key] = torch.zeros(shape, dtype=dtype, device='cpu' if device == 'cpu' else p.device)
                pending.append(_broadcast_any_async(own[key], root_rank, '{}.{}'.format(key, index)))
            elif not is_root:
                own[key] = value
    _finish(pending)


class _Layout:
    """Which parameters an optimizer has: for each group pairs of name and shape. Names are None unless all are known, from the
    model, from DistributedOptimizer or from torch."""

    def __init__(self, optimizer, model):
        names = dict(getattr(optimizer, '_parameter_names', {})) if getattr(optimizer, '_has_names', False) else {}
        if model is not None:
            names.update((p, name) for name, p in model.named_parameters())
        for group in optimizer.param_groups:
            for name, p in zip(group.get('param_names', ()), group['params']):
                names.setdefault(p, name)
        self.groups = [[(names.get(p), tuple(p.shape)) for p in group['params']] for group in optimizer.param_groups]
        flat = self._flat()
        if len({name for name, _ in flat} - {None}) < len(flat):
            self.groups = [[(None, shape) for _, shape in group] for group in self.groups]

    def _flat(self):
        return [entry for group in self.groups for entry in group]

    def in_order_of(self, root, optimizer):
        """The parameters and the groups of the optimizer in the order in which the root has its own, and what is in the way of
        that, as a part of a sentence, or None."""
        params = [p for group in optimizer.param_groups for p in group['params']]
        mine, theirs = self._flat(), root._flat()
        if (len(mine), len(self.groups)) != (len(theirs), len(root.groups)):
            return params, optimizer.param_groups, 'there are {} parameters in {} groups instead of {} in {}'.format(
                len(mine), len(self.groups), len(theirs), len(root.groups))
        if not mine or mine[0][0] is None or theirs[0][0] is None:  # by position
            return params, optimizer.param_groups, next((
                'parameter number {} has the shape {} instead of {}, perhaps since they are in another order, which names would '
                'put right (model=)'.format(index, list(own), list(other))
                for index, ((_, own), (_, other)) in enumerate(zip(mine, theirs)) if own != other), None)
        places = {name: (p, shape, number) for (name, shape), p, number in zip(
            mine, params, [number for number, group in enumerate(self.groups) for _ in group])}
        ordered, order_of_groups = [], []
        for number, group in enumerate(root.groups):
            own_numbers = set()
            for name, shape in group:
                if name not in places:
                    return params, optimizer.param_groups, 'there is no parameter {}'.format(name)
                p, own, own_number = places[name]
                if own != shape:
                    return params, optimizer.param_groups, '{} has the shape {} instead of {}'.format(name, list(own), list(shape))
                ordered.append(p)
                own_numbers.add(own_number)
            if not group:
                own_numbers.add(number)
            if len(own_numbers) > 1 or own_numbers & set(order_of_groups):
                return params, optimizer.param_groups, '{} is in a group with other parameters'.format(group[0][0])
            order_of_groups += own_numbers
        return ordered, [optimizer.param_groups[number] for number in order_of_groups], None


def _sparse_parameters(optimizer, model):
    """The parameters, by id, for which the optimizer will see sparse gradients."""
    if isinstance(optimizer, torch.optim.SparseAdam):
        return {id(p) for group in optimizer.param_groups for p in group['params']}
    if model is None or not isinstance(optimizer, (torch.optim.SGD, torch.optim.Adagrad)):
        return set()
    return {id(module.weight) for module in model.modules() if getattr(module, 'sparse', False) is True}


def _create_state(optimizer, params, sparse):
    """Takes a step on zero gradients, and takes back what it did to the parameters (weight decay moves them)."""
    before = [(p, p.grad, p.detach().clone()) for p in params]
    try:
        for p in params:
            # With an entry, since SparseAdam of older releases requires one.
            p.grad = mpi_ops.sparse_zeros(p, 1, min(1, len(p))) if id(p) in sparse else gradient_memory.zeros(p)
        # Not optimizer.step(): a DistributedOptimizer would exchange gradients, and a scheduler would count the step.
        wrapping.plain_step(optimizer)(optimizer)
    finally:
        with torch.no_grad():
            for p, grad, values in before:
                p.copy_(values)
                if grad is not None:
                    p.grad = grad


def _describe(key, value):
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        return key, 'tensor', (tuple(value.shape), value.dtype, value.device.type)
    return key, 'value', value


def _assign(group, key, value):
    own = group.get(key)
    if isinstance(own, torch.Tensor) and isinstance(value, torch.Tensor) and own.shape == value.shape:
        with torch.no_grad():
            own.copy_(value)  # others may hold this tensor
    else:
        group[key] = value


def _agree(fine, sentence, name):
    """ValueError on all ranks when it is not fine on one."""
    bad = allreduce(torch.tensor([0 if fine else 1], dtype=torch.int64, device='cpu'), op=Sum, name=name)
    if not fine:
        raise ValueError(sentence)
    if int(bad) != 0:
        raise ValueError('{} of the other ranks failed in hvd.broadcast_optimizer_state: they have other parameters '
                         'than this rank.'.format(int(bad)))


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """Broadcasts the root\'s object to every rank.

    The object is pickled, with cloudpickle if it is installed.

    Args:
        obj: Any object that can be pickled; looked at on the root only.
        root_rank: The rank whose object is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. None means 'broadcast_object'.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The copy; on the root the object itself.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.

    Example:

        epoch = hvd.broadcast_object(epoch, root_rank=0)
    """
    return objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """Gives every rank the objects of all ranks.

    The object is pickled, with cloudpickle if it is installed.

    Args:
        obj: Any object that can be pickled.
        name: Matches the calls of the ranks. None means 'allgather_object'.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list of copies, in order of rank.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.

    Example:

        hosts = hvd.allgather_object(socket.gethostname())
    """
    return objects.allgather_object(obj, name, process_set)
