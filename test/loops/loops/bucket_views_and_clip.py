"""gradient_as_bucket_view with clipping and two passes a step."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad(set_to_none=False)
        for part in range(2):
            loss_of(net, data(2 * step + part)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net), backward_passes_per_step=2, gradient_as_bucket_view=True)
    return train(net, optimizer, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
