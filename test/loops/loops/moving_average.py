"""An exponential moving average of the weights, kept beside the model."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    average = torch.optim.swa_utils.AveragedModel(net, avg_fn=lambda old, new, count: 0.8 * old + 0.2 * new)
    for step in range(5):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
        average.update_parameters(net)
    return weights(net, average)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
