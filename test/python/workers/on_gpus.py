"""Runs another worker, written for tensors of the host, with its tensors on the rank's GPU: each goes there when it is
submitted, and the result comes back when it is waited for.

    on_gpus.py WORKER ARGUMENTS...
"""

import os
import runpy
import sys

import torch

from horovod.torch import framework, mpi_ops


def device():
    return torch.device('cuda', int(os.environ.get('HOROVOD_LOCAL_RANK', 0)) % torch.cuda.device_count())


check = framework.Torch.check
synchronize = framework.operations.synchronize


def check_there(self, operation, tensor, writable):
    if isinstance(tensor, torch.Tensor) and tensor.is_cpu and tensor.layout is torch.strided:
        check(self, operation, tensor, writable)  # what is refused of the host
        home, tensor = tensor, tensor.to(device(), copy=True)
        tensor.home = home if writable else None
    return check(self, operation, tensor, writable)


def home(result):
    if isinstance(result, (tuple, list)):
        return type(result)(home(each) for each in result)
    if not isinstance(result, torch.Tensor) or not result.is_cuda:
        return result
    own = getattr(result, 'home', None)
    return result.cpu() if own is None else own.copy_(result)


def synchronize_here(handle):
    return home(synchronize(handle))


def run_here(*arguments, **others):
    return home(run(*arguments, **others))


framework.Torch.check = check_there
# The functions of the interpreter take tensors as they are, and a blocking operation is not waited for by synchronize.
operations = framework.operations
operations._runners, operations._starters = {}, {}
run, operations._run = operations._run, run_here
for module in [m for name, m in sys.modules.items() if name.startswith('horovod.torch')]:
    if getattr(module, 'synchronize', None) == synchronize:
        module.synchronize = synchronize_here
assert mpi_ops.synchronize is synchronize_here

sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name='__main__')
