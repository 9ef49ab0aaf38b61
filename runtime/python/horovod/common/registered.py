"""Registered memory: blocks that all ranks of this host reach, so that a tensor in them is reduced where it is."""

import ctypes
import sys

from horovod.common import _library

_types = {}


def _free(memory):
    # Not at interpreter exit, when other threads may still use it; the memory ends with the process.
    if not sys.is_finalizing():
        _library.lib().hvd_free(ctypes.addressof(memory))


def adopt(address, nbytes):
    """A writable buffer over memory of the runtime, at least nbytes long, which goes back to it when the last
    reference to the buffer is gone; a tensor made of it by torch.frombuffer is one."""
    # One type per power of two, since types are expensive; hence "at least".
    bits = (nbytes - 1).bit_length()
    cls = _types.get(bits)
    if cls is None:
        cls = _types[bits] = type('Memory', (ctypes.Array,), {
            '_type_': ctypes.c_char, '_length_': 1 << bits, '__del__': _free})
    return cls.from_address(address)


def address(buffer):
    """Where the memory of a buffer of adopt() or allocate() is."""
    return ctypes.addressof(buffer)


def allocate(nbytes):
    """A buffer as adopt() gives of nbytes zeroed bytes, or None when there is no such memory."""
    if nbytes <= 0:
        return None
    memory = _library.lib().hvd_alloc(nbytes)
    return adopt(memory, nbytes) if memory else None


class DeviceMemory:
    """Memory of a CUDA device that the runtime made. It goes back to the runtime when the last tensor over it is gone,
    after the device is done with what it was given."""

    def __init__(self, address, nbytes):
        self._address = address
        self.__cuda_array_interface__ = {
            'shape': (nbytes,), 'typestr': '|u1', 'data': (address, False), 'strides': None, 'version': 2}

    def tensor(self, torch, device):
        """A tensor of bytes over this memory, which keeps it alive."""
        return torch.as_tensor(self, device=device)

    def __del__(self):
        if not sys.is_finalizing():
            _library.lib().hvd_free(self._address)
