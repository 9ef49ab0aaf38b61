"""A GAN: the generator's backward() leaves gradients in the discriminator, which zero_grad() then drops."""

import torch
from torch import nn

from support import sgd, weights, wrap


def networks():
    torch.manual_seed(5)
    return (nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 4)),
            nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)))


def noise(ranks, step):
    parts = [torch.randn(5, 3, generator=torch.Generator().manual_seed(100 * step + rank)) for rank in ranks]
    real = [torch.randn(5, 4, generator=torch.Generator().manual_seed(7000 + 100 * step + rank)) for rank in ranks]
    return torch.cat(parts), torch.cat(real)


def train(generator, discriminator, g_optimizer, d_optimizer, ranks):
    loss = nn.BCEWithLogitsLoss()
    for step in range(4):
        z, real = noise(ranks, step)
        d_optimizer.zero_grad()
        scores = discriminator(real), discriminator(generator(z).detach())
        (loss(scores[0], torch.ones_like(scores[0])) + loss(scores[1], torch.zeros_like(scores[1]))).backward()
        d_optimizer.step()
        g_optimizer.zero_grad()
        score = discriminator(generator(z))
        loss(score, torch.ones_like(score)).backward()  # the discriminator gets gradients, too
        g_optimizer.step()
    return weights(generator, discriminator)


def distributed(hvd):
    generator, discriminator = networks()
    return train(generator, discriminator, wrap(hvd, generator, sgd(generator)), wrap(hvd, discriminator, sgd(discriminator)),
                 [hvd.rank()])


def alone(size):
    generator, discriminator = networks()
    return train(generator, discriminator, sgd(generator), sgd(discriminator), range(size))
