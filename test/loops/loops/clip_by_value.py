"""Clipping by value between backward() and step()."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(5):
        optimizer.zero_grad()
        (5 * loss_of(net, data(step))).backward()
        torch.nn.utils.clip_grad_value_(net.parameters(), 0.1)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
