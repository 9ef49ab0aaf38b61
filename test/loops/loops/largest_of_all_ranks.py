"""A loss over the maximum of all ranks: the gradient belongs to the rank that has it, or an error says that there is none."""

import torch


def scale(rank):
    return torch.tensor([1.0 + rank, 3.0 / (1 + rank)])


def distributed(hvd):
    w = torch.ones(2, requires_grad=True)
    largest = hvd.allreduce(w * scale(hvd.rank()), op=hvd.Max, name='largest')
    try:
        largest.sum().backward()
    except (RuntimeError, NotImplementedError):
        return 'right or refused'
    scales = torch.stack([scale(rank) for rank in range(hvd.size())])
    has_it = scales[hvd.rank()] == scales.max(0).values
    # As with op=Sum, all ranks' losses count: each of them has the maximum once.
    right = torch.where(has_it, hvd.size() * scale(hvd.rank()), torch.zeros(2))
    return 'right or refused' if torch.allclose(w.grad, right) else w.grad


def alone(size):
    return 'right or refused'
