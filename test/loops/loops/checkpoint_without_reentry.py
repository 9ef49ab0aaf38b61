"""Activation checkpointing without reentrance, with dropout whose mask is made again in backward(), and clipping."""

import torch
from torch.utils.checkpoint import checkpoint

from support import batch, model, sgd, weights, whole_batch, wrap


class SameDropout(torch.nn.Module):
    """Drops the same columns on all ranks, by the generator whose state checkpointing restores."""

    def forward(self, x):
        return x * (torch.rand(x.shape[1]) > 0.25) / 0.75


def train(net, optimizer, data):
    drop = SameDropout()
    torch.manual_seed(4)
    for step in range(4):
        optimizer.zero_grad()
        x, y = data(step)
        hidden = checkpoint(lambda h: drop(net[1](net[0](h))), x, use_reentrant=False)
        torch.nn.functional.cross_entropy(checkpoint(net[2], hidden, use_reentrant=False), y).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
