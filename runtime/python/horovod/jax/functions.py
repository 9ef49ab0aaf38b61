"""Parameters from one rank to all, and leaving the world."""

from __future__ import annotations

import jax
import numpy

from horovod.common import _library, objects
from horovod.common import basics as _common_basics
from horovod.common.operations import process_set_id
from horovod.common.process_sets import global_process_set
from horovod.jax import ending, host, mpi_ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from horovod.common.process_sets import ProcessSet


def _is_array(leaf):
    return hasattr(leaf, 'shape') and hasattr(leaf, 'dtype')


def _sent(leaf, index, root_rank, process_set):
    name = 'parameters.{}'.format(index)
    if isinstance(leaf, jax.Array):
        return mpi_ops.broadcast(leaf, root_rank, name, process_set)
    # A NumPy array stays one, since JAX may not have such wide numbers.
    call = host.Call(_library.BROADCAST, name, mpi_ops.Sum, root_rank, process_set_id(process_set), 1.0, 1.0, False)
    return host.run(call, [numpy.asarray(leaf)])[0]


def broadcast_parameters(params: Any, root_rank: int = 0, process_set: ProcessSet = global_process_set) -> Any:
    """Broadcasts the parameters, or the state of the optimizer, from one rank to all.

    Arrays of JAX do not change, so use what it returns.

    Args:
        params: A pytree. Arrays are broadcast; other leaves, such as the numbers and strings of a configuration, are sent
            as Python objects.
        root_rank: The rank whose parameters are sent.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A pytree like `params`, with the root's values.

    Raises:
        HorovodInternalError: The ranks have different parameters, or a rank left or died.

    Example:

        params = hvd.broadcast_parameters(params, root_rank=0)
        opt_state = hvd.broadcast_parameters(opt_state, root_rank=0)
    """
    leaves, structure = jax.tree_util.tree_flatten(params)
    is_key = [_is_array(leaf) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
    arrays = [jax.random.key_data(leaf) if key else leaf for leaf, key in zip(leaves, is_key) if _is_array(leaf)]
    others = [leaf for leaf in leaves if not _is_array(leaf)]
    arrays = iter([_sent(leaf, index, root_rank, process_set) for index, leaf in enumerate(arrays)])
    if others:
        others = iter(objects.broadcast_object(others, root_rank, 'parameters', process_set))
    results = []
    for leaf, key in zip(leaves, is_key):
        if not _is_array(leaf):
            results.append(next(others))
        elif key:
            results.append(jax.random.wrap_key_data(next(arrays), impl=jax.random.key_impl(leaf)))
        else:
            results.append(next(arrays))
    return jax.tree_util.tree_unflatten(structure, results)


def shutdown() -> None:
    """Leaves the world, once the programs of this thread have ended; pending collectives fail. Called at the exit of Python
    too."""
    ending.await_programs()
    ending.forget_programs()
    _common_basics.shared().shutdown()
