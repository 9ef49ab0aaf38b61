"""The `horovod` package: distributed training through the hvd runtime. Imports no framework by itself."""

# Scripts compare this with Horovod's releases, so it names the release whose interface this package has.
__version__ = '0.28.1'


def run(*args, **kwargs):
    """Runs a function on several processes. Not available yet; start scripts with hvdrun.

    Args:
        args: Ignored.
        kwargs: Ignored.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        'horovod.run() is not available yet; put the function into a script and start it with '
        '`hvdrun -np N python script.py`.')
