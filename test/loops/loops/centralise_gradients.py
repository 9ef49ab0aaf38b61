"""Gradient centralisation: the mean of each row is taken off in place, by a loop over the parameters before step()."""

from support import batch, loss_of, model, weights, whole_batch, wrap

import torch


def train(net, optimizer, data):
    for step in range(5):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        for p in net.parameters():
            if p.dim() > 1:
                p.grad.data.add_(-p.grad.data.mean(dim=1, keepdim=True))
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, torch.optim.Adam(net.parameters(), lr=0.01)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, torch.optim.Adam(net.parameters(), lr=0.01), lambda step: whole_batch(size, step))
