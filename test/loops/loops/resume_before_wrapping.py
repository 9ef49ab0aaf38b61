"""A checkpoint of model, Adam and schedule is loaded before the optimizer is wrapped."""

import copy

import torch

from support import batch, loss_of, model, weights, whole_batch, wrap


def made(net):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)


def checkpoint():
    net = model()
    optimizer, scheduler = made(net)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(net, whole_batch(2, 90 + step)).backward()
        optimizer.step()
        scheduler.step()
    return copy.deepcopy((net.state_dict(), optimizer.state_dict(), scheduler.state_dict()))


def resumed():
    net = model(8)
    optimizer, scheduler = made(net)
    for thing, state in zip((net, optimizer, scheduler), checkpoint()):
        thing.load_state_dict(state)
    return net, optimizer, scheduler


def train(net, optimizer, scheduler, data):
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        scheduler.step()
    return weights(net), optimizer.param_groups[0]['lr']


def distributed(hvd):
    net, optimizer, scheduler = resumed()
    return train(net, wrap(hvd, net, optimizer), scheduler, lambda step: batch(hvd.rank(), step))


def alone(size):
    return train(*resumed(), lambda step: whole_batch(size, step))
