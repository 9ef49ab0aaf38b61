"""The world as Python sees it: init, shutdown, ranks and sizes, what is built in.

One runtime serves all frameworks of the process: init() is idempotent, and whoever calls it first joins for all.
"""

import atexit
import os

from horovod.common import _library
from horovod.common import process_sets as _process_sets
from horovod.common.util import is_iterable


class HorovodBasics(object):
    """The functions every adapter re-exports."""

    Average = _library.AVERAGE
    Sum = _library.SUM
    Adasum = _library.ADASUM
    Min = _library.MIN
    Max = _library.MAX
    Product = _library.PRODUCT

    HOROVOD_PROCESS_SET_ERROR_INIT = -1
    HOROVOD_PROCESS_SET_ERROR_DYNAMIC = -2
    HOROVOD_PROCESS_SET_ERROR_UNKNOWN_SET = -3
    HOROVOD_PROCESS_SET_ERROR_FOREIGN_SET = -4
    HOROVOD_PROCESS_SET_ERROR_SHUTDOWN = -5
    HOROVOD_PROCESS_SET_ERROR_EXISTING_SET = -6

    MPI_LIB_CTYPES = None  # the runtime is not linked with MPI

    _atexit_registered = False

    def __init__(self, *unused):  # Horovod passes the paths of its extension here
        _library.lib()  # ImportError now rather than at the first call

    def init(self, comm=None, process_sets=None):
        """Joins the world: the one hvdrun made, or a world of one. Blocks until every rank has called it.

        comm and process_sets must be None yet: sub-worlds and process sets are not available.
        """
        if comm is not None:
            if is_iterable(comm) and all(isinstance(rank, int) for rank in comm):
                raise NotImplementedError('hvd.init(comm=[ranks]) is not available yet; call hvd.init() and start as '
                                          'many processes as the world shall have.')
            raise ValueError('hvd.init(comm=...) takes a list of ranks, or a communicator of mpi4py with a runtime '
                             'that was built with MPI; this is neither: {!r}.'.format(comm))
        if process_sets is not None:
            if isinstance(process_sets, str):
                if process_sets.lower() != 'dynamic':
                    raise ValueError('hvd.init(process_sets=...) takes a list of ProcessSet or "dynamic", but {!r} '
                                     'was given.'.format(process_sets))
                raise NotImplementedError('Dynamic process sets are not available yet; call hvd.init() without '
                                          'process_sets.')
            if not is_iterable(process_sets):
                raise ValueError('hvd.init(process_sets=...) takes a list of ProcessSet or "dynamic", but {!r} was '
                                 'given.'.format(process_sets))
            if list(process_sets):
                raise NotImplementedError('Process sets are not available yet; call hvd.init() without '
                                          'process_sets.')
        _library.init()
        if not HorovodBasics._atexit_registered:
            HorovodBasics._atexit_registered = True
            atexit.register(_shutdown_at_exit, os.getpid())
        _process_sets._setup(self)
        _process_sets._init_process_sets(process_sets)

    def shutdown(self):
        """Leaves the world; pending collectives fail. init() may follow, any number of times."""
        _library.shutdown()

    def is_initialized(self):
        return _library.lib().hvd_is_initialized() == 1

    def start_timeline(self, file_path, mark_cycles=False):
        """Not available yet: ValueError."""
        self.rank()
        raise ValueError('The timeline cannot be started: it is not available yet.')

    def stop_timeline(self):
        """Does nothing while there is no timeline; ValueError before init()."""
        self.rank()

    def size(self):
        """Number of processes in the world."""
        return _library.query('size')

    def local_size(self):
        """Number of processes on this host."""
        return _library.query('local_size')

    def cross_size(self):
        """Number of hosts that have a process of this local rank."""
        return _library.query('cross_size')

    def rank(self):
        """Number of this process in the world, from 0."""
        return _library.query('rank')

    def local_rank(self):
        """Number of this process on its host, from 0."""
        return _library.query('local_rank')

    def cross_rank(self):
        """Number of this host among those that have a process of this local rank."""
        return _library.query('cross_rank')

    def is_homogeneous(self):
        """Whether every host has the same number of processes."""
        return _library.query('is_homogeneous') == 1

    def mpi_threads_supported(self):
        self.rank()
        raise ValueError('MPI is not in use, so there is nothing to say about its threads.')

    def mpi_enabled(self):
        """Whether MPI carries the collectives now; the runtime does not use it yet."""
        return False

    def gloo_enabled(self):
        """Whether Gloo carries the collectives now; the runtime does not use it yet."""
        return False

    def _built(self, feature):
        return _library.lib().hvd_built(feature) == 1

    def mpi_built(self):
        return self._built(b'mpi')

    def gloo_built(self):
        return self._built(b'gloo')

    def nccl_built(self):
        return int(self._built(b'nccl'))

    def ddl_built(self):
        return self._built(b'ddl')

    def ccl_built(self):
        return self._built(b'ccl')

    def cuda_built(self):
        return self._built(b'cuda')

    def rocm_built(self):
        return self._built(b'rocm')

    def _add_process_set_impl(self, ranks):
        raise ValueError('Process sets cannot be added: dynamic process sets are not available yet, so '
                         'HOROVOD_DYNAMIC_PROCESS_SETS=1 has no effect.')

    def _remove_process_set_impl(self, process_set_id):
        raise ValueError('Process sets cannot be removed: dynamic process sets are not available yet, so '
                         'HOROVOD_DYNAMIC_PROCESS_SETS=1 has no effect.')

    def _process_set_rank(self, process_set_id):
        self.rank()
        rank = _library.lib().hvd_process_set_rank(process_set_id)
        if rank < 0:
            raise ValueError('This process is not in process set {}, or there is no such set.'.format(process_set_id))
        return rank

    def _process_set_size(self, process_set_id):
        self.rank()
        size = _library.lib().hvd_process_set_size(process_set_id)
        if size < 0:
            raise ValueError('There is no process set {}.'.format(process_set_id))
        return size

    def _get_process_set_ids_and_ranks(self):
        return {0: list(range(self.size()))}

    def _comm_process_set_id(self, comm):
        raise ValueError('Communicators of mpi4py need a runtime that was built with MPI.')


def _shutdown_at_exit(pid):
    # A forked child inherits this handler with the world of its parent, which is not its to shut down.
    if os.getpid() == pid:
        try:
            _library.shutdown()
        except Exception:  # nothing useful can be done about it any more
            pass


_shared = None


def shared():
    """The one HorovodBasics of this process."""
    global _shared
    if _shared is None:
        _shared = HorovodBasics()
        _process_sets._setup(_shared)
    return _shared
