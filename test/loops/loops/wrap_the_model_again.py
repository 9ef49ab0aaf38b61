"""Two phases of training, each with an optimizer of its own over the same model."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, wrapped, data):
    for phase in range(2):
        plain = sgd(net, lr=0.1) if phase == 0 else torch.optim.Adam(net.parameters(), lr=0.01)
        optimizer = wrapped(plain)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(net, data(3 * phase + step)).backward()
            optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, lambda plain: wrap(hvd, net, plain), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, lambda plain: plain, lambda step: whole_batch(size, step))
