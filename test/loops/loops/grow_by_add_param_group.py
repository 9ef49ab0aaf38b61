"""A layer is added with add_param_group() in the middle of training."""

import torch
from torch import nn

from support import batch, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    torch.manual_seed(9)
    extra = nn.Linear(3, 3)
    for step in range(4):
        if step == 2:
            optimizer.add_param_group({'params': extra.parameters(), 'lr': 0.02})
        optimizer.zero_grad()
        x, y = data(step)
        out = net(x) if step < 2 else extra(net(x))
        nn.functional.cross_entropy(out, y).backward()
        optimizer.step()
    return weights(net, extra)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
