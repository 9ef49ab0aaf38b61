"""A rank of hvdrun --mpi: says where it is in both worlds. `mpich`: by that library, else by Open MPI's. Then the steps."""

import ctypes
import os
import signal
import sys
import time

sys.path[:0] = os.environ["PYTHONPATH"].split(":")
from horovod.common.basics import HorovodBasics  # noqa: E402

hvd = HorovodBasics()
hvd.init()
if "mpich" in sys.argv:
    mpi = ctypes.CDLL("libmpich.so.12")
    world = ctypes.c_int(0x44000000)
    kind = ctypes.c_int(0x4C000405)  # MPI_INT
    add = ctypes.c_int(0x58000003)  # MPI_SUM
else:
    mpi = ctypes.CDLL("libmpi.so.40")
    world, kind, add = (ctypes.byref(ctypes.c_char.in_dll(mpi, f"ompi_mpi_{name}")) for name in ("comm_world", "int", "op_sum"))
initialised = ctypes.c_int()
mpi.MPI_Initialized(ctypes.byref(initialised))
if not initialised:  # hvd.init() has initialised Open MPI, if it has the plug-in
    assert mpi.MPI_Init(None, None) == 0
rank, size, one, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(1), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
assert mpi.MPI_Allreduce(ctypes.byref(one), ctypes.byref(total), 1, kind, add, world) == 0
assert (rank.value, size.value, total.value) == (hvd.rank(), hvd.size(), hvd.size()), (rank, size, total)
print(f"rank {rank.value} of {size.value}", flush=True)
if rank.value == 1 and "exit" in sys.argv:
    os._exit(3)
if rank.value == 1 and "die" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
if "stay" in sys.argv:
    time.sleep(600)
if not initialised:
    mpi.MPI_Finalize()
hvd.shutdown()
