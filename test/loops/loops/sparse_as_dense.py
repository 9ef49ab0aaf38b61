"""The same embedding with sparse_as_dense and clipping."""

import torch

from loops.sparse_embedding import Bag, rows
from support import sgd, weights, wrap


def train(net, optimizer, ranks, dense):
    for step in range(4):
        optimizer.zero_grad()
        net(rows(ranks, step)).pow(2).mean().backward()
        if dense:
            net.embedding.weight.grad = net.embedding.weight.grad.to_dense()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = Bag()
    return train(net, wrap(hvd, net, sgd(net, lr=0.5, momentum=0.9), sparse_as_dense=True), [hvd.rank()], False)


def alone(size):
    net = Bag()
    return train(net, sgd(net, lr=0.5, momentum=0.9), range(size), True)
