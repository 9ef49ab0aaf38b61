"""A loss over the mean of an embedding of all ranks: gradients go through hvd.allreduce."""

import torch

from support import batch, model, sgd, weights, wrap


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net))
    for step in range(3):
        optimizer.zero_grad()
        mean = hvd.allreduce(net(batch(hvd.rank(), step)[0]).mean(0), op=hvd.Average, name='mean.{}'.format(step % 2))
        mean.pow(2).sum().backward()
        optimizer.step()
    return weights(net)


def alone(size):
    net = model()
    optimizer = sgd(net)
    for step in range(3):
        optimizer.zero_grad()
        mean = torch.stack([net(batch(rank, step)[0]).mean(0) for rank in range(size)]).mean(0)
        mean.pow(2).sum().backward()
        optimizer.step()
    return weights(net)
