"""An epoch of five batches, two a step: the last step has one, and the script says so."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data, set_passes=lambda passes: None):
    for epoch in range(2):
        for first in (0, 2, 4):
            numbers = range(first, min(first + 2, 5))
            set_passes(len(numbers))
            optimizer.zero_grad()
            for number in numbers:
                loss_of(net, data(5 * epoch + number)).backward()
            optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net), backward_passes_per_step=2)
    return train(net, optimizer, lambda step: batch(hvd.rank(), step), optimizer.set_backward_passes_per_step)


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
