"""Makes the backend `hvd` known to torch.distributed without importing it: init_process_group("hvd") does."""

import sys

from horovod.common import _torch_backend

_MODULE = 'torch.distributed.distributed_c10d'


def _register():
    import torch.distributed as dist
    if dist.is_available():
        _torch_backend.register(dist.distributed_c10d)


def offer():
    """Registers it now, or once torch.distributed is imported."""
    if _MODULE in sys.modules:
        _register()
    else:
        from horovod.common import _after_import
        _after_import.call(_MODULE, _register)


def register():
    """The entry point `torch.distributed.backends`: importing horovod.torch has registered it."""
