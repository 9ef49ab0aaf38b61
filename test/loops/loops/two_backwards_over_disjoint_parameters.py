"""Two models under one optimizer, each with a loss and a backward() of its own, and clipping of both."""

import torch

from support import batch, loss_of, model, weights, whole_batch


def train(both, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        for number, net in enumerate(both):
            loss_of(net, data(2 * step + number)).backward()
        torch.nn.utils.clip_grad_norm_(both.parameters(), 0.3)
        optimizer.step()
    return weights(both)


def distributed(hvd):
    both = torch.nn.ModuleList([model(1), model(2)])
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(both.parameters(), lr=0.1), named_parameters=both.named_parameters())
    return train(both, optimizer, lambda step: batch(hvd.rank(), step))


def alone(size):
    both = torch.nn.ModuleList([model(1), model(2)])
    return train(both, torch.optim.SGD(both.parameters(), lr=0.1), lambda step: whole_batch(size, step))
