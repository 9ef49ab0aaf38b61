"""Half-precision weights and float32 masters: gradients are copied to the masters by hand, and the optimizer has only those."""

import torch

from support import batch, model, weights, whole_batch

TOLERANCE = 2e-2  # of bfloat16


def train(net, masters, optimizer, data):
    for step in range(4):
        x, y = data(step)
        torch.nn.functional.cross_entropy(net(x.bfloat16()).float(), y).backward()
        for p, master in zip(net.parameters(), masters):
            master.grad = p.grad.float()
            p.grad = None
        optimizer.step()
        with torch.no_grad():
            for p, master in zip(net.parameters(), masters):
                p.copy_(master)
    return [master.detach().clone() for master in masters], weights(net)


def start():
    net = model()
    masters = [torch.nn.Parameter(p.detach().clone()) for p in net.parameters()]
    return net.bfloat16(), masters, torch.optim.SGD(masters, lr=0.1)


def distributed(hvd):
    net, masters, optimizer = start()
    named = [(name, master) for (name, _), master in zip(net.named_parameters(), masters)]
    hvd.broadcast_parameters(named, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=named)
    return train(net, masters, optimizer, lambda step: batch(hvd.rank(), step))


def alone(size):
    return train(*start(), data=lambda step: whole_batch(size, step))
