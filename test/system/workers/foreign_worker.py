"""A rank that hvdrun did not start. Uses the package and libhvd.so, but no framework.

usage: foreign_worker.py STEP...   each step is one of
  init, shutdown
  init=NAME       init with a communicator of mpi4py: world, dup, self, null, reverse (the ranks backwards), parity and
                  half (a world for each two of the four ranks)
  init=0+2        init with these ranks as the world
  world           print rank, size, local rank, local size, cross rank, cross size
  sum             add up rank + 1 over all ranks; prints the sum
  facts           print whether MPI and Gloo are in use, and whether threads may call MPI
  large           add up a megabyte and check every number
  sums            the same again and again until it fails; prints why
  lines=N         N times the sum and then a long line with its number, "line K ..."
  survive         like sums, but the process goes on
  finalize        MPI.Finalize()
  set=NAME:VALUE  set a variable of the environment
  child           fork a child that ends by exit()
  exit=CODE       end with this code
  kill            end by SIGKILL
  pause=SECONDS   wait so long, times the rank
A step like 1:kill is for rank 1 only. A failure is printed, and the process ends with code 3.
"""

import ctypes
import os
import signal
import sys
import time

sys.path[:0] = os.environ["PYTHONPATH"].split(":")
from horovod.common import _library  # noqa: E402
from horovod.common.basics import HorovodBasics  # noqa: E402

hvd = HorovodBasics()
_library.lib()


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def launched_rank():
    for name in ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    return 0


def add_up():
    value = ctypes.c_double(hvd.rank() + 1)
    request = _library.Request(_library.ALLREDUCE, "sum", ((_library.FLOAT64, (1,)),))
    error = _library.wait(request.submit(ctypes.addressof(value), ctypes.addressof(value)))
    if error is not None:
        raise error
    return int(value.value)


def add_up_much():
    count = 131072
    values = (ctypes.c_double * count)(*(float(hvd.rank() + number) for number in range(count)))
    request = _library.Request(_library.ALLREDUCE, "large", ((_library.FLOAT64, (count,)),))
    error = _library.wait(request.submit(ctypes.addressof(values), ctypes.addressof(values)))
    if error is not None:
        raise error
    size = hvd.size()
    assert list(values) == [size * number + size * (size - 1) / 2.0 for number in range(count)]


def communicator(name):
    if name[0].isdigit():
        return [int(rank) for rank in name.split("+")]
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    rank = world.Get_rank()
    return {
        "world": lambda: world, "dup": world.Dup, "self": lambda: MPI.COMM_SELF, "null": lambda: MPI.COMM_NULL,
        "reverse": lambda: world.Split(0, -rank), "parity": lambda: world.Split(rank % 2, rank),
        "half": lambda: world.Split(rank // 2, rank),
    }[name]()


def run(step, value):
    if step == "init":
        hvd.init(*([communicator(value)] if value else []))
    elif step == "shutdown":
        hvd.shutdown()
    elif step == "world":
        facts = (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size)
        say("world %d of %d local %d of %d cross %d of %d" % tuple(fact() for fact in facts))
    elif step == "sum":
        say("sum %d" % add_up())
    elif step == "facts":
        threads = hvd.mpi_threads_supported() if hvd.mpi_enabled() else None
        say("mpi %s gloo %s threads %s" % (hvd.mpi_enabled(), hvd.gloo_enabled(), threads))
    elif step == "large":
        add_up_much()
        say("large")
    elif step == "sums":
        while True:
            add_up()
    elif step == "lines":
        for number in range(int(value)):
            add_up()
            say("line %d %s" % (number, "x" * 2000))
            time.sleep(0.01)
    elif step == "survive":
        try:
            while True:
                add_up()
        except Exception as error:
            say("survived: %s" % error)
    elif step == "finalize":
        from mpi4py import MPI
        MPI.Finalize()
        say("initialized %s" % hvd.is_initialized())
    elif step == "child":
        child = os.fork()
        if child == 0:
            sys.exit(0)
        say("child %d" % os.waitpid(child, 0)[1])
    elif step == "set":
        name, _, text = value.partition(":")
        os.environ[name] = text
    elif step == "exit":
        sys.exit(int(value))
    elif step == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif step == "pause":
        time.sleep(float(value) * launched_rank())
    else:
        raise SystemExit("unknown step " + step)


for text in sys.argv[1:]:
    who, colon, rest = text.partition(":")
    if colon and int(who) != launched_rank():
        continue
    step, _, value = (rest if colon else text).partition("=")
    try:
        run(step, value)
    except Exception as error:
        say("failed: %s" % error)
        sys.exit(3)
