"""Gradients of three batches a step, clipped after the last backward()."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(3):
        optimizer.zero_grad()
        for part in range(3):
            loss_of(net, data(3 * step + part)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.4)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net), backward_passes_per_step=3), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
