"""backward() of one batch raises on all ranks; the script drops it and goes on."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wrong):
        ctx.wrong = wrong
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        if ctx.wrong:
            raise ArithmeticError('a bad batch')
        return grad, None


def train(net, optimizer, data):
    skipped = 0
    for step in range(4):
        optimizer.zero_grad()
        x, y = data(step)
        hidden = Fails.apply(net[1](net[0](x)), step == 1)
        try:
            torch.nn.functional.cross_entropy(net[2](hidden), y).backward()
        except ArithmeticError:
            skipped += 1
            if hasattr(optimizer, 'discard'):
                optimizer.discard()
            continue
        optimizer.step()
    return weights(net), skipped


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
