"""Training that outlives changes of the world: state and the loop around a training function.

In a job of fixed size all of this works, too; there the first failure ends it.
"""

from __future__ import annotations

import functools

import jax
from jax import numpy as jnp

from horovod.common.elastic import EXIT_STOPPED, ObjectState, State, on_stop, reset_world, run_fn, stop_grace
from horovod.common.exceptions import HorovodInternalError
from horovod.jax import ending, mpi_ops, native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar
    R = TypeVar('R')

__all__ = ['EXIT_STOPPED', 'JaxState', 'ObjectState', 'State', 'on_stop', 'run', 'stop_grace']


def _copied(value):
    return jnp.array(value, copy=True) if isinstance(value, jax.Array) else value


class _Array:
    """Stands for an array in what is sent as a Python object."""

    def __init__(self, leaf):
        self.shape, self.dtype = leaf.shape, leaf.dtype


class JaxState(ObjectState):
    """A state of pytrees and plain values: each keyword argument becomes an attribute.

    save() copies the arrays, so that a step may be compiled with donated arguments.

    Args:
        kwargs: The values by name, such as params, opt_state and epoch. What is no array must be picklable.

    Example:

        state = hvd.elastic.JaxState(params=params, opt_state=opt_state, epoch=0)
    """

    def __init__(self, **kwargs):
        super(JaxState, self).__init__(mpi_ops.broadcast_object, _rank, **kwargs)

    def _copy(self, values):
        jax.block_until_ready([leaf for leaf in jax.tree_util.tree_leaves(values) if isinstance(leaf, jax.Array)])
        return super(JaxState, self)._copy(jax.tree_util.tree_map(_copied, values))

    def sync(self) -> None:
        """Sets the attributes on all ranks to the values that rank 0 saved last. A collective."""
        if not self._saved_state:
            return
        leaves, structure = jax.tree_util.tree_flatten(self._saved_state)
        plain = [_Array(leaf) if isinstance(leaf, jax.Array) and not _is_key(leaf) else leaf for leaf in leaves]
        plain, structure = self._bcast_object((plain, structure))
        if _rank() != 0:
            leaves = [jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, _Array) else leaf for leaf in plain]
        leaves = [mpi_ops.broadcast(leaf, 0, 'state.{}'.format(index)) if isinstance(known, _Array) else known
                  for index, (leaf, known) in enumerate(zip(leaves, plain))]
        self._saved_state = jax.tree_util.tree_unflatten(structure, leaves)
        self._apply_saved_values()


def _is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _rank():
    from horovod.common import basics
    return basics.shared().rank()


def _reset():
    """A new world, of which no program of the old one knows the places."""
    ending.forget_programs()
    reset_world()


def run(func: Callable[..., R]) -> Callable[..., R]:
    """Decorator of a training function that continues after each change of the world.

    Gives all ranks the state of rank 0 and calls the function; see horovod.common.elastic.run_fn. What a
    collective inside of jit raises counts as the HorovodInternalError that caused it.

    Args:
        func: The training function; its first argument is a State, such as JaxState.

    Returns: The wrapped function.

    Example:

        @hvd.elastic.run
        def train(state):
            for state.epoch in range(state.epoch, 10):
                state.params, state.opt_state = step(state.params, state.opt_state, batch)
                state.commit()
    """

    @functools.wraps(func)
    def translated(*args, **kwargs):
        native.pop_failure()
        try:
            return func(*args, **kwargs)
        except HorovodInternalError:
            raise
        except Exception as error:  # XLA's exception class differs between versions
            failure = native.pop_failure()
            if failure is None:
                raise
            raise failure from error

    return run_fn(translated, _reset)
