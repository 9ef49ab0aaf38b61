"""The type in which gradients are sent."""


class NoneCompressor:
    """Leaves arrays as they are."""

    @staticmethod
    def compress(tensor):
        """What is sent, and what decompress() needs.

        Args:
            tensor: An array.
        """
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        """The array in its own type.

        Args:
            tensor: What was received.
            ctx: What compress() returned for it.
        """
        return tensor


class FP16Compressor:
    """Casts arrays of float32 and float64 to float16."""

    @staticmethod
    def compress(tensor):
        """What is sent, and the type to convert back to.

        Args:
            tensor: An array.
        """
        dtype = tensor.dtype
        if dtype.__name__ in ('float32', 'float64'):
            return tensor.astype('float16', copy=False), dtype
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        """The array in its own type.

        Args:
            tensor: What was received.
            ctx: What compress() returned for it.
        """
        return tensor if ctx is None else tensor.astype(ctx, copy=False)


class Compression:
    """Compression.none or Compression.fp16."""

    none = NoneCompressor
    fp16 = FP16Compressor
