"""Compression of gradients for the way between the ranks."""

import torch


class Compressor(object):
    """Interface: compress gives (tensor to send, context), decompress undoes it with that context."""

    @staticmethod
    def compress(tensor):
        raise NotImplementedError('a Compressor needs a static method compress(tensor)')

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError('a Compressor needs a static method decompress(tensor, ctx)')


class NoneCompressor(Compressor):
    """Sends the tensor as it is."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


class FP16Compressor(Compressor):
    """Sends floating point tensors as float16."""

    @staticmethod
    def compress(tensor):
        if tensor.dtype.is_floating_point:
            return tensor.to(torch.float16), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor if ctx is None else tensor.to(ctx)


class Compression(object):
    """What DistributedOptimizer and allreduce accept as `compression`."""

    none = NoneCompressor
    fp16 = FP16Compressor
