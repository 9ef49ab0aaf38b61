"""Memory that PyTorch frees stays with the process, for as much as its gradients take, so that the next step gets it at once.

PyTorch allocates each gradient again with malloc. glibc returns a block of more than 32 MiB to the kernel when it is freed, and
the end of the heap as soon as some MiB of it are free. Every page that comes from there again is a page fault and 4 KiB of
zeros: of the gradients of GPT-2, 76,000 of them in a step.
"""

import ctypes
import os

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MOST = 2 ** 31 - 1  # that mallopt takes
_DYNAMIC_MOST = 32 * 1024 * 1024  # the limit up to which glibc raises its threshold by itself
_BLOCK_HEAD = 4096  # upper bound of what malloc and alignment add to a block
# A user who sets one of these has tuned malloc already.
_SET_BY_USER = ('MALLOC_TRIM_THRESHOLD_', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TOP_PAD_', 'MALLOC_MMAP_MAX_')

_kept = (0, 0)  # the largest block and the sum of blocks that malloc keeps now


def _is_tuned_by_user():
    return any(name in os.environ for name in _SET_BY_USER) or 'glibc.malloc.' in os.environ.get('GLIBC_TUNABLES', '')


def keep(sizes):
    """Has malloc keep freed blocks from now on. It never keeps less than before. Nothing happens with another C library
    than glibc, or when the environment tunes malloc.

    Args:
        sizes: The numbers of bytes of all blocks that one step frees.
    """
    global _kept
    largest, total = max(sizes, default=0), sum(sizes)
    if (largest <= _kept[0] and total <= _kept[1]) or _is_tuned_by_user():
        return
    _kept = largest, total = max(largest, _kept[0]), max(total, _kept[1])
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, min(_MOST, max(_DYNAMIC_MOST, largest + _BLOCK_HEAD)))
    # Twice, since memory that a forward pass leaves at the end of the heap is freed together with the gradients.
    mallopt(_M_TRIM_THRESHOLD, min(_MOST, 2 * total + _DYNAMIC_MOST))
