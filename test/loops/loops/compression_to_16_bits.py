"""Gradients travel as float16."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap

TOLERANCE = 1e-2


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net), compression=hvd.Compression.fp16), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
