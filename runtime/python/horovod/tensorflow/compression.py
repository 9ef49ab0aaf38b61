"""Compression of gradients for the way between the ranks."""

import tensorflow as tf


class Compressor:
    """Interface of what allreduce() and DistributedOptimizer accept as `compression`."""

    @staticmethod
    def compress(tensor):
        """Makes the tensor to send.

        Args:
            tensor: A tensor.

        Returns: A pair: the tensor to send and a context for decompress().
        """
        raise NotImplementedError('a Compressor needs a static method compress(tensor)')

    @staticmethod
    def decompress(tensor, ctx):
        """Undoes compress().

        Args:
            tensor: The tensor that was received.
            ctx: The context that compress() returned.

        Returns: A tensor of the original dtype.
        """
        raise NotImplementedError('a Compressor needs a static method decompress(tensor, ctx)')


class NoneCompressor(Compressor):
    """Sends the tensor as it is."""

    @staticmethod
    def compress(tensor):
        """Returns the tensor itself.

        Args:
            tensor: A tensor.

        Returns: A pair: the tensor and None.
        """
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        """Returns the tensor itself.

        Args:
            tensor: A tensor.
            ctx: Ignored.

        Returns: The tensor.
        """
        return tensor


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16."""

    @staticmethod
    def compress(tensor):
        """Casts a floating-point tensor to float16.

        Args:
            tensor: A tensor.

        Returns: A pair: the tensor to send and the original dtype.
        """
        if tensor.dtype.is_floating:
            return tf.cast(tensor, tf.float16), tensor.dtype
        return tensor, tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        """Casts a tensor back.

        Args:
            tensor: A tensor.
            ctx: The original dtype.

        Returns: A tensor of that dtype.
        """
        return tf.cast(tensor, ctx) if ctx.is_floating else tensor


class Compression:
    """The values of the argument `compression`: none sends gradients as they are, fp16 as float16."""

    none = NoneCompressor
    fp16 = FP16Compressor
