"""Each rank finds for itself when it would stop; all stop when the first one would, by a Max of all ranks, with metrics averaged as
numbers of Python and integers."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net))
    correct = seen = torch.tensor(0)
    for step in range(20):
        optimizer.zero_grad()
        x, y = batch(hvd.rank(), step)
        loss = loss_of(net, (x, y))
        loss.backward()
        optimizer.step()
        correct = correct + (net(x).argmax(1) == y).sum()
        seen = seen + len(y)
        wants = int(step >= 4 + 2 * hvd.rank())
        if hvd.allreduce(torch.tensor(wants), op=hvd.Max, name='stop') > 0:
            break
    totals = hvd.grouped_allreduce([correct, seen], op=hvd.Sum, name='totals')
    return weights(net), [int(total) for total in totals], step


def alone(size):
    net = model()
    optimizer = sgd(net)
    correct = seen = 0
    for step in range(5):
        optimizer.zero_grad()
        x, y = whole_batch(size, step)
        loss_of(net, (x, y)).backward()
        optimizer.step()
        correct += int((net(x).argmax(1) == y).sum())
        seen += len(y)
    return weights(net), [correct, seen], 4
