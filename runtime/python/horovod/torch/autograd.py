"""Gradients through the blocking collectives. Every rank runs backward() in the same order, so that the unnamed
collectives in it meet.

A loss is thought of as one of `size` parts of an average, as DistributedOptimizer sees it; hence averages below, also
where the collective itself adds up.
"""

import torch

from horovod.torch import mpi_ops


def _contiguous(gradients):
    return [g.contiguous() for g in gradients]


def _own_rows(average, rows, process_set):
    """The rows of an allgathered tensor that this rank brought."""
    all_rows = mpi_ops.allgather(torch.tensor([rows], dtype=torch.int64), process_set=process_set).tolist()
    begin = sum(all_rows[:process_set.rank()])
    return average[begin:begin + rows]


class HorovodAllreduce(torch.autograd.Function):
    """The gradient is the allreduce of the gradient with the same arguments."""

    @staticmethod
    def forward(ctx, tensor, average, name, op, prescale_factor, postscale_factor, process_set):
        ctx.arguments = (average, op, prescale_factor, postscale_factor, process_set)
        return mpi_ops.synchronize(mpi_ops.allreduce_async(tensor, average, name, op, prescale_factor,
                                                           postscale_factor, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average, op, prescale_factor, postscale_factor, process_set = ctx.arguments
        reduced = mpi_ops.allreduce(gradient.contiguous(), average=average, op=op, prescale_factor=prescale_factor,
                                    postscale_factor=postscale_factor, process_set=process_set)
        return reduced, None, None, None, None, None, None


class HorovodGroupedAllreduce(torch.autograd.Function):
    """As HorovodAllreduce, for all tensors at once."""

    @staticmethod
    def forward(ctx, average, name, op, prescale_factor, postscale_factor, process_set, *tensors):
        ctx.arguments = (average, op, prescale_factor, postscale_factor, process_set)
        return mpi_ops.synchronize(mpi_ops.grouped_allreduce_async(list(tensors), average, name, op, prescale_factor,
                                                                   postscale_factor, process_set))

    @staticmethod
    def backward(ctx, *gradients):
        average, op, prescale_factor, postscale_factor, process_set = ctx.arguments
        reduced = mpi_ops.grouped_allreduce(_contiguous(gradients), average=average, op=op,
                                            prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                                            process_set=process_set)
        return (None, None, None, None, None, None) + tuple(reduced)


class HorovodAllgather(torch.autograd.Function):
    """The gradient is this rank's rows of the average of the gradients."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows = tensor.shape[0] if tensor.dim() else 0
        ctx.process_set = process_set
        return mpi_ops.synchronize(mpi_ops.allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average = mpi_ops.allreduce(gradient.contiguous(), op=mpi_ops.Average, process_set=ctx.process_set)
        return _own_rows(average, ctx.rows, ctx.process_set), None, None


class HorovodGroupedAllgather(torch.autograd.Function):
    """As HorovodAllgather, for all tensors at once."""

    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.rows = [tensor.shape[0] if tensor.dim() else 0 for tensor in tensors]
        ctx.process_set = process_set
        return mpi_ops.synchronize(mpi_ops.grouped_allgather_async(list(tensors), name, process_set))

    @staticmethod
    def backward(ctx, *gradients):
        averages = mpi_ops.grouped_allreduce(_contiguous(gradients), op=mpi_ops.Average, process_set=ctx.process_set)
        return (None, None) + tuple(_own_rows(average, rows, ctx.process_set)
                                    for average, rows in zip(averages, ctx.rows))


class HorovodBroadcast(torch.autograd.Function):
    """The gradient is the average of the gradients on the root, and zero elsewhere."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return mpi_ops.synchronize(mpi_ops.broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average = mpi_ops.allreduce(gradient.contiguous(), op=mpi_ops.Average, process_set=ctx.process_set)
        if mpi_ops.rank() != ctx.root_rank:
            average = torch.zeros_like(average)
        return average, None, None, None


class HorovodAlltoall(torch.autograd.Function):
    """The gradient goes back the way the rows came."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        received, received_splits = mpi_ops.synchronize(mpi_ops.alltoall_async(tensor, splits, name, process_set))
        ctx.received_splits = received_splits
        ctx.shape = tensor.shape
        ctx.process_set = process_set
        ctx.mark_non_differentiable(received_splits)
        return received, received_splits

    @staticmethod
    def backward(ctx, gradient, *unused):
        back, _ = mpi_ops.alltoall(gradient.contiguous(), splits=ctx.received_splits, process_set=ctx.process_set)
        if back.shape[0] < ctx.shape[0]:  # splits may leave out the last rows
            rest = back.new_zeros((ctx.shape[0] - back.shape[0],) + tuple(ctx.shape[1:]))
            back = torch.cat([back, rest])
        return back, None, None, None


def _scale_of_reducescatter(op, process_set, prescale_factor, postscale_factor):
    size = process_set.size() if op == mpi_ops.Sum else 1
    return size * prescale_factor * postscale_factor


class HorovodReducescatter(torch.autograd.Function):
    """The gradient is the allgather of the gradients, times the size of the set for a sum."""

    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale_factor, postscale_factor):
        ctx.process_set = process_set
        ctx.scale = _scale_of_reducescatter(op, process_set, prescale_factor, postscale_factor)
        return mpi_ops.synchronize(mpi_ops.reducescatter_async(tensor, name, op, process_set, prescale_factor,
                                                               postscale_factor))

    @staticmethod
    def backward(ctx, gradient):
        gathered = mpi_ops.allgather((gradient * ctx.scale).contiguous(), process_set=ctx.process_set)
        return gathered, None, None, None, None, None


class HorovodGroupedReducescatter(torch.autograd.Function):
    """As HorovodReducescatter, for all tensors at once."""

    @staticmethod
    def forward(ctx, name, op, process_set, prescale_factor, postscale_factor, *tensors):
        ctx.process_set = process_set
        ctx.scale = _scale_of_reducescatter(op, process_set, prescale_factor, postscale_factor)
        return mpi_ops.synchronize(mpi_ops.grouped_reducescatter_async(list(tensors), name, op, process_set,
                                                                       prescale_factor, postscale_factor))

    @staticmethod
    def backward(ctx, *gradients):
        gathered = mpi_ops.grouped_allgather([(g * ctx.scale).contiguous() for g in gradients],
                                             process_set=ctx.process_set)
        return (None, None, None, None, None) + tuple(gathered)
