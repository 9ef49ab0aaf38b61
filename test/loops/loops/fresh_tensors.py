"""Many tensors of new sizes, without names."""

import torch


def distributed(hvd):
    return [hvd.allreduce(torch.full((3 + step % 40,), float(step)), op=hvd.Average).sum() for step in range(120)]


def alone(size):
    return [torch.full((3 + step % 40,), float(step)).sum() for step in range(120)]
