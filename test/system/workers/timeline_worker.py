"""Allreduces for a timeline: timeline_worker.py MODE [ARGUMENT]. Marks each phase by a file where a folder is given."""

import os
import pathlib
import sys
import time

import numpy as np

import horovod.numpy as hvd

NASTY = 'a "quoted"\nname \U0001f525 \\ </script>'


def steps(count, name="grad", late=None, seconds=0.0, after=None):
    for step in range(count):
        if hvd.rank() == late:
            time.sleep(seconds)
        hvd.allreduce(np.ones((3, 4), np.float32), name=name)
        if after:
            after(step)


def main():
    mode, *rest = sys.argv[1:]
    hvd.init()
    if mode == "steps":
        steps(int(rest[0]))
    elif mode == "nasty":
        steps(3, NASTY)
    elif mode == "late":
        steps(10, late=int(rest[0]), seconds=0.05)
    elif mode == "endless":
        folder = pathlib.Path(rest[0])

        def after(step):
            if step % 20 == 19:
                (folder / str(hvd.rank())).touch()

        steps(10**9, after=after, late=0, seconds=0.001)
    elif mode == "burst":
        steps(int(rest[0]))
        print(f"burst of {rest[0]} done", flush=True)
    hvd.shutdown()


main()
