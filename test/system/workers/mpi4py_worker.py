"""mpi4py_worker.py HOW [SECONDS]: ranks that use mpi4py, and nothing of ours. The last rank does HOW before it comes to the second sum."""
import sys
import time

import numpy as np
from mpi4py import MPI

HOW = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 600


def sleep():
    time.sleep(SECONDS)  # the line: sleep


def loop():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        sum(range(100000))


def main():
    comm = MPI.COMM_WORLD
    is_last = comm.Get_rank() == comm.Get_size() - 1
    value = np.ones(4)
    comm.Allreduce(MPI.IN_PLACE, value)
    if is_last:
        {"sleep": sleep, "loop": loop}.get(HOW, lambda: None)()
    if HOW == "order" and is_last:
        comm.Recv(value, source=0, tag=7)  # the line: order, Recv. Nothing is sent; two collectives at once may crash MPI
    comm.Allreduce(MPI.IN_PLACE, value)  # the line: Allreduce
    comm.Barrier()
    print("through", flush=True)


main()
