"""Moves the buckets of DistributedDataParallel into registered memory, where ranks of a host sum them up without a copy.

DistributedDataParallel allocates its buckets in C++, which asks no backend written in Python for memory. So the backend exchanges the
memory below a bucket's storage when it sees the bucket for the first time, and every view of it, also gradients that are views, moves
along. Since PyTorch 2.12, which has UntypedStorage._swap_data_ptr_; before, a bucket costs a copy in each step.
"""

import sys

import torch

from horovod.common import _library, registered

_IS_POSSIBLE = hasattr(torch.UntypedStorage, '_swap_data_ptr_')
# Of less, the ranks copy everything in less time than this takes.
_WORTH_BYTES = 64 << 10


def move_if_bucket(tensor):
    """Moves a tensor that somebody wants to reduce, if it is a bucket that has not been moved. For the method that c10d calls.

    A bucket fills its storage, and comes from C++ in the middle of backward().
    """
    if _IS_POSSIBLE and tensor.nbytes >= _WORTH_BYTES and _is_called_by_autograd() and tensor.untyped_storage().nbytes() == tensor.nbytes:
        _move(tensor)


def _is_called_by_autograd():
    """Whether C++ has called the method that calls move_if_bucket(), in the middle of backward(): the frame above it is that of autograd
    then. Calls of scripts, of hooks and of functional collectives have frames of their own, and a thread of C++ has none."""
    try:
        return sys._getframe(3).f_globals.get('__name__') == 'torch.autograd.graph'
    except ValueError:
        return False


def _move(bucket):
    """Gives the storage of a bucket registered memory with the same values, unless it has some or there is none left.

    The memory belongs to the storage and ends with it. Nobody but DistributedDataParallel may have a pointer to the former memory, which is
    so in the first backward() of a bucket.
    """
    if _library.lib().hvd_is_registered(bucket.data_ptr(), bucket.nbytes):
        return
    memory = registered.allocate(bucket.nbytes)
    if memory is None:
        return
    storage = bucket.untyped_storage()
    moved = torch.frombuffer(memory, dtype=torch.uint8, count=bucket.nbytes).untyped_storage()
    moved.copy_(storage)
    storage._swap_data_ptr_(moved)
