"""torch.autograd.grad of the parameters for a report, beside the backward() that trains."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(net, data(step))
        torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)  # accumulates nothing
        loss.backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
