"""silent_worker.py WHAT SECONDS: ranks that train with DistributedDataParallel over gloo and are well. Once, in the middle, one or all of them
do something long without writing a line."""
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist

WHAT, SECONDS = sys.argv[1], float(sys.argv[2])
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def for_long(step):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        step()


def compiles():
    """Rank 0 waits for a compiler, which computes."""
    code = f"import time\nend = time.monotonic() + {SECONDS}\nwhile time.monotonic() < end: pass"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)


def saves():
    """Rank 0 writes a big checkpoint."""
    path = os.environ["SILENT_FOLDER"] + f"/checkpoint-{RANK}"

    def save():
        with open(path, "wb") as file:
            torch.save(torch.zeros(1 << 20), file)
            file.flush()
            os.fsync(file.fileno())

    for_long(save)


def reads():
    """Rank 0 gets its data through a pipe, as from a loader, a bit at a time."""
    code = f"import sys, time\nfor _ in range({int(SECONDS * 2)}): time.sleep(0.5); sys.stdout.write('x' * 100); sys.stdout.flush()"
    loader = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
    assert len(loader.stdout.read()) == int(SECONDS * 2) * 100
    assert loader.wait() == 0


def computes():
    for_long(lambda: torch.ones(200, 200) @ torch.ones(200, 200))


def polls():
    """Rank 0 looks for a file again and again."""
    for_long(lambda: time.sleep(0.3))


def in_turns(model, optimizer):
    """A slow epoch: short steps, in each of which another rank is late."""
    end, step, on = time.monotonic() + SECONDS, 0, torch.ones(1)
    while on.item():
        if step % SIZE == RANK:
            time.sleep(0.5)
        train(model, optimizer)
        on.fill_(time.monotonic() < end if RANK == 0 else 1)
        dist.all_reduce(on, op=dist.ReduceOp.MIN)
        step += 1


ON_RANK_0 = {"compile": compiles, "checkpoint": saves, "loader": reads, "compute": computes, "poll": polls}
ON_ALL = {"all compute": computes, "all compile": compiles, "all save": saves, "all poll": polls}


def train(model, optimizer):
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(4):
        if step == 2:
            if WHAT == "epoch":
                in_turns(model, optimizer)
            elif WHAT in ON_ALL:
                ON_ALL[WHAT]()
            elif RANK == 0:
                ON_RANK_0[WHAT]()
        train(model, optimizer)
    dist.barrier()
    print("through", flush=True)


main()
