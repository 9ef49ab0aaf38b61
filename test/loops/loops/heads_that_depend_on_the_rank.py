"""Each rank trains the head of its task in this step; the others bring zeros for it."""

import torch
from torch import nn

from support import sgd, weights, wrap


class Heads(nn.Module):
    def __init__(self):
        super(Heads, self).__init__()
        torch.manual_seed(4)
        self.body = nn.Linear(4, 8)
        self.heads = nn.ModuleList([nn.Linear(8, 1) for _ in range(2)])

    def forward(self, x, task):
        return self.heads[task](torch.tanh(self.body(x)))


def loss(net, rank, step):
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(10 * step + rank))
    return net(x, (rank + step) % 2).pow(2).mean()


def distributed(hvd):
    net = Heads()
    optimizer = wrap(hvd, net, sgd(net))
    for step in range(4):
        optimizer.zero_grad()
        loss(net, hvd.rank(), step).backward()
        optimizer.step()
    return weights(net)


def alone(size):
    net = Heads()
    optimizer = sgd(net)
    for step in range(4):
        optimizer.zero_grad()
        for rank in range(size):
            (loss(net, rank, step) / size).backward()
        optimizer.step()
    return weights(net)
