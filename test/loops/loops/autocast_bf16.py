"""Autocast to bfloat16: gradients are float32 again."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap

TOLERANCE = 2e-2


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        with torch.autocast('cpu', dtype=torch.bfloat16):
            loss = loss_of(net, data(step))
        loss.backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
