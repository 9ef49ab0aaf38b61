"""ReduceLROnPlateau on the loss of all ranks."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data, mean_of):
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
    for step in range(8):
        optimizer.zero_grad()
        loss = loss_of(net, data(step))
        loss.backward()
        optimizer.step()
        scheduler.step(mean_of(loss.detach()))
    return weights(net), optimizer.param_groups[0]['lr']


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step),
                 lambda loss: float(hvd.allreduce(loss, name='loss')))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step), float)
