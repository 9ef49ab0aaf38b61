"""Registered memory: blocks that all ranks of this host reach, so that a tensor in them is reduced where it is."""

import ctypes
import weakref

from horovod.common import _library


def allocate(nbytes):
    """A writable buffer of nbytes zeroed bytes, or None when there is no such memory.

    The memory goes back to the runtime when the last reference to the buffer is gone (a tensor made of it by
    torch.frombuffer is one), but not at interpreter exit, where other threads may still read it.
    """
    if nbytes <= 0:
        return None
    lib = _library.lib()
    address = lib.hvd_alloc(nbytes)
    if not address:
        return None
    buffer = (ctypes.c_char * nbytes).from_address(address)
    weakref.finalize(buffer, lib.hvd_free, address).atexit = False
    return buffer
