"""A rank that makes a fresh tensor for each collective: memory_worker.py FRAMEWORK NAMES STEPS

Prints what the process has after a tenth of the steps and at the end: resident KiB, descriptors, threads.
NAMES: unnamed, named (one name for all), numbered (the number of the step in the name), metric (a model is trained, and
its loss is reduced without a name)."""

import os
import sys

framework, names, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
if framework == "torch":
    import horovod.torch as hvd
    import torch

    torch.set_num_threads(1)
else:
    import horovod.numpy as hvd
    import numpy

ELEMENTS = 100_000  # 400 KB: what malloc takes from its heap once it has freed a block of that size


def fresh(step):
    if framework == "torch":
        return torch.full((ELEMENTS,), float(step))
    return numpy.full(ELEMENTS, step, dtype=numpy.float32)


def footprint():
    with open("/proc/self/status") as lines:
        facts = dict(line.split(":", 1) for line in lines)
    return int(facts["VmRSS"].split()[0]), len(os.listdir("/proc/self/fd")), int(facts["Threads"])


def reduce(step):
    name = {"unnamed": None, "named": "loss", "numbered": f"loss.{step}"}[names]
    mean = hvd.allreduce(fresh(step), name=name)
    assert float(mean[0]) == step == float(mean[-1]), (step, mean)


def train(step):
    optimizer.zero_grad()
    loss = model(torch.full((1000, 100), step / steps)).pow(2).mean()
    loss.backward()
    optimizer.step()
    hvd.allreduce(loss.detach())


hvd.init()
if names == "metric":
    model = torch.nn.Sequential(torch.nn.Linear(100, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(steps):
    train(step) if names == "metric" else reduce(step)
    if step == steps // 10:
        print("after the beginning:", *footprint(), flush=True)
print("at the end:", *footprint(), flush=True)
hvd.shutdown()
