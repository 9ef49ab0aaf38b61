"""A rank of torch_step.py: steps of one set of gradients, without an exchange, with horovod.torch and with PyTorch's
DistributedDataParallel, in turns.

    torch_step_rank.py SET STEPS ROUNDS SECONDS FILE

Each round has a block of STEPS steps (after one to warm up) of each way and either value of set_to_none, forwards in one round and
backwards in the next; after SECONDS no round begins. FILE is where the ranks of PyTorch meet. Rank 0 prints JSON: of each way the
median step of each round, in seconds. `reduction` is an allreduce of all gradients in registered memory, where horovod.torch put
those that stay, and nothing else.

The model's backward writes each gradient once: a factor of the parameter and of the rank. So the combined gradients are known, and
each element of them is compared after each block."""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

import horovod.torch as hvd
from gradient_sets import SETS

WAYS = ("alone", "ours", "ddp")
BLOCKS = [(way, set_to_none) for set_to_none in (True, False) for way in WAYS]


class Model(torch.nn.Module):
    """The gradient of parameter i is (1 + i % 7) times the argument of forward() in each element."""

    def __init__(self, sizes, ones):
        super().__init__()
        self.tensors = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size)) for size in sizes])
        self.ones = (ones,)  # no buffer of the module: DistributedDataParallel sends those
        self.factors = torch.tensor([1.0 + i % 7 for i in range(len(sizes))])

    def forward(self, factor):
        ones = self.ones[0]
        return torch.stack([torch.dot(p, ones[:p.numel()]) for p in self.tensors]).dot(self.factors) * factor


class Side:
    def __init__(self, way, sizes, ones):
        self.way = way
        self.model = self.called = Model(sizes, ones)
        self.wrap()
        if way == "ddp":
            self.called = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)

    def wrap(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=2.0 ** -20)
        if self.way == "ours":
            self.optimizer = hvd.DistributedOptimizer(self.optimizer, named_parameters=self.model.named_parameters())

    def step(self, set_to_none):
        self.optimizer.zero_grad(set_to_none=set_to_none)
        self.called(1.0 + hvd.rank()).backward()
        self.optimizer.step()

    def check(self):
        ranks = range(hvd.size())
        mine = 1.0 + hvd.rank() if self.way == "alone" else statistics.fmean(1.0 + rank for rank in ranks)
        for i, p in enumerate(self.model.tensors):
            if not bool((p.grad == mine * (1 + i % 7)).all()):
                sys.exit("WRONG: {}, gradient {} is {}, expected {}".format(self.way, i, p.grad.flatten()[0], mine * (1 + i % 7)))

    def block(self, set_to_none, steps):
        """The median of the steps, in seconds."""
        self.step(set_to_none)
        hvd.barrier()
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.step(set_to_none)
            times.append(time.perf_counter() - begin)
        self.check()
        return statistics.median(times)

    def reduction(self, steps):
        """The same of an allreduce of all gradients as they are. The average of equal tensors changes nothing."""
        times = []
        for _ in range(steps + 1):
            hvd.barrier()
            begin = time.perf_counter()
            handles = [hvd.allreduce_async_(p.grad, name="reduction.{}".format(i)) for i, p in enumerate(self.model.tensors)]
            for handle in handles:
                hvd.synchronize(handle)
            times.append(time.perf_counter() - begin)
        self.check()
        return statistics.median(times[1:])

    def leave(self):
        """The gradients' memory, but not that of DistributedDataParallel's buckets, is free for the next block, which begins as
        a script with its set_to_none does: where horovod.torch puts gradients depends on what became of the last ones."""
        self.optimizer.zero_grad(set_to_none=True)
        self.wrap()


def go_on(until):
    """Rank 0 decides for all."""
    return bool(hvd.broadcast(torch.tensor([int(time.monotonic() < until)]), 0, name="go on").item())


def main(argv):
    sizes, steps, rounds, seconds, file = SETS[argv[0]](), int(argv[1]), int(argv[2]), float(argv[3]), argv[4]
    until = time.monotonic() + seconds
    hvd.init()
    dist.init_process_group("gloo", init_method="file://" + file, rank=hvd.rank(), world_size=hvd.size())
    ones = torch.ones(max(sizes))
    sides = {way: Side(way, sizes, ones) for way in WAYS}
    times = {}
    for turn in range(rounds):
        if turn > 0 and not go_on(until):
            break
        for way, set_to_none in BLOCKS if turn % 2 == 0 else BLOCKS[::-1]:
            side = sides[way]
            times.setdefault("{} {}".format(way, set_to_none), []).append(side.block(set_to_none, steps))
            if way == "ours" and not set_to_none:
                times.setdefault("reduction", []).append(side.reduction(steps))
            side.leave()
    if hvd.rank() == 0:
        print(json.dumps({"set": argv[0], "tensors": len(sizes), "bytes": 4 * sum(sizes), "torch": torch.__version__,
                          "threads": torch.get_num_threads(), "seconds": times}), flush=True)
    dist.destroy_process_group()
    hvd.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
