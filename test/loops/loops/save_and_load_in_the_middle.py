"""state_dict() of model and wrapped optimizer through a file in the middle of training."""

import io

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(6):
        if step == 3:
            file = io.BytesIO()
            torch.save({'net': net.state_dict(), 'optimizer': optimizer.state_dict()}, file)
            saved = torch.load(io.BytesIO(file.getvalue()))
            net.load_state_dict(saved['net'])
            optimizer.load_state_dict(saved['optimizer'])
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
    return weights(net), len(optimizer.state)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, momentum=0.9)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.9), lambda step: whole_batch(size, step))
