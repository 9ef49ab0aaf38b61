"""The `horovod` package: distributed training through the hvd runtime. Imports no framework by itself."""

# Scripts compare this with Horovod's releases, so it names the release whose interface this package has.
__version__ = '0.28.1'

from horovod.runner import run  # noqa: E402,F401 (part of the interface)
