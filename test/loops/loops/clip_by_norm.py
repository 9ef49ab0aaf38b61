"""Clipping by norm between backward() and step(), as every single-process script does it."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap

STEPS = 5


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net, lr=0.5))
    norms = []
    for step in range(STEPS):
        optimizer.zero_grad()
        (10 * loss_of(net, batch(hvd.rank(), step))).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5))
        optimizer.step()
    return weights(net), norms


def alone(size):
    net = model()
    optimizer = sgd(net, lr=0.5)
    norms = []
    for step in range(STEPS):
        optimizer.zero_grad()
        (10 * loss_of(net, whole_batch(size, step))).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5))
        optimizer.step()
    return weights(net), norms
