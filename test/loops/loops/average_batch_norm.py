"""Batch normalisation of each rank's own batch, whose running statistics and counters are averaged before the evaluation."""

import torch
from torch import nn

from support import batch, sgd, wrap


def network():
    torch.manual_seed(8)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))


def evaluation(net):
    net.eval()
    with torch.no_grad():
        out = net(batch(0, 700)[0])
    net.train()
    return out


def distributed(hvd):
    net = network()
    optimizer = wrap(hvd, net, sgd(net))
    for step in range(4):
        optimizer.zero_grad()
        x, y = batch(hvd.rank(), step)
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    for name, buffer in net.named_buffers():
        hvd.allreduce_(buffer, name=name)
    return evaluation(net), dict(net.named_buffers())


def alone(size):
    net, statistics = network(), [network()[1] for _ in range(size)]
    optimizer = sgd(net)
    for step in range(4):
        optimizer.zero_grad()
        for rank in range(size):
            x, y = batch(rank, step)
            hidden = net[0](x)
            statistics[rank](hidden.detach())
            normal = nn.functional.batch_norm(hidden, None, None, net[1].weight, net[1].bias, training=True)
            (nn.functional.cross_entropy(net[2](normal), y) / size).backward()
        optimizer.step()
    for name, buffer in net[1].named_buffers():
        mean = torch.stack([dict(each.named_buffers())[name].double() for each in statistics]).mean(0)
        buffer.copy_(mean.to(buffer.dtype))
    return evaluation(net), dict(net.named_buffers())
