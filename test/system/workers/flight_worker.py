"""flight_worker.py HOW: ranks that use torch.distributed over gloo, and nothing of ours, with a thread that does with the pipe of the
flight recorder what ProcessGroupNCCL's does, which needs GPUs: it makes the pipe, looks at it once a second, and writes a dump of
PyTorch's own recorder. The last rank does HOW:

    sleep    does not come to the second all_reduce
    order    calls a broadcast in place of it
    silent   sleeps, and its thread writes nothing
    broken   sleeps, and its thread writes what is no dump
    code     sleeps, and its dump would run a program where it is unpickled
    inside   sleeps, and the others wait for it in C, where no Python shows it, as in .item() of a tensor of NCCL
    timeout  sleeps until its rank 0 writes a dump by itself and aborts, as the watchdog of NCCL does
"""
import ctypes
import os
import pathlib
import pickle
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_file

HOW = sys.argv[1]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAST = RANK == SIZE - 1


class Code:
    def __reduce__(self):
        return os.system, ("touch " + os.environ["HANG_FOLDER"] + "/ran",)


def write_dump():
    if not LAST or HOW not in ("silent", "broken", "code"):
        return _dump_fr_trace_file(RANK)  # to TORCH_FR_DUMP_TEMP_FILE
    if HOW != "silent":
        bytes_ = pickle.dumps({"entries": Code()}, protocol=2) if HOW == "code" else _dump_fr_trace()[:-1]
        pathlib.Path(f"{os.environ['TORCH_FR_DUMP_TEMP_FILE']}{RANK}").write_bytes(bytes_)
    return None


def serve_pipe():
    pipe = f"{os.environ['TORCH_NCCL_DEBUG_INFO_PIPE_FILE']}{RANK}.pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    while True:
        time.sleep(1)
        try:
            asked = os.read(reader, 128)
        except BlockingIOError:
            continue
        if asked:
            write_dump()


def main():
    torch.set_num_threads(1)
    threading.Thread(target=serve_pipe, daemon=True).start()
    dist.init_process_group("gloo")
    value = torch.ones(4, 3)
    dist.all_reduce(value)
    if HOW == "timeout" and RANK == 0:
        threading.Timer(1, lambda: (write_dump(), os.abort())).start()
    if LAST and HOW == "order":
        dist.broadcast(value, 0)
    elif LAST:
        time.sleep(600)
    work = dist.all_reduce(value, async_op=HOW == "inside")
    ctypes.CDLL(None).sleep(600)
    del work


main()
