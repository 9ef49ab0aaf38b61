"""What `hvdrun --torch-backend hvd` has each Python interpreter of a rank run first: this folder is in front of its PYTHONPATH.

It imports nothing but a few lines until the script imports torch.distributed, and runs the sitecustomize that the interpreter
would have run without this one.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _own_sitecustomize():
    """Runs the next sitecustomize of sys.path in place of this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or '.') != here]
    importlib.invalidate_caches()
    spec = importlib.machinery.PathFinder.find_spec('sitecustomize', sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules['sitecustomize'] = module
    spec.loader.exec_module(module)


try:
    from horovod.common import _after_import, _torch_backend
    _after_import.call('torch.distributed.distributed_c10d', _torch_backend.replace)
finally:
    _own_sitecustomize()
