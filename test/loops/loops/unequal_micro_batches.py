"""Ranks with other numbers of micro-batches a step: each backward() adds to the gradient, and step() takes the mean of the sums."""

import torch

from support import batch, loss_of, model, sgd, weights, wrap


def parts(rank, step):
    return 1 + (rank + step) % 2


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net))
    for step in range(4):
        optimizer.zero_grad()
        count = parts(hvd.rank(), step)
        total = sum(loss_of(net, batch(hvd.rank(), 10 * step + part)) for part in range(count)) / count
        total.backward()
        optimizer.step()
    return weights(net)


def alone(size):
    net = model()
    optimizer = sgd(net)
    for step in range(4):
        optimizer.zero_grad()
        for rank in range(size):
            count = parts(rank, step)
            for part in range(count):
                (loss_of(net, batch(rank, 10 * step + part)) / count / size).backward()
        optimizer.step()
    return weights(net)
