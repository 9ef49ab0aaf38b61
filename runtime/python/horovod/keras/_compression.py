"""Compression of gradients; where there is no TensorFlow, there is none."""


try:
    from horovod.tensorflow.compression import Compression
except ImportError:
    class Compression:
        """The values of the argument `compression`: none sends gradients as they are."""

        none = None
