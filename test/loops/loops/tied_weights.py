"""One weight is used by two layers: its gradient has two parts."""

import torch
from torch import nn

from support import sgd, weights, wrap


class Tied(nn.Module):
    def __init__(self):
        super(Tied, self).__init__()
        torch.manual_seed(2)
        self.encoder, self.decoder = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


def train(net, optimizer, ranks):
    for step in range(4):
        optimizer.zero_grad()
        x = torch.cat([torch.randn(5, 6, generator=torch.Generator().manual_seed(8 * step + rank)) for rank in ranks])
        (net(x) - x).pow(2).mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = Tied()
    return train(net, wrap(hvd, net, sgd(net)), [hvd.rank()])


def alone(size):
    net = Tied()
    return train(net, sgd(net), range(size))
