"""The `horovod` package: distributed training through the hvd runtime. Importing it imports no framework."""

from __future__ import annotations

TYPE_CHECKING = False  # a type checker takes it for True
if TYPE_CHECKING:
    from horovod.runner import run as run

# Scripts compare this with Horovod's releases, so it is the release whose interface this package implements.
__version__ = '0.28.1'


def __getattr__(name: str) -> object:
    """horovod.run(), which a rank does not need: imported when it is used."""
    if name != 'run':
        raise AttributeError('module {!r} has no attribute {!r}'.format(__name__, name))
    from horovod.runner import run
    globals()['run'] = run
    return run
