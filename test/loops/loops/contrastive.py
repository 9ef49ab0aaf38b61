"""A contrastive loss over the embeddings of all ranks, which hvd.allgather() brings, with numbers of rows that differ.
The gradient of an allgather is an average, so the script multiplies it by the number of ranks."""

import torch
import torch.nn.functional as F

from support import batch, model, sgd, weights, wrap


def rows(rank):
    return 3 + rank % 2


def share(rank, size):
    """Of the rank's rows in the mean over all, times the number of ranks."""
    return size * rows(rank) / sum(rows(other) for other in range(size))


def loss_of_rows(own, everything, first):
    """Each row against all others, with its neighbour as the positive."""
    scores = F.normalize(own, dim=1) @ F.normalize(everything, dim=1).t() / 0.5
    numbers = torch.arange(len(own)) + first
    return F.cross_entropy(scores, (numbers + 1) % len(everything))


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net, lr=0.3))
    for step in range(4):
        optimizer.zero_grad()
        own = net(batch(hvd.rank(), step, rows(hvd.rank()))[0])
        everything = hvd.allgather(own, name='embeddings')
        everything.register_hook(lambda g: g * hvd.size())
        loss = loss_of_rows(own, everything, sum(rows(rank) for rank in range(hvd.rank())))
        (loss * share(hvd.rank(), hvd.size())).backward()
        optimizer.step()
    return weights(net)


def alone(size):
    net = model()
    optimizer = sgd(net, lr=0.3)
    for step in range(4):
        optimizer.zero_grad()
        everything = net(torch.cat([batch(rank, step, rows(rank))[0] for rank in range(size)]))
        loss_of_rows(everything, everything, 0).backward()
        optimizer.step()
    return weights(net)
