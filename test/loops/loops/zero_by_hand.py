"""Gradients are dropped in whatever way scripts do it: net.zero_grad(), p.grad = None, p.grad.zero_(), p.grad.data.zero_(), del."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def drop(net, way):
    if way == 0:
        net.zero_grad()
        return
    for p in net.parameters():
        if way == 1:
            p.grad = None
        elif way == 2 and p.grad is not None:
            p.grad.detach_()
            p.grad.zero_()
        elif way == 3 and p.grad is not None:
            p.grad.data.zero_()
        elif way == 4:
            del p.grad
        elif way == 5 and p.grad is not None:
            p.grad = torch.zeros_like(p)


def train(net, optimizer, data):
    for step in range(14):
        drop(net, step % 6)
        loss_of(net, data(step)).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
