"""Gradients by torch.func.grad of a function of the parameters, assigned to p.grad; step() averages them."""

import torch

from support import batch, model, sgd, weights, whole_batch, wrap

TORCH = (2, 0)


def train(net, optimizer, data):
    def loss(parameters, x, y):
        return torch.nn.functional.cross_entropy(torch.func.functional_call(net, parameters, (x,)), y)

    for step in range(4):
        optimizer.zero_grad()
        parameters = {name: p.detach() for name, p in net.named_parameters()}
        gradients = torch.func.grad(loss)(parameters, *data(step))
        for name, p in net.named_parameters():
            p.grad = gradients[name]
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, momentum=0.9)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.9), lambda step: whole_batch(size, step))
