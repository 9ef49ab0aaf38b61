"""Allreduces without an end, of which one rank may be late in each: live_worker.py FOLDER [LATE_RANK SECONDS [STEPS]]."""

import pathlib
import sys
import time

import numpy as np

import horovod.numpy as hvd
from horovod.common import _native


def main():
    folder = pathlib.Path(sys.argv[1])
    late = int(sys.argv[2]) if len(sys.argv) > 2 else -1
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.001
    steps = int(sys.argv[4]) if len(sys.argv) > 4 else 10**9
    hvd.init()
    for step in range(steps):
        if late in (hvd.rank(), -1):
            time.sleep(seconds)
        hvd.allreduce(np.ones(1000, np.float32), name="grad")
        _native.call("note_step")  # as an optimizer does
        if step == 20:
            (folder / str(hvd.rank())).touch()
    if len(sys.argv) > 5 and hvd.rank() == int(sys.argv[5]):
        sys.exit(3)
    hvd.shutdown()


main()
