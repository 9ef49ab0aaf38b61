"""Training that outlives changes of the world: state, sampler and the loop around a training function.

In a job of fixed size all of this works, too; there the first failure ends it.
"""

from __future__ import annotations

from horovod.common.elastic import EXIT_STOPPED, ObjectState, State, on_stop, reset_world, run_fn, stop_grace
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, TypeVar
    R = TypeVar('R')

__all__ = ['EXIT_STOPPED', 'ElasticSampler', 'ObjectState', 'State', 'TorchState', 'on_stop', 'run', 'stop_grace']


def run(func: Callable[..., R]) -> Callable[..., R]:
    """Decorator of a training function that continues after each change of the world.

    Gives all ranks the state of rank 0 and calls the function; see horovod.common.elastic.run_fn.

    Args:
        func: The training function; its first argument is a State, such as TorchState.

    Returns: The wrapped function.

    Example:

        @hvd.elastic.run
        def train(state):
            for state.epoch in range(state.epoch, 10):
                ...
                state.commit()
    """
    return run_fn(func, reset_world)
