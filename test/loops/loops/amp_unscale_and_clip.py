"""Mixed precision with clipping: scale, backward, unscale, clip, scaler.step, update."""

import torch

from support import CpuScaler, batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    scaler = CpuScaler()
    for step in range(6):
        optimizer.zero_grad()
        scaler.scale(loss_of(net, data(step))).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)
        scaler.step(optimizer)
        scaler.update()
    return weights(net), scaler.factor


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
