"""Groups as lists of parameters, and parameter groups with rates of their own."""

import torch

from support import batch, loss_of, model, weights, whole_batch, wrap


def made(net):
    return torch.optim.SGD([{'params': net[0].parameters(), 'lr': 0.2}, {'params': net[2].parameters(), 'weight_decay': 0.1}],
                           lr=0.05)


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, made(net), groups=[list(net[0].parameters()), list(net[2].parameters())])
    return train(net, optimizer, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, made(net), lambda step: whole_batch(size, step))
