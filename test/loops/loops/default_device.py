"""A script that sets a default device other than the CPU, and trains on the CPU by name."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap

TORCH = (2, 0)


def train(net, optimizer, data):
    for step in range(3):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    batches = [batch(hvd.rank(), step) for step in range(3)]
    value = torch.ones(3)
    torch.set_default_device('meta')
    try:
        optimizer = wrap(hvd, net, sgd(net, momentum=0.9))
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        result = train(net, optimizer, batches.__getitem__)
        return result, hvd.allreduce(value), hvd.broadcast_object({'a': 1}, root_rank=0)
    finally:
        torch.set_default_device('cpu')


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.9), lambda step: whole_batch(size, step)), torch.ones(3), {'a': 1}
