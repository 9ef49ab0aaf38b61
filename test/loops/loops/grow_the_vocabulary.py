"""An embedding and its output layer get more rows in the middle of training: p.data of another shape in the same parameters."""

import torch
from torch import nn

from support import sgd, weights, wrap


def network():
    torch.manual_seed(6)
    return nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))


def words(rank, step, vocabulary):
    return torch.randint(0, vocabulary, (7,), generator=torch.Generator().manual_seed(90 * step + rank))


def train(net, optimizer, ranks):
    vocabulary = 10
    for step in range(6):
        if step == 3:
            vocabulary = 14
            for p in (net[0].weight, net[1].weight, net[1].bias):
                p.data = torch.cat([p.data, torch.full((4,) + p.shape[1:], 0.1)])
                p.grad = None
        optimizer.zero_grad()
        text = torch.cat([words(rank, step, vocabulary) for rank in ranks])
        nn.functional.cross_entropy(net(text), (text + 1) % vocabulary).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = network()
    return train(net, wrap(hvd, net, sgd(net)), [hvd.rank()])


def alone(size):
    net = network()
    return train(net, sgd(net), range(size))
