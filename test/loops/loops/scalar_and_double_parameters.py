"""A learned temperature (a scalar) and float64 weights."""

import torch
from torch import nn

from support import weights, wrap


class Odd(nn.Module):
    def __init__(self):
        super(Odd, self).__init__()
        torch.manual_seed(2)
        self.temperature = nn.Parameter(torch.tensor(1.5, dtype=torch.float64))
        self.matrix = nn.Parameter(torch.randn(4, 4, dtype=torch.float64))
        self.phase = nn.Parameter(torch.randn(4).to(torch.float64))

    def forward(self, x):
        return torch.tanh(x @ self.matrix / self.temperature) * torch.cos(self.phase)


def train(net, optimizer, ranks):
    for step in range(4):
        optimizer.zero_grad()
        x = torch.cat([torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(8 * step + rank))
                       for rank in ranks])
        net(x).pow(2).mean().backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = Odd()
    return train(net, wrap(hvd, net, torch.optim.RMSprop(net.parameters(), lr=0.01)), [hvd.rank()])


def alone(size):
    net = Odd()
    return train(net, torch.optim.RMSprop(net.parameters(), lr=0.01), range(size))
