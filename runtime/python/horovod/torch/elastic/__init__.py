"""Training that outlives changes of the world: state, sampler and the loop around a training function.

What the launcher has to do for jobs of changing size is not available yet; in a job of fixed size all of this works.
"""

from horovod.common.elastic import run_fn
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState
from horovod.torch.mpi_ops import init, shutdown

__all__ = ['ElasticSampler', 'TorchState', 'run']


def run(func):
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
    return run_fn(func, _reset)


def _reset():
    shutdown()
    init()
