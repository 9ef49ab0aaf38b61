"""Two schedules of one optimizer, one made before the wrapping and one after."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, first, data):
    second = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for step in range(6):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        first.step()
        second.step()
    return weights(net), optimizer.param_groups[0]['lr']


def distributed(hvd):
    net = model()
    optimizer = sgd(net)
    first = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.1)
    return train(net, wrap(hvd, net, optimizer), first, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    optimizer = sgd(net)
    first = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.1)
    return train(net, optimizer, first, lambda step: whole_batch(size, step))
