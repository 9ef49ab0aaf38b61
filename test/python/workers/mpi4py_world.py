"""mpi4py in a job that MPI knows nothing of, imported before hvd.init() or after it.

    mpi4py_world.py before|after
"""

import sys

if sys.argv[1] == 'before':
    from mpi4py import MPI

import horovod.torch as hvd

for _ in range(3):
    hvd.init()
    if sys.argv[1] == 'after':
        from mpi4py import MPI
    assert MPI.COMM_WORLD.Get_size() == 1 and MPI.__spec__.loader is MPI.__loader__
    hvd.shutdown()
print('ok', flush=True)
