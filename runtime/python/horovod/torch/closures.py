"""step(closure): the value of the script's closure as the optimizer sees it, after the gradients are combined."""

import torch

from horovod.torch import framework


def reads_value(cls):
    """Whether step() of this class decides by the value that the closure returns, as L-BFGS does with a line search. A class
    of a script says so by `reads_closure_value = True`."""
    return getattr(cls, 'reads_closure_value', False) or any('LBFGS' in each.__name__ for each in cls.__mro__)


def average(value, name, op, process_set):
    """The value of a closure, combined over all ranks, so that all decide alike. ValueError on all ranks if it is not a number
    on one."""
    number = None
    if isinstance(value, torch.Tensor):
        if value.numel() == 1 and not value.is_complex():
            number = float(value.detach())
    elif isinstance(value, (int, float)):
        number = float(value)
    sent = torch.tensor([0.0 if number is None else number, float(number is None)], dtype=torch.float64, device='cpu')
    operations = framework.operations
    handle = operations.allreduce_async(sent, True, name, op, 1.0, 1.0, process_set)
    combined, wrong = operations.finish(handle, operations.pending[handle]).tolist()
    if wrong:
        raise ValueError('This optimizer decides by the value of its closure, so the closure has to return the loss, a number or a '
                         'tensor with one element, on all ranks; {}.'.format(
                             'it does so on this rank, but not on another one' if number is not None else
                             'on this rank it returned {}'.format('a tensor of shape {}'.format(tuple(value.shape)) if isinstance(
                                 value, torch.Tensor) else 'a ' + type(value).__name__)))
    if isinstance(value, torch.Tensor):
        return torch.full_like(value.detach(), combined)
    return combined
