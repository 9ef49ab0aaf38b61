"""A rank without rows in a step, and a metric of all ranks between backward() and step()."""

import torch

from support import batch, loss_of, model, sgd, weights, wrap


def has_rows(rank, step, size):
    return not (step % 2 == 1 and rank == size - 1)


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net))
    rows = []
    for step in range(4):
        optimizer.zero_grad()
        count = 0
        if has_rows(hvd.rank(), step, hvd.size()):
            data = batch(hvd.rank(), step)
            loss_of(net, data).backward()
            count = len(data[1])
        rows.append(int(hvd.allreduce(torch.tensor(count), op=hvd.Sum, name='rows')))
        optimizer.step()
    return weights(net), rows


def alone(size):
    net = model()
    optimizer = sgd(net)
    rows = []
    for step in range(4):
        optimizer.zero_grad()
        counts = 0
        for rank in range(size):
            if has_rows(rank, step, size):
                data = batch(rank, step)
                (loss_of(net, data) / size).backward()
                counts += len(data[1])
        rows.append(counts)
        optimizer.step()
    return weights(net), rows
