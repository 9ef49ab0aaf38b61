"""An epoch ends in the middle of an accumulation; zero_grad() of the next one drops what was added up."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for epoch in range(2):
        optimizer.zero_grad()
        for number in range(3):
            loss_of(net, data(3 * epoch + number)).backward()
            if number % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
        # The third batch of each epoch is given up.
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net), backward_passes_per_step=2), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
