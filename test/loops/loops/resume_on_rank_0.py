"""Rank 0 alone reads the checkpoint, after the wrapping; model and optimizer are broadcast."""

import torch

from support import batch, loss_of, model, weights, whole_batch, wrap


def state():
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.02, amsgrad=True)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(net, whole_batch(2, 80 + step)).backward()
        optimizer.step()
    return net.state_dict(), optimizer.state_dict()


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
    return weights(net), optimizer.param_groups[0]['lr']


def distributed(hvd):
    net = model(20 + hvd.rank())
    optimizer = wrap(hvd, net, torch.optim.AdamW(net.parameters(), lr=0.5, amsgrad=True))
    if hvd.rank() == 0:
        for thing, saved in zip((net, optimizer), state()):
            thing.load_state_dict(saved)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return train(net, optimizer, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.5, amsgrad=True)
    for thing, saved in zip((net, optimizer), state()):
        thing.load_state_dict(saved)
    return train(net, optimizer, lambda step: whole_batch(size, step))
