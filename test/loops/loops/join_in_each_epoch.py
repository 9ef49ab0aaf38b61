"""Epochs in which ranks have other numbers of batches, each ended by join(), with momentum and an evaluation by all in between."""

import torch

from support import batch, loss_of, model, sgd, weights, wrap

EPOCHS = 3


def batches(epoch, rank):
    return 2 + (epoch + rank) % 3


def evaluation(net, ranks):
    with torch.no_grad():
        return torch.stack([loss_of(net, batch(rank, 900)) for rank in ranks]).mean()


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net, momentum=0.9))
    losses = []
    for epoch in range(EPOCHS):
        for number in range(batches(epoch, hvd.rank())):
            optimizer.zero_grad()
            loss_of(net, batch(hvd.rank(), 10 * epoch + number)).backward()
            optimizer.step()
        last = hvd.join()
        hvd.broadcast_parameters(net.state_dict(), root_rank=last)
        hvd.broadcast_optimizer_state(optimizer, root_rank=last)
        losses.append(hvd.allreduce(evaluation(net, [hvd.rank()])))
    return weights(net), losses


def alone(size):
    net = model()
    optimizer = sgd(net, momentum=0.9)
    losses = []
    for epoch in range(EPOCHS):
        for number in range(max(batches(epoch, rank) for rank in range(size))):
            optimizer.zero_grad()
            for rank in range(size):
                if number < batches(epoch, rank):
                    (loss_of(net, batch(rank, 10 * epoch + number)) / size).backward()
            optimizer.step()
        losses.append(evaluation(net, range(size)))
    return weights(net), losses
