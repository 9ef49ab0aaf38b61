"""Where a training step of torch_step.py spends its time: of each phase the wall time, the processor time of the process, the
part of it in the kernel, page faults and lost turns on a core; medians of rank 0.

    hvdrun -np 2 --prefix "" python3 test/bench/step_costs.py [--malloc-as-it-comes] SET True|False STEPS WAY...

SET is one of gradient_sets.py, the boolean set_to_none. WAY, one or more that take turns: `alone` without an exchange, `ours`
with horovod.torch. --malloc-as-it-comes leaves malloc alone (freed_memory.py)."""
import resource
import statistics
import sys
import time

import torch

import horovod.torch as hvd
from gradient_sets import SETS
from horovod.torch import freed_memory
from torch_step_rank import Side

PHASES = ("zero_grad", "forward", "backward", "synchronize", "step")
UNCOUNTED = 2  # steps of a way, after which its gradients are where they stay
BLOCK = 6  # in a row, with those


def now():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (1e3 * time.perf_counter(), 1e3 * (usage.ru_utime + usage.ru_stime), 1e3 * usage.ru_stime, usage.ru_minflt,
            usage.ru_nvcsw + usage.ru_nivcsw)


def step(side, set_to_none):
    """The costs of each phase."""
    hvd.barrier()
    times = [now()]
    side.optimizer.zero_grad(set_to_none=set_to_none)
    times.append(now())
    loss = side.called(1.0 + hvd.rank())
    times.append(now())
    loss.backward()
    times.append(now())
    if side.way == "ours":
        side.optimizer.synchronize()
        times.append(now())
        with side.optimizer.skip_synchronize():
            side.optimizer.step()
    else:
        times.append(now())
        side.optimizer.step()
    times.append(now())
    return [[b - a for a, b in zip(*pair)] for pair in zip(times, times[1:])]


def show(way, steps):
    print(f"{way}: {len(steps)} steps\n  {'':<12} {'wall ms':>9} {'CPU ms':>9} {'kernel ms':>9} {'faults':>8} {'switches':>8}")
    rows = [[phases[i] for phases in steps] for i in range(len(PHASES))]
    rows.append([[sum(column) for column in zip(*phases)] for phases in steps])
    for name, row in zip((*PHASES, "whole"), rows):
        wall, cpu, kernel, faults, switches = (statistics.median(column) for column in zip(*row))
        print(f"  {name:<12} {wall:>9.2f} {cpu:>9.2f} {kernel:>9.2f} {faults:>8.0f} {switches:>8.0f}", flush=True)


def main(name, set_to_none, steps, *ways):
    hvd.init()
    sizes = SETS[name]()
    ones = torch.ones(max(sizes))
    sides = {way: Side(way, sizes, ones) for way in ways}
    found = {way: [] for way in ways}
    while len(found[ways[-1]]) < int(steps):
        for way, side in sides.items():
            found[way] += [step(side, set_to_none == "True") for _ in range(BLOCK)][UNCOUNTED:]
            side.check()
            side.leave()
    if hvd.rank() == 0:
        for way in ways:
            show(way, found[way])
    hvd.shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "--malloc-as-it-comes":
        del sys.argv[1]
        freed_memory.keep = lambda sizes: None
    main(*sys.argv[1:])
