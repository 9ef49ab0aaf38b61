"""A rank of torch_backends.py: the same steps over the backend hvd of torch.distributed and over gloo, in turns.

    torch_backends_rank.py ddp|fsdp|tiny|silent SET ROUNDS SECONDS

Each round has a block of each way, forwards in one round and backwards in the next; after SECONDS no round begins. Rank 0 prints JSON: of
each way the median step of each round, in seconds. The gradients of DistributedDataParallel are known (torch_step_rank.py), and compared
after each block; those of FSDP2 are compared between the two backends. `silent` has one block over gloo that lasts SECONDS."""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from gradient_sets import SETS
from torch.nn.parallel import DistributedDataParallel
from torch_step_rank import Model

STEPS = {"ResNet-50": 5, "GPT-2": 2, "fsdp": 5, "tiny": 2000, "small": 40}
WIDTH, LAYERS, WORDS, LENGTH = 256, 4, 4096, 64


class DdpSide:
    def __init__(self, group, sizes, ones):
        self.group = group
        self.model = self.called = Model(sizes, ones)
        if group is not None:
            self.called = DistributedDataParallel(self.model, process_group=group, gradient_as_bucket_view=True)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=2.0 ** -20)

    def step(self):
        self.optimizer.zero_grad(set_to_none=False)
        self.called(1.0 + dist.get_rank()).backward()
        self.optimizer.step()

    def check(self):
        mine = 1.0 + dist.get_rank() if self.group is None else statistics.fmean(1.0 + rank for rank in range(dist.get_world_size()))
        for i, p in enumerate(self.model.tensors):
            if not bool((p.grad == mine * (1 + i % 7)).all()):
                sys.exit("WRONG: gradient {} is {}, expected {}".format(i, p.grad.flatten()[0], mine * (1 + i % 7)))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(WIDTH) for _ in range(2)])
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = [part.view(*x.shape[:2], 8, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1)]
        seen = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norms[1](x))))


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.blocks = torch.nn.ModuleList([Block() for _ in range(LAYERS)])
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        x = self.words(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class FsdpSide:
    checked = None

    def __init__(self, group):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard
        mesh = DeviceMesh.from_group(group, "cpu")
        self.model = Gpt()
        for block in self.model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.random = torch.Generator().manual_seed(dist.get_rank())

    def step(self):
        words = torch.randint(WORDS, (1, LENGTH + 1), generator=self.random)
        self.optimizer.zero_grad()
        logits = self.model(words[:, :-1])
        torch.nn.functional.cross_entropy(logits.view(-1, WORDS), words[:, 1:].reshape(-1)).backward()
        self.optimizer.step()

    def check(self):
        if not all([bool(torch.isfinite(p.to_local()).all()) for p in self.model.parameters()]):
            sys.exit("WRONG: a parameter is not finite")

    def numbers(self):
        return torch.cat([p.to_local().detach().reshape(-1) for p in self.model.parameters()])


class TinySide:
    def __init__(self, group):
        self.group, self.tensor = group, torch.ones(1)

    def step(self):
        dist.all_reduce(self.tensor, dist.ReduceOp.MAX, group=self.group)

    def check(self):
        if self.tensor.item() != 1:
            sys.exit("WRONG: the largest of ones is {}".format(self.tensor.item()))


def block(side, steps):
    """The median of the steps, in seconds."""
    side.step()
    dist.barrier()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        side.step()
        times.append(time.perf_counter() - begin)
    side.check()
    return statistics.median(times)


def go_on(until):
    """Rank 0 decides for all."""
    answer = torch.tensor([int(time.monotonic() < until)])
    dist.broadcast(answer, 0)
    return bool(answer.item())


def silent(side, seconds):
    """One block that lasts so long."""
    until, times = time.monotonic() + seconds, []
    on = torch.ones(1)
    while on.item():
        begin = time.perf_counter()
        for _ in range(10):
            side.step()
        times.append((time.perf_counter() - begin) / 10)
        on.fill_(time.monotonic() < until)
        dist.broadcast(on, 0)
    return statistics.median(times)


def compare(sides):
    """Two ranks add two numbers in one order."""
    ours, gloo = sides["hvd"].numbers(), sides["gloo"].numbers()
    if dist.get_world_size() == 2 and not torch.equal(ours, gloo):
        sys.exit("WRONG: the parameters over hvd and over gloo differ by {}".format((ours - gloo).abs().max().item()))


def main(argv):
    what, name, rounds, seconds = argv[0], argv[1], int(argv[2]), float(argv[3])
    until = time.monotonic() + seconds
    if what == "silent":  # nothing of ours, so that the job is watched
        dist.init_process_group("gloo")
        groups = {"gloo": dist.group.WORLD}
    else:
        import horovod.torch  # noqa: F401  registers the backend
        from horovod.common._c10d import is_extensible
        if not is_extensible(torch._C._distributed_c10d):
            if os.environ["RANK"] == "0":
                print(json.dumps({"left_out": "PyTorch {} is older than 2.14".format(torch.__version__)}), flush=True)
            return
        dist.init_process_group("hvd")
        groups = {"hvd": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    steps = STEPS.get(name, STEPS.get(what))
    if what in ("ddp", "silent"):
        sizes = SETS[name if what == "ddp" else "small"]()
        ones = torch.ones(max(sizes))
        sides = {way: DdpSide(group, sizes, ones) for way, group in ({"alone": None, **groups} if what == "ddp" else groups).items()}
    else:
        make = {"fsdp": FsdpSide, "tiny": TinySide}[what]
        sides = {way: make(group) for way, group in groups.items()}
    times = {way: [] for way in sides}
    if what == "silent":
        times["gloo"].append(silent(sides["gloo"], seconds))
    for turn in range(rounds if what != "silent" else 0):
        if turn > 0 and not go_on(until):
            break
        for way in list(sides) if turn % 2 == 0 else list(sides)[::-1]:
            times[way].append(block(sides[way], steps))
    if what == "fsdp":
        compare(sides)
    if dist.get_rank() == 0:
        print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "seconds": times}), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    if what == "silent":  # at the end of the interpreter PyTorch 2.15 sometimes aborts in a thread of gloo
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
