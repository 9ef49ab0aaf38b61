"""hvdrun, for what starts jobs by `python -m horovod.runner.launch` or calls run_commandline()."""

import os
import shutil
import sys


def _find_hvdrun():
    """hvdrun of this installation, else the one on PATH; None when there is none."""
    from horovod.common import _native
    try:
        prefix = os.path.dirname(os.path.dirname(_native.find()))
    except ImportError:
        return shutil.which('hvdrun')
    beside = os.path.join(prefix, 'bin', 'hvdrun')
    return beside if os.access(beside, os.X_OK) else shutil.which('hvdrun')


def run_commandline():
    """Replaces this process by hvdrun, with the arguments of this process. It does not return.

    Raises:
        SystemExit: With code 127 when there is no hvdrun beside the runtime or on PATH.
    """
    hvdrun = _find_hvdrun()
    if hvdrun is None:
        sys.stderr.write('horovod.runner.launch: there is no hvdrun beside the runtime or on PATH; install it, or put '
                         'its folder on PATH.\n')
        sys.exit(127)
    os.execv(hvdrun, ['hvdrun'] + sys.argv[1:])


if __name__ == '__main__':
    run_commandline()
