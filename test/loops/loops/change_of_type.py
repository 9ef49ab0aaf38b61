"""The model is converted to float64 in the middle of training, with parameters that stay the same objects."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(6):
        if step == 3:
            net.double()
        optimizer.zero_grad()
        x, y = data(step)
        loss_of(net, (x.double() if step >= 3 else x, y)).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
