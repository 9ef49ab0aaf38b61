"""Batch normalisation whose mean and variance are those of the batches of all ranks together."""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from horovod.torch.mpi_ops import Sum, allgather, allreduce, size


class SyncBatchNorm(_BatchNorm):
    """torch.nn.BatchNorm1d, 2d and 3d whose statistics are those of the batches of all ranks, while training.

    The gradients of weight and bias are those of this rank's batch; DistributedOptimizer combines
    them as any others. Batches may have different sizes, and may be empty.

    Args:
        num_features: Number of channels: the extent of dimension 1 of the input.
        eps: Added to the variance.
        momentum: Weight of a new batch in the running statistics; None averages over all batches.
        affine: Whether to learn weight and bias.
        track_running_stats: Whether to keep running statistics for evaluation.
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super(SyncBatchNorm, self).__init__(num_features, eps, momentum, affine, track_running_stats)

    def _check_input_dim(self, x):
        if x.dim() < 2:
            raise ValueError('hvd.SyncBatchNorm takes inputs of at least two dimensions, but got {}.'.format(x.dim()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalises a batch. While training it is a collective of all ranks.

        Args:
            x: A tensor of shape (batch, num_features, ...).

        Returns: A tensor of the same shape and dtype.

        Raises:
            ValueError: Fewer than two dimensions, or fewer than two values for each channel over all
                ranks.
        """
        self._check_input_dim(x)
        own_statistics = self.training or (self.running_mean is None and self.running_var is None)
        if not own_statistics or size() == 1:
            return super(SyncBatchNorm, self).forward(x)
        averaging = 0.0 if self.momentum is None else self.momentum
        tracking = self.training and self.track_running_stats
        if tracking and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                averaging = 1.0 / float(self.num_batches_tracked)
        return _SyncBatchNorm.apply(x, self.weight, self.bias, self.running_mean if tracking else None,
                                    self.running_var if tracking else None, self.eps, averaging)


def _over_channels(values, x):
    """One value for each channel, in a shape that goes with x."""
    return values.view((1, -1) + (1,) * (x.dim() - 2))


def _statistics(x):
    """Mean, variance and number of values of each channel over all ranks. Each rank brings its own mean and its sum
    of squared distances from it, which loses no digits where sums of squares would."""
    dimensions = [0] + list(range(2, x.dim()))
    count = x.numel() // x.shape[1]
    mean = x.mean(dimensions) if count else x.new_zeros(x.shape[1])
    distance = (x - _over_channels(mean, x)).pow(2).sum(dimensions)
    mine = torch.stack([mean.double(), distance.double(), torch.full_like(mean, count).double()])
    means, distances, counts = allgather(mine.unsqueeze(0), name='sync_batch_norm.statistics').unbind(1)
    total = counts.sum(0)
    if total[0] < 2:
        raise ValueError('hvd.SyncBatchNorm needs more than one value for each channel over all ranks while training, '
                         'but got an input of shape {}.'.format(tuple(x.shape)))
    mean = (means * counts).sum(0) / total
    distance = (distances + counts * (means - mean).pow(2)).sum(0)
    return mean, distance, total[0]


class _SyncBatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, eps, momentum):
        # Half types are computed in float32, as torch does.
        values = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        mean, distance, total = _statistics(values)
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_((momentum * mean).to(running_mean.dtype))
            running_var.mul_(1 - momentum).add_((momentum * distance / (total - 1)).to(running_var.dtype))
        inverse = ((distance / total) + eps).rsqrt().to(values.dtype)
        mean = mean.to(values.dtype)
        ctx.save_for_backward(x, weight, mean, inverse, total)
        result = (values - _over_channels(mean, x)) * _over_channels(inverse, x)
        if weight is not None:
            result = result * _over_channels(weight.to(values.dtype), x) + _over_channels(bias.to(values.dtype), x)
        return result.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        x, weight, mean, inverse, total = ctx.saved_tensors
        dimensions = [0] + list(range(2, x.dim()))
        gradient_type, weight_type = x.dtype, None if weight is None else weight.dtype
        centred = x.to(mean.dtype) - _over_channels(mean, x)
        gradient = gradient.to(mean.dtype)
        sums = torch.stack([gradient.sum(dimensions), (gradient * centred).sum(dimensions)])
        weight_gradient = bias_gradient = x_gradient = None
        if weight is not None:
            weight_gradient = (sums[1] * inverse).to(weight_type)
            bias_gradient = sums[0].to(weight_type)
        # All ranks take part, whatever they need themselves.
        means = allreduce(sums, op=Sum, name='sync_batch_norm.gradient') / total.to(sums.dtype)
        if ctx.needs_input_grad[0]:
            scale = inverse if weight is None else inverse * weight.to(mean.dtype)
            x_gradient = _over_channels(scale, x) * (gradient - _over_channels(means[0], x) - centred * _over_channels(
                inverse * inverse * means[1], x))
            x_gradient = x_gradient.to(gradient_type)
        return x_gradient, weight_gradient, bias_gradient, None, None, None, None
