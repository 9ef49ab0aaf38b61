"""LambdaLR over two parameter groups with rates of their own."""

import torch

from support import batch, loss_of, model, weights, whole_batch, wrap


def groups(net):
    return torch.optim.Adam([{'params': net[0].parameters(), 'lr': 0.01}, {'params': net[2].parameters()}], lr=0.05)


def train(net, optimizer, data):
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    for step in range(6):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        scheduler.step()
    return weights(net), [group['lr'] for group in optimizer.param_groups]


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, groups(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, groups(net), lambda step: whole_batch(size, step))
