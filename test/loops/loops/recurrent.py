"""An LSTM over sequences, clipped, as language models are trained."""

import torch
from torch import nn

from support import sgd, weights, wrap


class Language(nn.Module):
    def __init__(self):
        super(Language, self).__init__()
        torch.manual_seed(2)
        self.embedding, self.lstm, self.head = nn.Embedding(11, 6), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 11)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


def text(ranks, step):
    return torch.cat([torch.randint(0, 11, (4, 7), generator=torch.Generator().manual_seed(70 * step + rank)) for rank in ranks])


def train(net, optimizer, ranks):
    for step in range(4):
        optimizer.zero_grad()
        x = text(ranks, step)
        nn.functional.cross_entropy(net(x[:, :-1]).reshape(-1, 11), x[:, 1:].reshape(-1)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = Language()
    return train(net, wrap(hvd, net, sgd(net, lr=1.0)), [hvd.rank()])


def alone(size):
    net = Language()
    return train(net, sgd(net, lr=1.0), range(size))
