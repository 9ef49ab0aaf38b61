"""Layers are frozen and thawed in turns, in the middle of training, with momentum: what is frozen has no gradient."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(9):
        for number, layer in enumerate((net[0], net[2])):
            for p in layer.parameters():
                p.requires_grad_(step // 2 % 3 != number)
                if not p.requires_grad:
                    p.grad = None
        loss_of(net, data(step)).backward()
        torch.nn.utils.clip_grad_norm_([p for p in net.parameters() if p.grad is not None], 0.3)
        optimizer.step()
        optimizer.zero_grad()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, momentum=0.9, weight_decay=0.1)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.9, weight_decay=0.1), lambda step: whole_batch(size, step))
