"""Compression of gradients for the way between the ranks."""

from __future__ import annotations

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Tuple


class Compressor:
    """Interface of what allreduce() and DistributedOptimizer accept as `compression`."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        """Makes the tensor to send.

        Args:
            tensor: A tensor.

        Returns: A pair: the tensor to send and a context for decompress().
        """
        raise NotImplementedError('a Compressor needs a static method compress(tensor)')

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
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
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        """Returns the tensor itself.

        Args:
            tensor: A tensor.

        Returns: A pair: the tensor and None.
        """
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Returns the tensor itself.

        Args:
            tensor: A tensor.
            ctx: Ignored.

        Returns: The tensor.
        """
        return tensor


class FP16Compressor(Compressor):
    """Sends floating point tensors as float16; sums are rounded to float16 as well."""

    dtype = torch.float16

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        """Converts a floating point tensor to 16 bits, where it is; leaves others as they are.

        Args:
            tensor: A tensor.

        Returns: A pair: the tensor to send and the original dtype, or None.
        """
        if tensor.dtype.is_floating_point:
            return tensor.to(cls.dtype), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Converts the tensor back.

        Args:
            tensor: The tensor that was received.
            ctx: The original dtype, or None.

        Returns: A tensor of the original dtype.
        """
        return tensor if ctx is None else tensor.to(ctx)


class BF16Compressor(FP16Compressor):
    """Sends floating point tensors as bfloat16, which has the range of float32 and fewer digits than float16."""

    dtype = torch.bfloat16


class Compression:
    """The values for the argument `compression`: hvd.Compression.none, hvd.Compression.fp16 and hvd.Compression.bf16."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
