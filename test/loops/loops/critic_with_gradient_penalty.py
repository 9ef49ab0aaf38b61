"""A gradient penalty: torch.autograd.grad with create_graph, and a second derivative in backward()."""

import torch
from torch import nn

from support import sgd, weights, wrap


def critic():
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def rows(ranks, step):
    return torch.cat([torch.randn(6, 4, generator=torch.Generator().manual_seed(50 * step + rank)) for rank in ranks])


def train(net, optimizer, ranks):
    for step in range(4):
        optimizer.zero_grad()
        x = rows(ranks, step).requires_grad_()
        score = net(x)
        slope, = torch.autograd.grad(score.sum(), x, create_graph=True)
        (score.mean() + (slope.norm(dim=1) - 1).pow(2).mean()).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = critic()
    return train(net, wrap(hvd, net, sgd(net)), [hvd.rank()])


def alone(size):
    net = critic()
    return train(net, sgd(net), range(size))
