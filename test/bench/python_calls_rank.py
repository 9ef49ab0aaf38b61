"""A rank of python_calls.py: allreduces of one float32 array through Python, written by its owner before each call and read
completely after it, as the loops of hvd_perf do.

    python_calls_rank.py ours|ctypes|mpi4py|gloo LOOPS MOST FILE BYTES...

A loop has at most MOST calls. FILE is where the ranks of PyTorch meet. Rank 0 prints a line of JSON for each size: microseconds of a call, the median of so many
loops, each less the time of the same loop without the call."""
import json
import os
import statistics
import sys
import time

import numpy as np


def rounds_for(nbytes):
    return 2000 if nbytes <= 1024 else 1000 if nbytes <= 8192 else 60 if nbytes <= 1 << 20 else 8 if nbytes <= 16 << 20 else 3


class Ours:
    def __init__(self, file):
        try:
            import torch

            import horovod.torch as hvd
            self.wrap, self.name = torch.from_numpy, "horovod.torch, PyTorch " + torch.__version__
        except ImportError:
            import horovod.numpy as hvd
            self.wrap, self.name = np.asarray, "horovod.numpy"
        self.hvd = hvd
        hvd.init()
        self.rank, self.size, self.barrier, self.end = hvd.rank(), hvd.size(), hvd.barrier, hvd.shutdown

    def call_on(self, array):
        tensor, name, hvd = self.wrap(array), "x.{}".format(array.size), self.hvd
        return lambda: hvd.allreduce_(tensor, op=hvd.Sum, name=name)


class OursByCtypes(Ours):
    """Without the function of the interpreter that libhvd.so makes, as under a PyTorch that has no DLPack exchange in C."""

    def __init__(self, file):
        super().__init__(file)
        from horovod.torch import framework
        framework.operations._runners = framework.operations._starters = {}
        self.name = "by ctypes, " + self.name


class Mpi4py:
    def __init__(self, file):
        import mpi4py
        from mpi4py import MPI
        self.MPI, self.comm, self.name = MPI, MPI.COMM_WORLD, "mpi4py " + mpi4py.__version__
        self.rank, self.size, self.barrier = self.comm.Get_rank(), self.comm.Get_size(), self.comm.Barrier

    def call_on(self, array):
        MPI, comm = self.MPI, self.comm
        return lambda: comm.Allreduce(MPI.IN_PLACE, array, op=MPI.SUM)

    def end(self):
        pass  # mpi4py does it


class Gloo:
    def __init__(self, file):
        import torch
        import torch.distributed as dist
        self.torch, self.dist, self.name = torch, dist, "torch.distributed, PyTorch " + torch.__version__
        self.rank, self.size = int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])
        dist.init_process_group("gloo", init_method="file://" + file, rank=self.rank, world_size=self.size)
        self.barrier, self.end = dist.barrier, dist.destroy_process_group

    def call_on(self, array):
        tensor, dist = self.torch.from_numpy(array), self.dist
        return lambda: dist.all_reduce(tensor)


def pin(rank):
    """This rank to the allowed core of its number, as hvd_perf --pin."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[rank % len(allowed)]})


def value(rank, turn):
    return float(rank + 1 + turn % 7)


def timed(library, array, call, rounds):
    library.barrier()
    begin = time.perf_counter()
    for turn in range(rounds):
        array.fill(value(library.rank, turn))
        if call is not None:
            call()
        array.sum()
    return time.perf_counter() - begin


def measure(library, nbytes, loops, most=2000):
    array = np.zeros(nbytes // 4, np.float32)
    call, rounds = library.call_on(array), min(most, rounds_for(nbytes))
    timed(library, array, call, max(1, rounds // 10))
    figures = []
    for _ in range(loops):
        without = timed(library, array, None, rounds)
        figures.append(max(0.0, timed(library, array, call, rounds) - without) / rounds)
        expected = sum(value(rank, rounds - 1) for rank in range(library.size))
        if not (array == expected).all():
            sys.exit("WRONG: {} of {} B is {}, expected {}".format(library.name, nbytes, array[0], expected))
    return 1e6 * statistics.median(figures)


def main(argv):
    library = {"ours": Ours, "ctypes": OursByCtypes, "mpi4py": Mpi4py, "gloo": Gloo}[argv[0]](argv[3])
    pin(library.rank)
    for nbytes in map(int, argv[4:]):
        us = measure(library, nbytes, int(argv[1]), int(argv[2]))
        if library.rank == 0:
            print(json.dumps({"name": library.name, "bytes": nbytes, "us": us}), flush=True)
    library.end()


if __name__ == "__main__":
    main(sys.argv[1:])
