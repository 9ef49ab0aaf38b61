"""Heads that depend on the rank, and a mean loss of all ranks between backward() and step()."""

from loops.heads_that_depend_on_the_rank import Heads, loss
from support import sgd, weights, wrap


def distributed(hvd):
    net = Heads()
    optimizer = wrap(hvd, net, sgd(net))
    losses = []
    for step in range(4):
        optimizer.zero_grad()
        value = loss(net, hvd.rank(), step)
        value.backward()
        losses.append(float(hvd.allreduce(value.detach(), name='heads.loss')))
        optimizer.step()
    return weights(net), losses


def alone(size):
    net = Heads()
    optimizer = sgd(net)
    losses = []
    for step in range(4):
        optimizer.zero_grad()
        total = 0.0
        for rank in range(size):
            value = loss(net, rank, step) / size
            value.backward()
            total += float(value.detach())
        losses.append(total)
        optimizer.step()
    return weights(net), losses
