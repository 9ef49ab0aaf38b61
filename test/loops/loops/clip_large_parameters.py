"""Clipping where gradients are large enough to have registered memory of their own (more than 64 KiB)."""

import torch
from torch import nn

from support import sgd, weights, wrap


def wide():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(64, 400), nn.ReLU(), nn.Linear(400, 300), nn.ReLU(), nn.Linear(300, 1))


def rows(rank, step):
    return torch.randn(8, 64, generator=torch.Generator().manual_seed(100 * step + rank))


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        (30 * net(data(step)).pow(2).mean()).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = wide()
    return train(net, wrap(hvd, net, sgd(net, lr=0.05)), lambda step: rows(hvd.rank(), step))


def alone(size):
    net = wide()
    return train(net, sgd(net, lr=0.05), lambda step: torch.cat([rows(rank, step) for rank in range(size)]))
