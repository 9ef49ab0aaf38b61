"""synchronize(), clip, and step() inside skip_synchronize(), as Horovod's documentation has it."""

import contextlib

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(5):
        optimizer.zero_grad()
        (10 * loss_of(net, data(step))).backward()
        if hasattr(optimizer, 'synchronize'):
            optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        with getattr(optimizer, 'skip_synchronize', contextlib.nullcontext)():
            optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
