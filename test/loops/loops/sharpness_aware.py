"""Sharpness-aware minimisation: two backward() a step, the first of which moves the weights by hand."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data, exchange):
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        exchange()
        with torch.no_grad():
            moves = [0.05 * p.grad / (p.grad.norm() + 1e-12) for p in net.parameters()]
            for p, move in zip(net.parameters(), moves):
                p.add_(move)
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        with torch.no_grad():
            for p, move in zip(net.parameters(), moves):
                p.sub_(move)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net))
    return train(net, optimizer, lambda step: batch(hvd.rank(), step), optimizer.synchronize)


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step), lambda: None)
