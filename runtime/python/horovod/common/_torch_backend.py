"""`hvdrun --torch-backend hvd`: torch.distributed of a script that names gloo, or no backend, runs on the backend `hvd`.

Called by startup/sitecustomize.py when the script imports torch.distributed; horovod.torch is imported by init_process_group.
"""

import functools
import sys

from horovod.common._c10d import is_extensible

_NAME = 'hvd'
_MODULE = 'torch.distributed.distributed_c10d'


def create(*arguments):
    from horovod.torch import process_group
    return process_group.create(*arguments)


def register(c10d):
    """Makes the backend known to this module of torch.distributed. False: this PyTorch is older than 2.1."""
    from torch._C import _distributed_c10d
    has_devices = hasattr(_distributed_c10d, 'Backend')
    if not hasattr(c10d.Backend, _NAME.upper()):
        more = {'extended_api': True, 'devices': ['cpu']} if has_devices else {}
        c10d.Backend.register_backend(_NAME, create, **more)
    return has_devices


def ours(backend, is_whole=False):
    """The name of a backend with hvd in the place of gloo. is_whole: a group of ours cannot be beside one for other devices."""
    if backend is None or is_whole and ',' in str(backend):
        return backend
    devices = [part.rpartition(':') for part in str(backend).lower().split(',')]
    return ','.join([device + colon + (_NAME if name == 'gloo' else name) for device, colon, name in devices])


def replace():
    c10d = sys.modules[_MODULE]
    if not hasattr(c10d, 'init_process_group'):  # a PyTorch without torch.distributed
        return
    if not register(c10d):
        print('hvdrun: --torch-backend hvd has no effect on this version of PyTorch; use 2.1 or newer.', file=sys.stderr)
        return
    from torch._C import _distributed_c10d
    is_whole = not is_extensible(_distributed_c10d)
    if not is_whole:
        c10d.Backend.default_device_backend_map['cpu'] = _NAME
    init, new = c10d.init_process_group, c10d.new_group

    @functools.wraps(init)
    def init_process_group(backend=None, *arguments, **more):
        return init(ours(backend, is_whole), *arguments, **more)

    @functools.wraps(new)
    def new_group(ranks=None, timeout=None, backend=None, *arguments, **more):
        if backend is not None and c10d.is_initialized() and _NAME in str(c10d.get_backend_config()):  # not a world of NCCL only
            backend = ours(backend, is_whole)
        return new(ranks, timeout, backend, *arguments, **more)

    c10d.init_process_group, c10d.new_group = init_process_group, new_group
