"""Two models with the same names and shapes, each with an optimizer of its own, in an order that changes with the step."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(nets, optimizers, data):
    for step in range(6):
        order = (0, 1) if step % 3 else (1, 0)
        for number in order:
            optimizers[number].zero_grad()
        losses = {number: loss_of(nets[number], data(2 * step + number)) for number in order}
        for number in order:
            losses[number].backward()
        for number in reversed(order):
            torch.nn.utils.clip_grad_norm_(nets[number].parameters(), 0.3)
            optimizers[number].step()
    return weights(*nets)


def distributed(hvd):
    nets = [model(1), model(2)]
    return train(nets, [wrap(hvd, nets[0], sgd(nets[0])), wrap(hvd, nets[1], sgd(nets[1], lr=0.03))],
                 lambda step: batch(hvd.rank(), step))


def alone(size):
    nets = [model(1), model(2)]
    return train(nets, [sgd(nets[0]), sgd(nets[1], lr=0.03)], lambda step: whole_batch(size, step))
