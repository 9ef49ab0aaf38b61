"""Gradients through the blocking collectives. Every rank runs backward() in the same order, so that the unnamed
collectives in it meet.

A loss counts as one of `size` parts of an average, as in DistributedOptimizer; hence the averages below, even if the
collective itself computes a sum.
"""

import torch

from horovod.common import basics as _common_basics
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.torch.framework import check_scattered, operations, synchronize

_basics = _common_basics.shared()
_reduce_op = get_average_backwards_compatibility_fun(_basics)


def _contiguous(gradients):
    return [g.contiguous() for g in gradients]


def _average(gradient, process_set):
    return HorovodAllreduce.apply(gradient.contiguous(), None, None, _basics.Average, 1.0, 1.0, process_set)


def _own_rows(average, rows, process_set):
    """This rank's rows of an allgathered tensor."""
    mine = torch.tensor([rows], dtype=torch.int64, device='cpu')
    all_rows = synchronize(operations.allgather_async(mine, None, process_set)).tolist()
    begin = sum(all_rows[:process_set.rank()])
    return average[begin:begin + rows]


def _selects(op):
    return op in (_basics.Min, _basics.Max, _basics.Product)


class _OfSelection(torch.autograd.Function):
    """The gradient of an allreduce with Min, Max or Product, whose derivative of the gradient is not implemented."""

    @staticmethod
    def forward(ctx, gradient, tensor, op, prescale_factor, postscale_factor, process_set):
        total = operations.allreduce(gradient.contiguous(), False, None, _basics.Sum, 1.0, 1.0, process_set)
        find = _of_product if op == _basics.Product else _of_extreme
        return total * find(tensor, op, prescale_factor, process_set) * postscale_factor

    @staticmethod
    def backward(ctx, *unused):
        raise RuntimeError('A second derivative of hvd.allreduce with op=hvd.Min, hvd.Max or hvd.Product is not available; '
                           'use create_graph=False, or hvd.allgather and a reduction of torch.')


def _of_extreme(tensor, op, prescale_factor, process_set):
    """The share of each element in the result: equal parts for the ranks that have the extreme value."""
    if prescale_factor < 0:  # it reverses the order
        op = _basics.Min if op == _basics.Max else _basics.Max
    extreme = operations.allreduce(tensor, False, None, op, 1.0, 1.0, process_set)
    wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    mine = ((tensor == extreme) | (tensor.isnan() & extreme.isnan())).to(wide)
    winners = operations.allreduce(mine, False, None, _basics.Sum, 1.0, 1.0, process_set)
    return (mine / winners.clamp(min=1) * prescale_factor).to(tensor.dtype)


def _of_product(tensor, unused_op, prescale_factor, process_set):
    """The product of the other ranks' values: by division, or without it if any value is zero."""
    scaled = tensor * prescale_factor
    zero = scaled == 0
    zeros = operations.allreduce(zero.float(), False, None, _basics.Sum, 1.0, 1.0, process_set)
    ones = torch.where(zero, torch.ones_like(scaled), scaled)
    product = operations.allreduce(ones, False, None, _basics.Product, 1.0, 1.0, process_set)
    others = torch.where(zeros == zero.float(), product / ones, torch.zeros_like(product))
    return others * prescale_factor


class HorovodAllreduce(torch.autograd.Function):
    """The gradient is the allreduce of the gradient with the same arguments: sum for a sum, average for an average. For
    Min, Max and Product it is the exact gradient of the sum of all ranks' losses."""

    @staticmethod
    def forward(ctx, tensor, average, name, op, prescale_factor, postscale_factor, process_set):
        op = _reduce_op(op, average)
        ctx.arguments = (op, prescale_factor, postscale_factor, process_set)
        if _selects(op):
            ctx.save_for_backward(tensor)
        return operations.allreduce(tensor, False, name, op, prescale_factor, postscale_factor, process_set)

    @staticmethod
    def backward(ctx, gradient):
        if _selects(ctx.arguments[0]):
            reduced = _OfSelection.apply(gradient, ctx.saved_tensors[0], *ctx.arguments)
        else:
            reduced = HorovodAllreduce.apply(gradient.contiguous(), None, None, *ctx.arguments)
        return reduced, None, None, None, None, None, None


class HorovodGroupedAllreduce(torch.autograd.Function):
    """As HorovodAllreduce, for all tensors at once."""

    @staticmethod
    def forward(ctx, average, name, op, prescale_factor, postscale_factor, process_set, *tensors):
        op = _reduce_op(op, average)
        ctx.arguments = (op, prescale_factor, postscale_factor, process_set)
        if _selects(op):
            ctx.save_for_backward(*tensors)
        return synchronize(operations.grouped_allreduce_async(list(tensors), False, name, op, prescale_factor,
                                                              postscale_factor, process_set))

    @staticmethod
    def backward(ctx, *gradients):
        if _selects(ctx.arguments[0]):
            reduced = [_OfSelection.apply(gradient, tensor, *ctx.arguments)
                       for gradient, tensor in zip(gradients, ctx.saved_tensors)]
        else:
            reduced = HorovodGroupedAllreduce.apply(None, None, *ctx.arguments, *_contiguous(gradients))
        return (None, None, None, None, None, None) + tuple(reduced)


class HorovodAllgather(torch.autograd.Function):
    """The gradient is this rank's rows of the average of the gradients."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows = tensor.shape[0] if tensor.dim() else 0
        ctx.process_set = process_set
        return synchronize(operations.allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average = _average(gradient, ctx.process_set)
        return _own_rows(average, ctx.rows, ctx.process_set), None, None


class HorovodGroupedAllgather(torch.autograd.Function):
    """As HorovodAllgather, for all tensors at once."""

    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.rows = [tensor.shape[0] if tensor.dim() else 0 for tensor in tensors]
        ctx.process_set = process_set
        return synchronize(operations.grouped_allgather_async(list(tensors), name, process_set))

    @staticmethod
    def backward(ctx, *gradients):
        averages = HorovodGroupedAllreduce.apply(None, None, _basics.Average, 1.0, 1.0, ctx.process_set,
                                                 *_contiguous(gradients))
        return (None, None) + tuple(_own_rows(average, rows, ctx.process_set)
                                    for average, rows in zip(averages, ctx.rows))


class HorovodBroadcast(torch.autograd.Function):
    """The gradient is the average of the gradients on the root, and zero elsewhere."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return operations.broadcast(tensor, False, root_rank, name, process_set)

    @staticmethod
    def backward(ctx, gradient):
        average = _average(gradient, ctx.process_set)
        if _basics.rank() != ctx.root_rank:
            average = torch.zeros_like(average)
        return average, None, None, None


class HorovodAlltoall(torch.autograd.Function):
    """The gradient's rows are sent back to the ranks they came from."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        received, received_splits = synchronize(operations.alltoall_async(tensor, splits, name, process_set))
        ctx.received_splits = received_splits
        ctx.shape = tensor.shape
        ctx.process_set = process_set
        ctx.mark_non_differentiable(received_splits)
        return received, received_splits

    @staticmethod
    def backward(ctx, gradient, *unused):
        back, _ = HorovodAlltoall.apply(gradient.contiguous(), ctx.received_splits, None, ctx.process_set)
        if back.shape[0] < ctx.shape[0]:  # splits may leave out the last rows
            rest = back.new_zeros((ctx.shape[0] - back.shape[0],) + tuple(ctx.shape[1:]))
            back = torch.cat([back, rest])
        return back, None, None, None


def _scale_of_reducescatter(op, process_set, prescale_factor, postscale_factor):
    size = process_set.size() if op == _basics.Sum else 1
    return size * prescale_factor * postscale_factor


class HorovodReducescatter(torch.autograd.Function):
    """The gradient is the allgather of the gradients, times the size of the set for a sum."""

    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale_factor, postscale_factor):
        ctx.process_set = process_set
        ctx.scale = _scale_of_reducescatter(op, process_set, prescale_factor, postscale_factor)
        check_scattered(tensor)
        return synchronize(operations.reducescatter_async(tensor, name, op, prescale_factor, postscale_factor,
                                                          process_set))

    @staticmethod
    def backward(ctx, gradient):
        gathered = HorovodAllgather.apply((gradient * ctx.scale).contiguous(), None, ctx.process_set)
        return gathered, None, None, None, None, None


class HorovodGroupedReducescatter(torch.autograd.Function):
    """As HorovodReducescatter, for all tensors at once."""

    @staticmethod
    def forward(ctx, name, op, process_set, prescale_factor, postscale_factor, *tensors):
        ctx.process_set = process_set
        ctx.scale = _scale_of_reducescatter(op, process_set, prescale_factor, postscale_factor)
        check_scattered(*tensors)
        return synchronize(operations.grouped_reducescatter_async(list(tensors), name, op, prescale_factor,
                                                                  postscale_factor, process_set))

    @staticmethod
    def backward(ctx, *gradients):
        gathered = HorovodGroupedAllgather.apply(None, ctx.process_set,
                                                 *[(g * ctx.scale).contiguous() for g in gradients])
        return (None, None, None, None, None) + tuple(gathered)
