"""A script that logs the norm of each gradient after backward(), and changes nothing."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    logged = []
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        logged.append({name: p.grad.norm() for name, p in net.named_parameters()})
        optimizer.step()
    return weights(net), logged


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, momentum=0.9)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.9), lambda step: whole_batch(size, step))
