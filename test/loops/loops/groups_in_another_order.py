"""The same with two groups."""

import torch

from loops.parameters_in_another_order import rows, stack, train
from support import sgd


def distributed(hvd):
    net = stack()
    parameters = list(net.parameters())
    if hvd.rank() == hvd.size() - 1:
        parameters = parameters[2:] + parameters[:2]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=0.1), named_parameters=net.named_parameters(), groups=2)
    return train(net, optimizer, [hvd.rank()])


def alone(size):
    net = stack()
    return train(net, sgd(net), range(size))
