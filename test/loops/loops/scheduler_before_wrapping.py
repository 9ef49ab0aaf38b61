"""A learning rate schedule that was made before the optimizer was wrapped."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, scheduler, data):
    rates = []
    for step in range(6):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]['lr'])
    return weights(net), rates


def distributed(hvd):
    net = model()
    optimizer = sgd(net)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    return train(net, wrap(hvd, net, optimizer), scheduler, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    optimizer = sgd(net)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    return train(net, optimizer, scheduler, lambda step: whole_batch(size, step))
