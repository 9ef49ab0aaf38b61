"""Two optimizers, of a body and a head with other learning rates, on one loss."""

from support import batch, loss_of, model, sgd, weights, whole_batch

import torch


def train(net, body, head, data):
    for step in range(5):
        body.zero_grad()
        head.zero_grad()
        loss_of(net, data(step)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        body.step()
        head.step()
    return weights(net)


def distributed(hvd):
    net = model()
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    body = hvd.DistributedOptimizer(sgd(net[0], lr=0.05), named_parameters=net[0].named_parameters('body'))
    head = hvd.DistributedOptimizer(sgd(net[2], lr=0.2), named_parameters=net[2].named_parameters('head'))
    return train(net, body, head, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net[0], lr=0.05), sgd(net[2], lr=0.2), lambda step: whole_batch(size, step))
