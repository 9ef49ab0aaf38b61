"""The facts about this process in the environment."""

import os

_PAIRS = (('HOROVOD_RANK', 'HOROVOD_SIZE'), ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'), ('PMI_RANK', 'PMI_SIZE'))


_OF_THE_SHELL = ('OLDPWD',)
_FUNCTIONS_OF_BASH = 'BASH_FUNC_'


def is_exportable(v):
    """Returns whether a variable of this process is meant for the workers of a job.

    Args:
        v: Name of the variable.

    Returns: False for OLDPWD and for functions that bash exports, else True.
    """
    return v not in _OF_THE_SHELL and not v.startswith(_FUNCTIONS_OF_BASH)


def get_env_rank_and_size():
    """Reads rank and size from the environment.

    It takes those of the first launcher that has set any: hvdrun or Horovod, Open MPI, PMI.

    Returns: A pair of ints; (0, 1) without a launcher.

    Raises:
        RuntimeError: Only one of the two is set.
    """
    for rank_name, size_name in _PAIRS:
        rank, size = os.environ.get(rank_name), os.environ.get(size_name)
        if rank is not None and size is not None:
            return int(rank), int(size)
        if rank is not None or size is not None:
            there, missing = (rank_name, size_name) if rank is not None else (size_name, rank_name)
            raise RuntimeError('The environment variable {} is set, but {} is not; a launcher sets both or none.'
                               .format(there, missing))
    return 0, 1
