"""Batch normalisation whose mean and variance are those of the batches of all ranks together."""

import tensorflow as tf

from horovod.tensorflow import mpi_ops


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """tf.keras.layers.BatchNormalization whose statistics are those of the batches of all ranks, while training.

    Args:
        fused: Only False.
        kwargs: As those of tf.keras.layers.BatchNormalization.

    Raises:
        ValueError: fused is not False.
    """

    def __init__(self, fused=False, **kwargs):
        if fused in (True, None):
            raise ValueError('SyncBatchNormalization does not support fused=True.')
        if not kwargs.get('name'):
            kwargs['name'] = 'sync_batch_normalization'
        self._hvd_reductions = 0
        if _is_keras_2():
            kwargs['fused'] = False
        super().__init__(**kwargs)

    def _moments(self, inputs, *args, **kwargs):
        """The mean and the variance over all ranks.

        Args:
            inputs: The batch of this rank.
            args: The axes and keep_dims, or a mask, by the release of Keras.
            kwargs: The same.

        Returns: A pair of tensors.
        """
        mean, variance = super()._moments(inputs, *args, **kwargs)
        if mpi_ops.size() <= 1:
            return mean, variance
        # Ranks may have batches of different sizes; a mean of means would be wrong.
        rows = tf.cast(tf.shape(inputs)[0], mean.dtype)
        weighted = tf.stack([mean * rows, (variance + tf.square(mean)) * rows])
        totals, all_rows = mpi_ops._grouped_allreduce([weighted, rows], op=mpi_ops.Sum)
        mean, mean_of_squares = tf.unstack(totals / tf.maximum(all_rows, 1))
        return mean, tf.maximum(mean_of_squares - tf.square(mean), 0)


def _is_keras_2():
    return not hasattr(tf.keras.layers.BatchNormalization, 'quantize')
