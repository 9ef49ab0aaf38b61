"""The moving average of the weights is swapped in by p.data for each evaluation, and out again."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data, mean):
    average = [p.detach().clone() for p in net.parameters()]
    losses = []
    for step in range(6):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        for kept, p in zip(average, net.parameters()):
            kept.lerp_(p.detach(), 0.3)
        if step % 2:
            own = [p.data for p in net.parameters()]
            for p, kept in zip(net.parameters(), average):
                p.data = kept
            with torch.no_grad():
                losses.append(mean(loss_of(net, data(50 + step)), step))
            for p, data_of_p in zip(net.parameters(), own):
                p.data = data_of_p
    return weights(net), average, losses


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, momentum=0.9)), lambda step: batch(hvd.rank(), step),
                 lambda loss, step: hvd.allreduce(loss, name='evaluation'))


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.9), lambda step: whole_batch(size, step), lambda loss, step: loss)
