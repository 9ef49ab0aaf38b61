"""Counters and images of small integers are averaged near the end of their range."""

import torch

VALUES = [(torch.uint8, 200), (torch.uint8, 255), (torch.int8, 100), (torch.int8, -128), (torch.int16, 32767),
          (torch.int32, 2**31 - 1), (torch.int32, -2**31), (torch.int64, 2**63 - 1), (torch.int64, -2**63)]


def distributed(hvd):
    return [hvd.allreduce(torch.full((3,), value, dtype=dtype), op=hvd.Average) for dtype, value in VALUES]


def alone(size):
    return [torch.full((3,), value, dtype=dtype) for dtype, value in VALUES]
