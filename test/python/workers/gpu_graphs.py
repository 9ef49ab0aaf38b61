"""The same small gradients again and again, with `--gpu-graphs`: launched as CUDA graphs from the second step on, and right; also when
their memory changes, and in the next world.

    gpu_graphs.py LAUNCHES

LAUNCHES: the file in which the driver that is played notes each launch.
"""

import sys

import torch

import horovod.torch as hvd

STEPS = 30


def launches():
    try:
        with open(sys.argv[1]) as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0


def train(gradients, steps):
    for step in range(steps):
        for n, gradient in enumerate(gradients):
            gradient.fill_(hvd.rank() + n + step)
        hvd.grouped_allreduce_(gradients, op=hvd.Average, name='step')
        for n, gradient in enumerate(gradients):
            expected = (hvd.size() - 1) / 2 + n + step
            assert torch.allclose(gradient, torch.full_like(gradient, expected)), (step, n, gradient, expected)


for world in range(2):
    hvd.init()
    before = launches()
    hvd.allreduce(torch.zeros(1), name='counted')
    gradients = [torch.empty(10 + n) for n in range(6)]
    train(gradients, STEPS)
    hvd.barrier()
    # All ranks but for the first step; where the parts came in other batches once, a few less.
    made = launches() - before
    assert made >= hvd.size() * STEPS // 2, made
    hvd.allreduce(torch.zeros(1), name='counted again')
    train([torch.empty(10 + n) for n in range(6)], 5)
    hvd.shutdown()
print('ok', flush=True)
