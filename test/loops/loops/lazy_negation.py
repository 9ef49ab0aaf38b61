"""A tensor with a lazy negation bit, as the imaginary part of a conjugate has, is reduced by its values."""

import torch


def value():
    return torch._neg_view(torch.arange(1.0, 5.0))


def distributed(hvd):
    return hvd.allreduce(value(), op=hvd.Sum) / hvd.size()


def alone(size):
    return -torch.arange(1.0, 5.0)
