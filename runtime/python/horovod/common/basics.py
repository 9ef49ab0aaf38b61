"""The world as Python sees it: init, shutdown, ranks and sizes, what is built in.

One runtime serves all frameworks of the process: init() is idempotent, and the first call joins for all.
A module that a plain init() does not need is imported where it is used, since all workers pay for it at their start.
"""

from __future__ import annotations

import atexit
import os
import sys

from horovod.common import _children, _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence, Union


class HorovodBasics:
    """The functions that every adapter re-exports, such as hvd.init() and hvd.rank().

    Scripts use them as functions of horovod.torch or horovod.numpy. The class attributes Average,
    Sum, Adasum, Min, Max and Product are the values of the argument `op` of the collectives.

    Args:
        unused: Ignored; Horovod passes the paths of its extension.

    Raises:
        ImportError: libhvd.so cannot be found or loaded.
    """

    Average = 0
    Sum = 1
    Adasum = 2
    Min = 3
    Max = 4
    Product = 5

    HOROVOD_PROCESS_SET_ERROR_INIT = -1
    HOROVOD_PROCESS_SET_ERROR_DYNAMIC = -2
    HOROVOD_PROCESS_SET_ERROR_UNKNOWN_SET = -3
    HOROVOD_PROCESS_SET_ERROR_FOREIGN_SET = -4
    HOROVOD_PROCESS_SET_ERROR_SHUTDOWN = -5
    HOROVOD_PROCESS_SET_ERROR_EXISTING_SET = -6

    MPI_LIB_CTYPES = None  # the runtime is not linked with MPI

    _atexit_registered = False
    _mpi_compared = False

    def __init__(self, *unused):  # Horovod passes the paths of its extension here
        _native.load()  # ImportError now rather than at the first call

    def init(self, comm: Any = None, process_sets: Union[Sequence[Any], str, None] = None) -> None:
        """Joins the world that hvdrun or another launcher has made; without a launcher, a world of one.

        Blocks until every rank has called it. Until shutdown(), further calls only register their
        process_sets. All adapters of a process share one world.

        The children of a rank, such as the workers of a DataLoader, are no ranks: they can ask for rank(),
        size() and the like, and get the answers of their rank, but must not call init().

        Args:
            comm: None, or a list of the ranks of the world (all of them, unless mpirun started them),
                or a communicator of mpi4py in a build with MPI.
            process_sets: A list of ProcessSet, the same on every rank, but for sets made of
                communicators, of which each rank has its own; or 'dynamic', which allows
                add_process_set().

        Raises:
            ValueError: An argument is wrong.
            NotImplementedError: comm asks for ranks that this launcher cannot make a world of.
            RuntimeError: This process is a child of a rank.
            HorovodInternalError: The world was not complete in time, or a rank died before.
            SystemExit: The elastic job continues without this process; the exit code is 0.

        Example:

            import horovod.torch as hvd

            hvd.init()
            print(hvd.rank(), hvd.size())
        """
        if not _native.call('is_initialized'):
            _children.refuse_to_join()
            _children.prepare()
        if comm is None and process_sets is None:
            _join()
        else:
            from horovod.common import process_sets as sets
            process_sets, *world = sets._check_arguments(comm, process_sets)
            _join(*world)
        if not HorovodBasics._atexit_registered:
            HorovodBasics._atexit_registered = True
            atexit.register(_shutdown_at_exit, os.getpid())
        sets = sys.modules.get('horovod.common.process_sets')
        if sets is not None:
            sets._init_process_sets(process_sets)
        _children.publish()
        if 'HVD_AGENT' not in os.environ and self.size() > 1:  # ranks started by another launcher have an agent by now
            from horovod.common import _stacks
            _stacks.offer()
        if 'mpi4py.MPI' in sys.modules:
            self._compare_with_mpi()
        elif self.size() > 1:
            from horovod.common import _after_import
            _after_import.call('mpi4py.MPI', self._compare_with_mpi)

    def _compare_with_mpi(self):
        """Warns, on one rank and once, when mpi4py is used in a job that MPI knows nothing of."""
        mpi = sys.modules['mpi4py.MPI']
        if HorovodBasics._mpi_compared or not mpi.Is_initialized() or mpi.Is_finalized() or not self.is_initialized():
            return
        HorovodBasics._mpi_compared = True
        world, job = mpi.COMM_WORLD.Get_size(), self.size()
        if self.rank() == 0 and world < job:
            import warnings
            warnings.warn('The world of mpi4py has {} of the {} processes of this job, since MPI did not start them, so '
                          'mpi4py reaches no other rank; start the script with `mpirun -np {} python ...` (or hvdrun '
                          '--mpi).'.format(world, job, job), RuntimeWarning, stacklevel=3)

    def shutdown(self) -> None:
        """Leaves the world; pending collectives fail.

        Called at the exit of Python too. Without a world it does nothing. init() may follow, any number
        of times.
        """
        _leave()

    def is_initialized(self) -> bool:
        """Returns whether this process is in a world.

        True also in the children of a rank, which can ask for its place: see init().

        Returns: True or False.
        """
        if _native.call('is_initialized') == 1:
            return True
        return _children.is_child()

    def start_timeline(self, file_path: str, mark_cycles: bool = False) -> None:
        """Starts writing the collectives of the ranks of this host to a file, for chrome://tracing and Perfetto.

        Rank 0 writes; on other ranks it does nothing. The file is valid JSON at any moment. A path that
        is being written already changes nothing; another path ends that file and begins the new one.
        Under `hvdrun --timeline FILE` hvdrun writes all ranks of all hosts, and needs no call.

        Args:
            file_path: The file to write; what it holds is replaced.
            mark_cycles: Whether to mark each submission while nothing of its rank is in flight.

        Raises:
            ValueError: hvd.init() has not been called, the job was not started with
                HOROVOD_TIMELINE=DYNAMIC, or the file cannot be written.
        """
        self.rank()
        path = os.fsencode(file_path)
        _check_timeline(_native.call('start_timeline', path, 1 if mark_cycles else 0))

    def stop_timeline(self) -> None:
        """Ends the file that start_timeline() started.

        Everything up to now is in it when this returns. Does nothing if none is being written.

        Returns: None.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        self.rank()
        _check_timeline(_native.call('stop_timeline'))

    def size(self) -> int:
        """Number of ranks in the world.

        Returns: An int, at least 1.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _native.query('size')

    def local_size(self) -> int:
        """Number of ranks on this host.

        Returns: An int, at least 1.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _native.query('local_size')

    def cross_size(self) -> int:
        """Number of hosts that have a rank with the local rank of this process.

        Returns: An int, at least 1.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _native.query('cross_size')

    def rank(self) -> int:
        """Rank of this process in the world.

        Returns: An int from 0 to size() - 1.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _native.query('rank')

    def local_rank(self) -> int:
        """Rank of this process among those on its host.

        Returns: An int from 0 to local_size() - 1.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _native.query('local_rank')

    def cross_rank(self) -> int:
        """Number of this host among those that have a rank with the local rank of this process.

        Returns: An int from 0 to cross_size() - 1.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _native.query('cross_rank')

    def is_homogeneous(self) -> bool:
        """Returns whether every host has the same number of ranks.

        Returns: True or False.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _native.query('is_homogeneous') == 1

    def should_stop(self) -> bool:
        """Returns whether the job is to end here, for loops without an elastic state.

        Call it once per step, on all ranks at the same point: all of them get the same answer. When it
        is True, save what is needed and leave with sys.exit(75), by which whatever started the job
        knows that it is to be started again. In a loop of hvd.elastic.run, commit() does all of this.

        A job stops when hvdrun gets SIGUSR1; an elastic one also on SIGTERM.

        Returns: True or False.

        Raises:
            ValueError: hvd.init() has not been called.
            HorovodInternalError: A rank left or died.

        Example:

            for step in range(steps):
                train(step)
                if hvd.should_stop():
                    save(step)
                    sys.exit(75)
        """
        if _native.query('should_stop') == 1:
            return True
        from horovod.common import _library
        return bool(_library.commit() & _library.UPDATE_STOP)

    def mpi_threads_supported(self) -> bool:
        """Returns whether MPI may be called from several threads.

        True under mpirun and `hvdrun --mpi`, where hvd.init() initialises MPI with
        MPI_THREAD_MULTIPLE unless the script has initialised it.

        Returns: True or False.

        Raises:
            ValueError: hvd.init() has not been called, or MPI is not in use.
        """
        if not self.mpi_enabled():
            raise ValueError('MPI is not in use, because {}.'.format(_reason_without_mpi()))
        return _enabled('mpi_threads')

    def mpi_enabled(self) -> bool:
        """Returns whether MPI started the ranks of this world and is initialised.

        True under mpirun and `hvdrun --mpi` in a build with MPI, whichever way the data travels.

        Returns: True or False.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _enabled('mpi')

    def gloo_enabled(self) -> bool:
        """Returns whether Gloo carries collectives of this world. Nothing needs it inside one host.

        Returns: True or False.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        return _enabled('gloo')

    def mpi_built(self) -> bool:
        """Returns whether this build of the runtime has support for MPI.

        Returns: True or False.
        """
        return _built('mpi')

    def gloo_built(self) -> bool:
        """Returns whether this build of the runtime has Gloo.

        Returns: True or False.
        """
        return _built('gloo')

    def nccl_built(self) -> int:
        """Returns which NCCL the tensors on GPUs of this process would use.

        Returns: Its version as an int, 22809 for 2.28.9; 0 if there is none, or none that can be used.
        """
        from horovod.common import _library
        return _library.built_version('nccl')

    def ddl_built(self) -> bool:
        """Returns whether this build of the runtime has DDL.

        Returns: True or False.
        """
        return _built('ddl')

    def ccl_built(self) -> bool:
        """Returns whether this build of the runtime has oneCCL.

        Returns: True or False.
        """
        return _built('ccl')

    def cuda_built(self) -> bool:
        """Returns whether this build of the runtime has CUDA, and the driver of GPUs can be loaded.

        Returns: True or False.
        """
        return _built('cuda')

    def rocm_built(self) -> bool:
        """Returns whether this build of the runtime has ROCm.

        Returns: True or False.
        """
        return _built('rocm')

    def _add_process_set_impl(self, ranks):
        """Registers a set on all ranks: its id, or None when there is such a set already."""
        from horovod.common import process_sets
        return process_sets._add(ranks)

    def _remove_process_set_impl(self, process_set_id):
        """Removes a set on all ranks: its id, or None when there is no such set."""
        from horovod.common import process_sets
        return process_sets._remove(process_set_id)

    def _process_set_rank(self, process_set_id):
        from horovod.common import process_sets
        return process_sets._rank_in(process_set_id)

    def _process_set_size(self, process_set_id):
        from horovod.common import process_sets
        return process_sets._size_of(process_set_id)

    def _get_process_set_ids_and_ranks(self):
        from horovod.common import process_sets
        return process_sets._ids_and_ranks()

    def _comm_process_set_id(self, comm):
        """The id of the registered set that has the ranks of a communicator."""
        from horovod.common import process_sets
        return process_sets._id_of_communicator(comm)


def _reason_without_mpi():
    if not _built('mpi'):
        return ('this hvdrun was built without MPI, or its Open MPI is missing; build it where Open MPI is installed '
                '(Debian: libopenmpi-dev)')
    if 'OMPI_COMM_WORLD_SIZE' not in os.environ:
        return 'MPI did not start these ranks; start the script with mpirun, or with hvdrun --mpi'
    return 'it could not be initialised, or HOROVOD_CONTROLLER is gloo; HOROVOD_LOG_LEVEL=info says which'


def _built(feature):
    from horovod.common import _library
    return _library.built(feature)


def _enabled(feature):
    from horovod.common import _library
    return _library.enabled(feature)


def _join(rank_lists=(), mpi_comm=None, world_ranks=()):
    """hvd_init(). ValueError when the runtime cannot."""
    if 'HVD_AGENT' in os.environ:
        from horovod.common import _stacks
        _stacks.offer()
    if rank_lists or world_ranks or mpi_comm is not None:
        from horovod.common import _library
        _library.init(rank_lists, mpi_comm, world_ranks)
        return
    status = _native.call('init', None)
    if status != _native.OK:
        from horovod.common import _library
        raise _library.init_error(status)
    _native.note_joined()


def _leave():
    """hvd_shutdown(). Nothing happens when there is no world, or in a forked child."""
    if _native.handle is None or _native.is_forked_child():
        return
    status = _native.call('shutdown')
    if status not in (_native.OK, _native.FORKED):
        from horovod.common import _library
        raise _library.error(status)
    _native.note_left()
    _children.withdraw()


def _check_timeline(status):
    if status == 0:
        return
    from horovod.common import _library
    raise ValueError(_library.last_error(status))


def _shutdown_at_exit(pid):
    # A forked child inherits this handler with its parent's world, which it must not shut down.
    if os.getpid() == pid:
        try:
            _leave()
        except Exception:  # it is too late to do anything useful
            pass


_shared = None


def shared() -> HorovodBasics:
    """The one HorovodBasics of this process.

    Returns: A HorovodBasics.
    """
    global _shared
    if _shared is None:
        _shared = HorovodBasics()
    return _shared
