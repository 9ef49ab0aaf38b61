"""Weights that are computed from others: spectral and weight normalisation, whose power iteration changes buffers in forward()."""

import torch
from torch import nn

from support import BATCH, batch, sgd, weights, whole_batch, wrap


def normalised():
    torch.manual_seed(3)
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 8)), nn.Tanh(),
                         nn.utils.weight_norm(nn.Linear(8, 3)))


def train(net, optimizer, data):
    for step in range(5):
        optimizer.zero_grad()
        x, y = data(step)
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = normalised()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step, BATCH))


def alone(size):
    net = normalised()
    return train(net, sgd(net), lambda step: whole_batch(size, step, BATCH))
