"""Optimizers of optax whose gradients are those of all ranks."""

from __future__ import annotations

import collections
import sys

from jax import numpy as jnp
from jax import tree_util

from horovod.common.process_sets import global_process_set
from horovod.jax import mpi_ops
from horovod.jax.mpi_ops import Average

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional
    from horovod.common.process_sets import ProcessSet

_Transformation = collections.namedtuple('GradientTransformation', ('init', 'update'))


class _Compressor:
    """Casts floating-point arrays to a type for sending; None leaves them as they are."""

    def __init__(self, dtype=None):
        self._dtype = dtype

    def compress(self, leaf):
        """What is sent, and the type to convert back to."""
        if self._dtype is None or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf, leaf.dtype
        return leaf.astype(self._dtype), leaf.dtype

    def decompress(self, leaf, dtype):
        """The array in its own type."""
        return leaf.astype(dtype)


class Compression:
    """The type in which gradients are sent: Compression.none, Compression.fp16 or Compression.bf16."""

    none = _Compressor()
    fp16 = _Compressor(jnp.float16)
    bf16 = _Compressor(jnp.bfloat16)


def DistributedOptimizer(optimizer: Any, name: Optional[str] = None, compression: Any = Compression.none, op: int = Average,
                         gradient_predivide_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> Any:
    """An optimizer of optax that first combines the gradients of all ranks, in one collective.

    Inside of jit and outside. For several backward passes per step, put it into optax.MultiSteps, which
    then reduces once for all of them. It needs no optax itself: anything with init() and update() will do.

    Args:
        optimizer: An optax.GradientTransformation.
        name: Of the collective.
        compression: hvd.Compression.none, fp16 or bf16.
        op: hvd.Average, Sum or Adasum.
        gradient_predivide_factor: With op=hvd.Average: gradients are divided by it before they are added up, and
            by the rest of the number of ranks afterwards.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: An optax.GradientTransformation, or a pair like it.

    Raises:
        ValueError: gradient_predivide_factor is used with another op.

    Example:

        optimizer = hvd.DistributedOptimizer(optax.adam(1e-3))
        opt_state = optimizer.init(params)
        ...
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        params = optax.apply_updates(params, updates)
    """
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError('gradient_predivide_factor is not supported with op other than hvd.Average.')

    def reduce(gradients):
        leaves, structure = tree_util.tree_flatten(gradients)
        packed = [compression.compress(jnp.asarray(leaf)) for leaf in leaves]
        if not packed:
            return gradients
        reduced = mpi_ops.grouped_allreduce([leaf for leaf, _ in packed], name, op, 1.0 / gradient_predivide_factor,
                                            gradient_predivide_factor, process_set)
        return tree_util.tree_unflatten(structure, [compression.decompress(leaf, dtype)
                                                    for leaf, (_, dtype) in zip(reduced, packed)])

    def update(updates, state, params=None, **extra):
        return optimizer.update(reduce(updates), state, params, **extra)

    optax = sys.modules.get('optax')
    kind = getattr(optax, 'GradientTransformationExtraArgs', _Transformation)
    if not isinstance(optimizer, kind):
        kind = getattr(optax, 'GradientTransformation', _Transformation)
    return kind(optimizer.init, update)
