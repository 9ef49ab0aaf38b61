"""GradientTape whose gradients are combined over the ranks."""

import tensorflow as tf

from horovod.tensorflow.compression import Compression
from horovod.tensorflow.gradient_aggregation import scaled_local
from horovod.tensorflow.mpi_ops import Adasum, Average, global_process_set
from horovod.tensorflow.reduction import GradientReduction, check_reduction
from horovod.tensorflow.util import ref_of


class _DistributedGradientTape(tf.GradientTape):
    def register_local_source(self, source):
        """Excludes a variable from the reduction.

        Args:
            source: The variable.
        """
        self._hvd_local_sources.add(ref_of(source))

    def get_local_and_global_gradients(self, gradients):
        """Splits gradients into those of local variables and the others.

        Args:
            gradients: A list of pairs of a gradient and its variable.

        Returns: Two lists of pairs: the local ones and the others.
        """
        local, others = [], []
        for grad, source in gradients:
            (local if ref_of(source) in self._hvd_local_sources else others).append((grad, source))
        return local, others

    def gradient(self, target, sources, output_gradients=None, use_generic_names=False, **kwargs):
        """The gradients of the sources, combined over the ranks; see tf.GradientTape.gradient.

        Args:
            target: The tensor, or several.
            sources: The variables or tensors.
            output_gradients: See tf.GradientTape.gradient.
            use_generic_names: Names that are the same in each graph.
            kwargs: Further arguments of tf.GradientTape.gradient.

        Returns: The gradients, in the structure of the sources.
        """
        grads = super(type(self), self).gradient(target, sources, output_gradients, **kwargs)
        flat_sources = tf.nest.flatten(sources)
        flat = tf.nest.flatten(grads) if not isinstance(grads, tf.IndexedSlices) else [grads]
        if isinstance(sources, (list, tuple)):
            flat = list(grads) if all(not isinstance(grad, (list, tuple, dict)) for grad in grads) else flat
        local = [index for index, source in enumerate(flat_sources) if ref_of(source) in self._hvd_local_sources]
        others = [index for index in range(len(flat)) if index not in set(local)]
        reduced = list(flat)
        for index, grad in zip(others, self._hvd_reduction([flat[index] for index in others],
                                                           [flat_sources[index] for index in others], use_generic_names)):
            reduced[index] = grad
        if self._hvd_scale_local:
            for index in local:
                reduced[index] = scaled_local(reduced[index], self._hvd_process_set)
        if isinstance(sources, list):
            return reduced if len(reduced) == len(sources) else tf.nest.pack_sequence_as(sources, reduced)
        return tf.nest.pack_sequence_as(sources, reduced)


def DistributedGradientTape(gradtape, device_dense='', device_sparse='', compression=Compression.none, sparse_as_dense=False,
                            op=Average, gradient_predivide_factor=1.0, num_groups=0, groups=None,
                            process_set=global_process_set, scale_local_gradients=True):
    """A tape whose gradient() combines the gradients of all ranks.

    Args:
        gradtape: A tf.GradientTape.
        device_dense: Where to place the operations for tensors.
        device_sparse: Where to place those for slices.
        compression: How gradients are sent.
        sparse_as_dense: Whether slices are made tensors first.
        op: hvd.Average, Sum or Adasum.
        gradient_predivide_factor: Gradients are divided by this number before they are summed, and by the rest after it.
        num_groups: Deprecated: see groups.
        groups: A number of groups, or lists of variables whose gradients are combined together.
        process_set: The ranks that take part.
        scale_local_gradients: Whether gradients of local variables are divided by the number of ranks.

    Returns: A tape of the class of the given one.

    Example:

        with tf.GradientTape() as tape:
            loss = loss_of(model(x), y)
        tape = hvd.DistributedGradientTape(tape)
        grads = tape.gradient(loss, model.trainable_variables)
    """
    groups = check_reduction(op, gradient_predivide_factor, num_groups, groups, process_set)
    base = type(gradtape)
    methods = {name: value for name, value in vars(_DistributedGradientTape).items()
               if name in ('register_local_source', 'get_local_and_global_gradients', 'gradient')}
    made = type(base.__name__, (base,), methods)
    tape = made.__new__(made)
    tape.__dict__.update(gradtape.__dict__)
    tape._hvd_local_sources = set()
    tape._hvd_process_set = process_set
    tape._hvd_scale_local = scale_local_gradients
    tape._hvd_reduction = GradientReduction('DistributedGradientTape', device_dense, device_sparse, compression,
                                            sparse_as_dense, op, gradient_predivide_factor, groups, process_set)
    return tape


def local_weights(local_layers):
    """The trainable weights of layers.

    Args:
        local_layers: A layer of Keras, a list of them, or None.

    Returns: A list of variables.

    Raises:
        ValueError: Something else is in the list.
    """
    if local_layers is None:
        return []
    if not isinstance(local_layers, (list, tuple, set)):
        local_layers = [local_layers]
    for layer in local_layers:
        if not hasattr(layer, 'trainable_weights') or not hasattr(layer, 'call'):
            raise ValueError('All local layers must be of tf.keras.layers.Layer type.')
    return [weight for layer in local_layers for weight in layer.trainable_weights]


def PartialDistributedGradientTape(gradtape, device_dense='', device_sparse='', compression=Compression.none,
                                   sparse_as_dense=False, op=Average, gradient_predivide_factor=1.0, num_groups=0, groups=None,
                                   process_set=global_process_set, local_layers=None, scale_local_gradients=True):
    """DistributedGradientTape() that leaves out the weights of some layers.

    Args:
        gradtape: See DistributedGradientTape().
        device_dense: See DistributedGradientTape().
        device_sparse: See DistributedGradientTape().
        compression: See DistributedGradientTape().
        sparse_as_dense: See DistributedGradientTape().
        op: See DistributedGradientTape().
        gradient_predivide_factor: See DistributedGradientTape().
        num_groups: See DistributedGradientTape().
        groups: See DistributedGradientTape().
        process_set: See DistributedGradientTape().
        local_layers: The layers: one, or a list.
        scale_local_gradients: See DistributedGradientTape().

    Returns: A tape.
    """
    if op == Adasum:
        check_reduction(op, gradient_predivide_factor, num_groups, groups, process_set)
    weights = local_weights(local_layers)
    tape = DistributedGradientTape(gradtape, device_dense, device_sparse, compression, sparse_as_dense, op,
                                   gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients)
    for weight in weights:
        tape.register_local_source(weight)
    return tape
