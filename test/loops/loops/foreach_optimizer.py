"""An optimizer with foreach=True, and clipping by the foreach functions of PyTorch."""

import torch

from support import batch, loss_of, model, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(5):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss_of(net, data(step)).backward()
        gradients = [p.grad for p in net.parameters()]
        torch._foreach_mul_(gradients, 0.5)
        torch._foreach_add_(gradients, [p.detach() for p in net.parameters()], alpha=0.01)
        optimizer.step()
    return weights(net)


def optimizer(net):
    return torch.optim.Adam(net.parameters(), lr=0.02, foreach=True)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, optimizer(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, optimizer(net), lambda step: whole_batch(size, step))
