"""A rank that hvdrun did not start. Uses the package and libhvd.so, but no framework.

usage: foreign_worker.py STEP...   each step is one of
  init, shutdown
  world           print rank, size, local rank, local size, cross rank, cross size
  sum             add up rank + 1 over all ranks; prints the sum
  sums            the same again and again until it fails; prints why
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


def run(step, value):
    if step == "init":
        hvd.init()
    elif step == "shutdown":
        hvd.shutdown()
    elif step == "world":
        facts = (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size)
        say("world %d of %d local %d of %d cross %d of %d" % tuple(fact() for fact in facts))
    elif step == "sum":
        say("sum %d" % add_up())
    elif step == "sums":
        while True:
            add_up()
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
