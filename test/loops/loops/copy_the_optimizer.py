"""A deep copy and a pickle of the wrapped optimizer give one of the plain class, with its state."""

import copy
import pickle

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def facts(optimizer):
    return [type(optimizer).__name__, type(optimizer) is torch.optim.SGD, len(optimizer.state), optimizer.param_groups[0]['lr']]


def train(net, optimizer, data):
    for step in range(3):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
    return weights(net), facts(copy.deepcopy(optimizer)), facts(pickle.loads(pickle.dumps(optimizer)))


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, momentum=0.9)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.9), lambda step: whole_batch(size, step))
