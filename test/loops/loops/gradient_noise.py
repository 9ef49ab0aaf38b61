"""The same noise on all ranks is added to the gradients before the step."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    noise = torch.Generator().manual_seed(99)
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        for p in net.parameters():
            p.grad.add_(torch.randn(p.shape, generator=noise), alpha=0.01)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
