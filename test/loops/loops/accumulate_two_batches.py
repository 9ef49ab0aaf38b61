"""Gradients of two batches a step, by backward_passes_per_step."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        for part in range(2):
            (loss_of(net, data(2 * step + part)) / 2).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net), backward_passes_per_step=2), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
