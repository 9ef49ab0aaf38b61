"""The last rank gives the optimizer its parameters in another order, as a difference of sets does, with right names."""

import torch
from torch import nn

from support import sgd, weights


def stack():
    torch.manual_seed(7)
    return nn.Sequential(*[nn.Linear(5, 5) for _ in range(4)])


def rows(ranks, step):
    return torch.cat([torch.randn(6, 5, generator=torch.Generator().manual_seed(9 * step + rank)) for rank in ranks])


def train(net, optimizer, ranks):
    for step in range(4):
        optimizer.zero_grad()
        net(rows(ranks, step)).pow(2).mean().backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = stack()
    parameters = list(net.parameters())
    if hvd.rank() == hvd.size() - 1:
        parameters.reverse()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=0.1), named_parameters=net.named_parameters())
    return train(net, optimizer, [hvd.rank()])


def alone(size):
    net = stack()
    return train(net, sgd(net), range(size))
