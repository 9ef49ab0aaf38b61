"""SparseAdam, with a step in which no rank has rows of the embedding: it moves nothing."""

import torch
from torch import nn

from support import weights


def rows(rank, step):
    return torch.randint(0, 20, (0 if step in (1, 2) else 5,), generator=torch.Generator().manual_seed(60 * step + rank))


def train(optimizer, table, ranks, share):
    for step in range(5):
        optimizer.zero_grad()
        for rank in ranks:
            (table(rows(rank, step)).pow(2).sum() / share).backward()
        optimizer.step()
    return weights(table)


def table_of_embeddings():
    torch.manual_seed(2)
    return nn.Embedding(20, 4, sparse=True)


def distributed(hvd):
    table = table_of_embeddings()
    optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(table.parameters()), lr=0.05),
                                         named_parameters=table.named_parameters())
    return train(optimizer, table, [hvd.rank()], 1)


def alone(size):
    table = table_of_embeddings()
    return train(torch.optim.SparseAdam(list(table.parameters()), lr=0.05), table, range(size), size)
