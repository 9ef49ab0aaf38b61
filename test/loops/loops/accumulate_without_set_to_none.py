"""zero_grad(set_to_none=False): p.grad stays from step to step."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(5):
        optimizer.zero_grad(set_to_none=False)
        loss_of(net, data(step)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, momentum=0.5)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.5), lambda step: whole_batch(size, step))
