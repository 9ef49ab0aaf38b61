"""torch.compile of the model, with a backend that needs no compiler."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap

TORCH = (2, 1)


def train(net, optimizer, data):
    fast = torch.compile(net, backend='eager')
    for step in range(4):
        optimizer.zero_grad()
        loss_of(fast, data(step)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
