"""A fused optimizer on the CPU."""

import torch

from support import batch, loss_of, model, weights, whole_batch, wrap

TORCH = (2, 4)


def train(net, optimizer, data):
    for step in range(5):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3, foreach=True)
        optimizer.step()
    return weights(net)


def optimizer(net):
    return torch.optim.AdamW(net.parameters(), lr=0.02, fused=True)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, optimizer(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, optimizer(net), lambda step: whole_batch(size, step))
