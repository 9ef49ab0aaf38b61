"""SyncBatchNorm over all ranks, and clipping."""

import torch
from torch import nn

from support import batch, loss_of, sgd, weights, whole_batch, wrap

TOLERANCE = 1e-4


def net_with(norm):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), norm(8), nn.ReLU(), nn.Linear(8, 3))


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = net_with(hvd.SyncBatchNorm)
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = net_with(nn.BatchNorm1d)
    return train(net, sgd(net), lambda step: whole_batch(size, step))
