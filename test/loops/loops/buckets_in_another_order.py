"""The same with gradient_as_bucket_view, and parameters of equal sizes that are not small."""

import torch
from torch import nn

from support import sgd, weights


def stack():
    torch.manual_seed(7)
    return nn.Sequential(*[nn.Linear(60, 60, bias=False) for _ in range(3)])


def train(net, optimizer, ranks):
    for step in range(3):
        optimizer.zero_grad()
        rows = torch.cat([torch.randn(4, 60, generator=torch.Generator().manual_seed(9 * step + rank)) for rank in ranks])
        net(rows).pow(2).mean().backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = stack()
    parameters = list(net.parameters())
    if hvd.rank() == hvd.size() - 1:
        parameters.reverse()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=0.1), named_parameters=net.named_parameters(),
                                         gradient_as_bucket_view=True)
    return train(net, optimizer, [hvd.rank()])


def alone(size):
    net = stack()
    return train(net, sgd(net), range(size))
