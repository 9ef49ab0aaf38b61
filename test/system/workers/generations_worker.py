"""A rank that begins a world again and again, and checks a sum in each. Arguments: a folder, and how many worlds. Before each world
and in the middle of it rank 0 waits for a file there, whose name says which: init.0, sum.0, init.1 ..."""

import os
import pathlib
import sys
import time

import numpy as np

import horovod.numpy as hvd


def meet(name):
    """Says where it is, and waits until it may go on."""
    print("at", name, flush=True)
    while not (pathlib.Path(sys.argv[1]) / name).exists():
        time.sleep(0.01)


for world in range(int(sys.argv[2])):
    if os.environ["HOROVOD_RANK"] == "0":
        meet(f"init.{world}")
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    for step in range(2):
        assert (hvd.allreduce(np.full(100_000, rank + 1.0), op=hvd.Sum) == size * (size + 1) / 2).all()
        if step == 0 and rank == 0:
            meet(f"sum.{world}")
    hvd.shutdown()
print("done", flush=True)
