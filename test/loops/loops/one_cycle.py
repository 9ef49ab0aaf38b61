"""OneCycleLR, which changes momentum as well, made before the wrapping, saved and loaded in the middle."""

import io

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, scheduler, data):
    for step in range(8):
        if step == 4:
            file = io.BytesIO()
            torch.save(scheduler.state_dict(), file)
            scheduler.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        scheduler.step()
    return weights(net), optimizer.param_groups[0]['lr'], optimizer.param_groups[0]['momentum']


def cycle(optimizer):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.3, total_steps=10)


def distributed(hvd):
    net = model()
    optimizer = sgd(net, momentum=0.9)
    scheduler = cycle(optimizer)
    return train(net, wrap(hvd, net, optimizer), scheduler, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    optimizer = sgd(net, momentum=0.9)
    return train(net, optimizer, cycle(optimizer), lambda step: whole_batch(size, step))
