"""A layer that no rank uses: plain PyTorch leaves its gradient None, so weight decay does not move it."""

import torch
from torch import nn

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def with_spare():
    net = model()
    net.add_module('spare', nn.Linear(2, 2))
    return net


def train(net, optimizer, data):
    for step in range(3):
        optimizer.zero_grad()
        x, y = data(step)
        nn.functional.cross_entropy(net[2](net[1](net[0](x))), y).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = with_spare()
    return train(net, wrap(hvd, net, sgd(net, weight_decay=0.5)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = with_spare()
    return train(net, sgd(net, weight_decay=0.5), lambda step: whole_batch(size, step))
