"""float32, float64 and bfloat16 parameters under one optimizer, exchanged in groups."""

import torch
from torch import nn

from support import weights, wrap

TOLERANCE = 1e-2  # of bfloat16


class Mixed(nn.Module):
    def __init__(self):
        super(Mixed, self).__init__()
        torch.manual_seed(2)
        self.first = nn.Linear(4, 5).double()
        self.second = nn.Linear(5, 5)
        self.third = nn.Linear(5, 3).bfloat16()

    def forward(self, x):
        x = torch.tanh(self.first(x.double()))
        x = torch.tanh(self.second(x.float()))
        return self.third(x.bfloat16()).float()


def train(net, optimizer, ranks):
    for step in range(4):
        optimizer.zero_grad()
        x = torch.cat([torch.randn(8, 4, generator=torch.Generator().manual_seed(8 * step + rank)) for rank in ranks])
        net(x).pow(2).mean().backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = Mixed()
    return train(net, wrap(hvd, net, torch.optim.SGD(net.parameters(), lr=0.05), groups=2), [hvd.rank()])


def alone(size):
    net = Mixed()
    return train(net, torch.optim.SGD(net.parameters(), lr=0.05), range(size))
