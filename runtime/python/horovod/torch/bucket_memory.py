"""Moves the buckets of DistributedDataParallel into registered memory, where ranks of a host sum them up without a copy.

DistributedDataParallel allocates its buckets in C++, without asking a Python backend for memory. So the backend replaces the
memory of a bucket's storage when it first gets the bucket, and every view of it, also gradients that are views, moves
along. Since PyTorch 2.12, which has UntypedStorage._swap_data_ptr_; before, a bucket costs a copy in each step.
"""

import sys

import torch

from horovod.common import _library, registered

_IS_POSSIBLE = hasattr(torch.UntypedStorage, '_swap_data_ptr_')
# Below this size the ranks copy everything in less time.
_WORTH_BYTES = 64 << 10


def move_if_bucket(tensor):
    """Moves a tensor about to be reduced, if it is a bucket that has not been moved. For the method that c10d calls.

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
    """Moves the storage of a bucket to registered memory with the same values, unless it is there already or none is left.

    The memory belongs to the storage and ends with it. Only DistributedDataParallel may have a pointer to the former memory, which is
    the case in the first backward() of a bucket.
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
