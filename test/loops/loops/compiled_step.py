"""optimizer.step() of the wrapped optimizer within torch.compile, with a backend that needs no compiler."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap

TORCH = (2, 3)


def train(net, optimizer, data):
    @torch.compile(backend='eager')
    def step_of_the_optimizer():
        optimizer.step()

    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        step_of_the_optimizer()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
