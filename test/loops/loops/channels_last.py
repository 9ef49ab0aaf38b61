"""Convolutions in channels last, with Adam and decoupled weight decay."""

import torch
from torch import nn

from support import weights, wrap

TOLERANCE = 1e-4


def convolutions():
    torch.manual_seed(2)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(64, 2))
    return net.to(memory_format=torch.channels_last)


def train(net, optimizer, ranks):
    for step in range(3):
        optimizer.zero_grad()
        x = torch.cat([torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(5 * step + rank)) for rank in ranks])
        net(x.to(memory_format=torch.channels_last)).pow(2).mean().backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = convolutions()
    return train(net, wrap(hvd, net, torch.optim.AdamW(net.parameters(), lr=0.01)), [hvd.rank()])


def alone(size):
    net = convolutions()
    return train(net, torch.optim.AdamW(net.parameters(), lr=0.01), range(size))
