"""Training under torch.autograd.detect_anomaly()."""

import warnings

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        with torch.autograd.detect_anomaly():
            for step in range(3):
                optimizer.zero_grad()
                loss_of(net, data(step)).backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3)
                optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
