"""Compression of gradients for the backend of Keras."""

from horovod import _keras
from horovod._keras.module import keras

if _keras.backend_of(keras) == 'tensorflow':
    from horovod.tensorflow.compression import Compression
elif _keras.backend_of(keras) == 'torch':
    from horovod.torch.compression import Compression
else:
    class Compression:
        """The values of the argument `compression`: none sends gradients as they are."""

        none = None

__all__ = ['Compression']
