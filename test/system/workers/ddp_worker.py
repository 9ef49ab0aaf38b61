"""ddp_worker.py HOW [SECONDS]: ranks that train with DistributedDataParallel over gloo, without anything of ours. The last rank does
HOW before the second step."""
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

HOW = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 600


def sleep():
    time.sleep(SECONDS)  # the line: sleep


def loop():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        sum(range(100000))


def loop_in_c():
    pow(3, 3 ** 17)  # one call that takes hours


def read():
    path = os.environ["HANG_FOLDER"] + "/fifo"
    os.mkfifo(path)
    open(path).read()  # the line: read


def lock():
    held = threading.Lock()
    held.acquire()
    held.acquire()  # the line: lock


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)


def poll():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(0.2)


def child():
    os.system(f"end=$(($(date +%s)+{int(SECONDS)})); while [ $(date +%s) -lt $end ]; do :; done")


def save():
    end = time.monotonic() + SECONDS
    with open(os.environ["HANG_FOLDER"] + "/checkpoint", "wb") as file:
        while time.monotonic() < end:
            torch.save(torch.zeros(1 << 20), file)
            file.seek(0)


ELSEWHERE = {how.__name__: how for how in (sleep, loop, loop_in_c, read, lock, stopped, poll, child, save)}


def order(rank):
    value = torch.ones(4)
    if rank == dist.get_world_size() - 1:
        dist.broadcast(value, 0)  # the line: order, broadcast
        dist.all_reduce(value)
    else:
        dist.all_reduce(value)  # the line: order, all_reduce
        dist.broadcast(value, 0)


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    last = rank == size - 1
    torch.set_num_threads(1)
    if HOW == "init" and last:
        sleep()
    dist.init_process_group("gloo")  # the line: init
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = 2 + (1 if HOW == "batches" and last else 0)
    for step in range(batches):
        if step == 1 and last:
            ELSEWHERE.get(HOW, lambda: None)()
        if HOW == "order" and step == 1:
            order(rank)
        loss = model(torch.ones(4, 8)).sum()
        loss.backward()  # the line: backward
        optimizer.step()
    dist.barrier()  # the line: barrier
    if HOW == "steps":  # each of them is short, and the ranks wait for each other all the time
        end = time.monotonic() + SECONDS
        on = torch.ones(1)
        while on.item():
            time.sleep(0.3 if last else 0.01)
            on.fill_(time.monotonic() < end if rank == 0 else 1)
            dist.all_reduce(on, op=dist.ReduceOp.MIN)
    print("through", flush=True)


main()
