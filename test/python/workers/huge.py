"""More than 2^31 elements.

usage: huge.py whole    tensors in ordinary memory
       huge.py folded   all but the last pieces of a tensor are the same memory, mapped again and again: the numbers there
                        are alike anyhow, and what lies at the end, where a count of 32 bits would not reach, is its own
"""

import ctypes
import mmap
import os
import sys

import torch

import horovod.torch as hvd

COUNT = 2 ** 31 + 12345
PIECE = 32 << 20


def fold(count):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    pieces = -(-count // PIECE)
    file = os.memfd_create('folded')
    os.ftruncate(file, 3 * PIECE)
    kept = 2  # of their own: the pieces around 2^31
    private, shared, fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.MAP_SHARED, 0x10
    base = libc.mmap(None, pieces * PIECE, 0, private, -1, 0)
    for piece in range(pieces):
        own = max(0, piece - (pieces - 1 - kept))
        at = libc.mmap(base + piece * PIECE, PIECE, mmap.PROT_READ | mmap.PROT_WRITE, shared | fixed, file, own * PIECE)
        assert at == base + piece * PIECE, os.strerror(ctypes.get_errno())
    os.close(file)
    return torch.frombuffer((ctypes.c_uint8 * count).from_address(base), dtype=torch.uint8)


hvd.init()
torch.set_num_threads(1)
x = fold(COUNT) if sys.argv[1] == 'folded' else torch.empty(COUNT, dtype=torch.uint8)
x.fill_(1 + hvd.rank())
x[2 ** 31:] = 10 + hvd.rank()
if sys.argv[1] == 'whole':
    y = hvd.allreduce_(x, op=hvd.Sum)
    assert y is x
else:  # not in place: parts of the sum would be read as input of the next ones
    y = hvd.allreduce(x, op=hvd.Sum)
total = sum(1 + r for r in range(hvd.size()))
beyond = sum(10 + r for r in range(hvd.size()))
assert int(y[:2 ** 31].min()) == int(y[:2 ** 31].max()) == total
assert int(y[2 ** 31:].min()) == int(y[2 ** 31:].max()) == beyond
x[-1] = 40 + hvd.rank()
hvd.broadcast_(x, 1)
assert x[-1] == 41
print('ok', flush=True)
