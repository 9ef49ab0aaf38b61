"""Tensors with lazy conjugation and negation bits are reduced by their values."""

import torch


def values():
    z = torch.complex(torch.arange(4.0), torch.arange(4.0) + 1)
    return torch.conj(z).imag, z.real


def distributed(hvd):
    return [hvd.allreduce(value, op=hvd.Sum) / hvd.size() for value in values()]


def alone(size):
    return [value.resolve_neg().clone() for value in values()]
