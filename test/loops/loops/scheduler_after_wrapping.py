"""A learning rate schedule that is made after the optimizer was wrapped."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
    for step in range(6):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        scheduler.step()
    return weights(net), scheduler.get_last_lr()


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
