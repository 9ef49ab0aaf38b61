"""Gradual unfreezing, as fine-tuning has it: the head is trained first, then a group with a lower rate is added for the body."""

import torch

from support import batch, loss_of, model, weights, whole_batch, wrap


def train(net, optimizer, data):
    schedule = None
    for step in range(6):
        if step == 3:
            for p in net[0].parameters():
                p.requires_grad_(True)
            optimizer.add_param_group({'params': list(net[0].parameters()), 'lr': 0.005, 'weight_decay': 0.2})
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
    return weights(net), [group['lr'] for group in optimizer.param_groups]


def start(optimizer_of):
    net = model()
    for p in net[0].parameters():
        p.requires_grad_(False)
    return net, optimizer_of(net, torch.optim.AdamW(net[2].parameters(), lr=0.05))


def distributed(hvd):
    net, optimizer = start(lambda net, optimizer: wrap(hvd, net, optimizer))
    return train(net, optimizer, lambda step: batch(hvd.rank(), step))


def alone(size):
    net, optimizer = start(lambda net, optimizer: optimizer)
    return train(net, optimizer, lambda step: whole_batch(size, step))
