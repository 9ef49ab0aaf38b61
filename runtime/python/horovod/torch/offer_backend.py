"""Makes the backend `hvd` known to torch.distributed without importing it: init_process_group("hvd") does."""

import sys

_MODULE = 'torch.distributed.distributed_c10d'


def _register():
    import torch.distributed as dist
    if not dist.is_available() or hasattr(dist.Backend, 'HVD'):
        return

    def create(*arguments):
        from horovod.torch import process_group
        return process_group.create(*arguments)

    from torch._C import _distributed_c10d
    if hasattr(_distributed_c10d, 'Backend'):
        dist.Backend.register_backend('hvd', create, extended_api=True, devices=['cpu'])
    else:
        dist.Backend.register_backend('hvd', create)


def offer():
    """Registers it now, or once torch.distributed is imported."""
    if _MODULE in sys.modules:
        _register()
    else:
        from horovod.common import _after_import
        _after_import.call(_MODULE, _register)


def register():
    """The entry point `torch.distributed.backends`: importing horovod.torch has registered it."""
