"""Runs another worker as if each of its tensors were on a GPU of its rank: with the driver and the NCCL of
test/fakes/gpu_libraries, whose device memory is the host's. So everything but the GPU works as in a real job.

    on_fake_gpus.py WORKER ARGUMENTS...
"""

import ctypes
import os
import runpy
import sys

import torch

from horovod.common import registered
from horovod.torch import framework, gradient_memory

driver = ctypes.CDLL('libcuda.so.1')
context = ctypes.c_void_p(1)


def device(tensor):
    """The index of the GPU that this tensor stands for one on; a worker that uses several says so by framework.fake_device."""
    say = getattr(framework, 'fake_device', None)
    usual = int(os.environ.get('HOROVOD_LOCAL_RANK', 0)) if say is None else say(tensor)
    return getattr(tensor, 'gpu', usual)


def check(self, operation, tensor, writable):
    dtype = framework.DTYPES.get(tensor.dtype) if isinstance(tensor, torch.Tensor) else None
    if dtype is not None and tensor.layout is torch.strided and tensor.is_contiguous():
        return tensor, (dtype, device(tensor))
    self._refuse(operation, tensor, dtype)


def type_of(tensor):
    dtype = framework.DTYPES.get(tensor.dtype)
    return None if dtype is None else (dtype, device(tensor))


def zeros_in_a_row(count, dtype, device):
    zeros = torch.zeros(count, dtype=dtype)
    zeros.gpu = device
    return zeros


def follow(self, index, stream, results=()):
    # The next work of torch is done by the processor, so it has to wait where a stream of a GPU would.
    assert driver.cuCtxPushCurrent_v2(context) == 0
    assert driver.cuStreamSynchronize(ctypes.c_void_p(stream)) == 0
    driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


# Registered memory is for tensors of the processor, whose gradients alone may be late.
gradient_memory.pays_for_a_home = lambda p: False
gradient_memory.zeros_in_a_row = zeros_in_a_row
framework.device_of = device
framework.Torch.check = check
framework.Torch.type_of = staticmethod(type_of)
framework.Torch.stream = lambda self, index: 0
framework.Torch.follow = follow
framework.Torch.adopt = lambda self, tensor, address, nbytes: registered.adopt(address, nbytes)

sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name='__main__')
