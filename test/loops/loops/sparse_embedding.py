"""An embedding with sparse gradients."""

import torch
from torch import nn

from support import sgd, weights, wrap


class Bag(nn.Module):
    def __init__(self):
        super(Bag, self).__init__()
        torch.manual_seed(2)
        self.embedding = nn.EmbeddingBag(20, 4, sparse=True, mode='mean')
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.embedding(x))


def rows(ranks, step):
    return torch.cat([torch.randint(0, 20, (4, 5), generator=torch.Generator().manual_seed(60 * step + rank)) for rank in ranks])


def train(net, optimizer, ranks):
    for step in range(4):
        optimizer.zero_grad()
        net(rows(ranks, step)).pow(2).mean().backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = Bag()
    return train(net, wrap(hvd, net, sgd(net, lr=0.5)), [hvd.rank()])


def alone(size):
    net = Bag()
    return train(net, sgd(net, lr=0.5), range(size))
