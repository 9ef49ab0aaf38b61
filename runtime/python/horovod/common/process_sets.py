"""Process sets: groups of ranks that run collectives among themselves, each beside the others.

A set is registered on all ranks of the world: with init(process_sets=[...]), or at any time with add_process_set()
when the job allows it (dynamic process sets).
"""

from __future__ import annotations

import os
import sys

from horovod.common import _native
from horovod.common.util import is_iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Sequence, Union

_registered = []  # the ProcessSet objects that have an id
_given = None  # the last list passed to hvd.init()
_given_comm = None  # the communicator or ranks passed to it as the world

DYNAMIC = 'HOROVOD_DYNAMIC_PROCESS_SETS'


def _built_with_mpi():
    from horovod.common import _library
    return _library.built('mpi')


def _ids_and_ranks():
    """{id: ranks} of the sets of the world; ValueError before init()."""
    from horovod.common import _children
    known = _children.process_sets()
    if known is None:
        from horovod.common import _library
        known = _library.process_sets()
    return known


def _size_of(process_set_id):
    _native.query('rank')  # ValueError before init()
    size = _native.call('process_set_size', process_set_id)
    if size < 0:
        from horovod.common import _children
        size = len((_children.process_sets() or {}).get(process_set_id, ()))
        if size == 0:
            raise ValueError('There is no process set {}.'.format(process_set_id))
    return size


def _rank_in(process_set_id):
    _size_of(process_set_id)  # ValueError when there is no such set
    rank = _native.call('process_set_rank', process_set_id)
    if rank < 0:
        from horovod.common import _children
        ranks = (_children.process_sets() or {}).get(process_set_id, ())
        world_rank = _native.query('rank')
        if world_rank in ranks:
            return ranks.index(world_rank)
        raise ValueError('This process is not in process set {}.'.format(process_set_id))
    return rank


def _is_communicator(value):
    return type(value).__module__.split('.')[0] == 'mpi4py'


class ProcessSet:
    """A group of ranks that runs collectives among its members.

    It can be used once it is registered: by hvd.init(process_sets=[...]) or hvd.add_process_set().
    In an elastic job, where the number of ranks changes, a set given to hvd.init() has in each world
    those of its ranks that exist there; when there are none, it is not registered. Other sets are
    to be added again in each world.
    Attributes: `ranks` (its ranks in the world, ascending) and `process_set_id` (its number, None
    while it is not registered).

    Args:
        ranks_or_comm: A list of ranks of the world, or a communicator of mpi4py in a build with MPI,
            whose ranks are known once the set is registered. Ranks may give different
            communicators in the same place, as Split() makes them: each rank has its own set then. A
            process that is in none gives MPI.COMM_NULL.

    Raises:
        ValueError: ranks_or_comm is neither.

    Example:

        even = hvd.ProcessSet([0, 2])
        hvd.init(process_sets=[even])
        if even.included():
            hvd.allreduce(x, process_set=even)

        comm = MPI.COMM_WORLD
        mine = hvd.ProcessSet(comm.Split(comm.rank % 2, comm.rank))
        hvd.init(comm, process_sets=[mine])
    """

    process_set_id = None
    ranks = None
    mpi_comm = None
    _definition = None  # the ranks in its definition, of which only some may exist in the current world

    def __init__(self, ranks_or_comm: Any) -> None:
        if is_iterable(ranks_or_comm):
            ranks = list(ranks_or_comm)
            for rank in ranks:
                if isinstance(rank, bool) or not isinstance(rank, int):
                    raise ValueError('A process set is made of ranks, which are integers, but {!r} was given.'
                                     .format(rank))
            self.ranks = sorted(ranks)
            self._definition = self.ranks
        elif _is_communicator(ranks_or_comm) and _built_with_mpi():
            self.mpi_comm = ranks_or_comm
        else:
            raise ValueError('A process set is made of a list of ranks; {!r} is none, and communicators of mpi4py '
                             'need a build with MPI.'.format(ranks_or_comm))

    def _register(self, process_set_id):
        self.process_set_id = process_set_id
        if self not in _registered:
            _registered.append(self)

    def _invalidate(self):
        self.process_set_id = None
        if self in _registered:
            _registered.remove(self)

    def size(self) -> Optional[int]:
        """Number of ranks in the set.

        Returns: An int; None while the set is not registered.
        """
        if self.process_set_id is None:
            return None
        return _size_of(self.process_set_id)

    def rank(self) -> Optional[int]:
        """Rank of this process within the set.

        Returns: An int from 0; None while the set is not registered.

        Raises:
            ValueError: This process is not in the set.
        """
        if self.process_set_id is None:
            return None
        return _rank_in(self.process_set_id)

    def included(self) -> Optional[bool]:
        """Returns whether this process is in the set.

        Returns: True or False; None when the ranks of the set are not known.

        Raises:
            ValueError: hvd.init() has not been called.
        """
        if self.ranks is None:
            return None
        return _native.query('rank') in self.ranks

    def __str__(self):
        return 'ProcessSet(process_set_id={}, ranks={}, mpi_comm={})'.format(
            self.process_set_id, self.ranks, self.mpi_comm)

    __repr__ = __str__


class _GlobalProcessSet(ProcessSet):
    """The world. It has no ranks until init()."""

    process_set_id = 0

    def __init__(self):
        pass

    @property
    def ranks(self):
        size = _native.call('size')
        if size < 0:
            from horovod.common import _children
            size = _children.place('size') or 0
        return list(range(size))

    def _invalidate(self):
        pass


global_process_set = _GlobalProcessSet()


def _setup(basics):
    """For code that has a HorovodBasics of its own. All of them are the same runtime, so nothing is kept of it."""


# ---- communicators


def _any_communicator(process_sets):
    return any(process_set.mpi_comm is not None for process_set in process_sets)


def _world_communicator():
    """A communicator whose ranks are those of the world."""
    from mpi4py import MPI
    size, rank = _native.query('size'), _native.query('rank')
    worlds = [MPI.COMM_WORLD]
    if _is_communicator(_given_comm):
        worlds.insert(0, _given_comm)
    elif _given_comm is not None and 0 < len(_given_comm) < MPI.COMM_WORLD.Get_size():
        worlds.insert(0, MPI.COMM_WORLD.Create_group(MPI.COMM_WORLD.Get_group().Incl(sorted(_given_comm))))
    for world in worlds:
        if world != MPI.COMM_NULL and (world.Get_size(), world.Get_rank()) == (size, rank):
            return world
    raise ValueError('A process set made of a communicator needs ranks that MPI started, but the world of mpi4py has {} '
                     'ranks and this job has {}; start the script with mpirun or hvdrun --mpi, or make the set of a list of '
                     'ranks.'.format(MPI.COMM_WORLD.Get_size(), size))


def _ranks_of_communicator(comm, world):
    """The ranks of a communicator within the world, ascending."""
    from mpi4py import MPI
    if not isinstance(comm, MPI.Comm):
        raise ValueError('A process set takes a communicator of mpi4py; this is none: {!r}.'.format(comm))
    if comm.Is_inter():
        raise ValueError('A process set takes an intracommunicator of mpi4py; this one joins two groups: {!r}.'.format(comm))
    group = comm.Get_group()
    ranks = MPI.Group.Translate_ranks(group, list(range(group.Get_size())), world.Get_group())
    if MPI.UNDEFINED in ranks:
        raise ValueError('A communicator of {} ranks was given for a process set, but only {} of them are in the world of '
                         'hvd.init().'.format(len(ranks), sum(rank != MPI.UNDEFINED for rank in ranks)))
    return sorted(ranks)


def _own_lists(process_sets, world):
    """The ranks of each set as this rank knows them, None for those that it is not in; and why that cannot be, or None."""
    from mpi4py import MPI
    try:
        return [process_set._definition if process_set.mpi_comm is None
                else None if process_set.mpi_comm == MPI.COMM_NULL
                else _ranks_of_communicator(process_set.mpi_comm, world) for process_set in process_sets], None
    except ValueError as error:
        return [], str(error)


def _resolve_communicators(process_sets):
    """Gives sets made of communicators their ranks, and returns the ranks of all sets of all ranks. All ranks come here
    together, and to the same error."""
    world = _world_communicator()
    answers = world.allgather(_own_lists(process_sets, world))
    for rank, (lists, why) in enumerate(answers):
        if why is not None:
            raise ValueError('rank {}: {}'.format(rank, why))
        if len(lists) != len(process_sets):
            raise ValueError('rank {} gave {} process sets, and rank {} gave {}; give the same number on every rank.'.format(
                rank, len(lists), world.Get_rank(), len(process_sets)))
    rank_lists, positions = [], []
    for position, process_set in enumerate(process_sets):
        given = [lists[position] for lists, _ in answers]
        distinct = [ranks for number, ranks in enumerate(given) if ranks is not None and ranks not in given[:number]]
        for ranks in distinct:
            others = [rank for rank in ranks if given[rank] != ranks]
            if others:
                raise ValueError('The process set at position {} has the ranks {} on rank {}, but {} on rank {}; give all of '
                                 'its ranks the same communicator.'.format(position, ranks, given.index(ranks),
                                                                          given[others[0]], others[0]))
        if not distinct:
            raise ValueError('The process set at position {} is MPI.COMM_NULL on every rank.'.format(position))
        if process_set.mpi_comm is not None:
            own = given[world.Get_rank()]
            process_set.ranks = process_set._definition = own or (distinct[0] if len(distinct) == 1 else None)
        rank_lists += distinct
        positions += [position] * len(distinct)
    _check_doubles(rank_lists, positions)
    return rank_lists


def _id_of_communicator(comm):
    """The id of the registered set of its ranks; ValueError when there is none."""
    ranks = _ranks_of_communicator(comm, _world_communicator())
    for number, known in _ids_and_ranks().items():
        if known == ranks:
            return number
    raise ValueError('There is no process set of the ranks {} of this communicator.'.format(ranks))


# ---- init()


def _started_by_mpi():
    """Whether ranks are numbered by MPI, which can make a world of some of them."""
    if os.environ.get('HVD_AGENT'):  # a worker of hvdrun, whatever else is in its environment
        return _is_mpi_job_of_hvdrun()
    return bool(os.environ.get('OMPI_COMM_WORLD_SIZE')) or os.environ.get('HOROVOD_CONTROLLER', '').lower() == 'mpi'


def _is_mpi_job_of_hvdrun():
    """Whether hvdrun --mpi started this rank."""
    return 'HVD_AGENT' in os.environ and os.environ.get('HOROVOD_CONTROLLER') == 'mpi'


def _check_comm(comm):
    """Gives the communicator's address or None, and the ranks of the world, () for all of them."""
    ranks = list(comm) if is_iterable(comm) else None
    if ranks is not None and all(isinstance(rank, int) for rank in ranks):
        ranks.sort()
        if _started_by_mpi():
            return None, ranks
        size = os.environ.get('HOROVOD_SIZE') or '1'
        if ranks != list(range(len(ranks))) or str(len(ranks)) not in ('0', size):
            raise NotImplementedError(
                'hvd.init(comm={}) asks for a world of other ranks than the {} that were started, which needs ranks '
                'that mpirun started; call hvd.init() and make a ProcessSet of these ranks.'.format(ranks, size))
        return None, ()
    if not _is_communicator(comm):
        raise ValueError('hvd.init(comm=...) takes a list of ranks or a communicator of mpi4py; this is neither: {!r}.'
                         .format(comm))
    if not _built_with_mpi():
        raise ValueError('hvd.init(comm=...) takes a communicator of mpi4py only with a runtime that was built with '
                         'MPI, which this one was not; call hvd.init() without it.')
    from mpi4py import MPI
    if not isinstance(comm, MPI.Comm):
        raise ValueError('hvd.init(comm=...) takes a communicator of mpi4py; this is none: {!r}.'.format(comm))
    return MPI._addressof(comm), ()


def _check_list(process_sets):
    """The sets as a list."""
    if isinstance(process_sets, str) or not is_iterable(process_sets):
        raise ValueError('hvd.init(process_sets=...) takes a list of ProcessSet or "dynamic", but {!r} was given.'
                         .format(process_sets))
    process_sets = list(process_sets)
    for process_set in process_sets:
        if not isinstance(process_set, ProcessSet):
            raise ValueError('hvd.init(process_sets=...) takes a list of ProcessSet, but {!r} is in it.'
                             .format(process_set))
    return process_sets


def _first_double(rank_lists):
    """Position of the first list that is equal to one before it, or None."""
    for position, ranks in enumerate(rank_lists):
        if ranks in rank_lists[:position]:
            return position
    return None


def _definitions(process_sets):
    return [process_set._definition for process_set in process_sets]


def _check_doubles(rank_lists, positions=None):
    """positions: those of the sets that the lists are of, where a set of communicators has several."""
    double = _first_double(rank_lists)
    if double is not None:
        raise ValueError('hvd.init(process_sets=...) got the ranks {} twice, the second time at position {}; hvd is '
                         'initialized, without the sets.'
                         .format(rank_lists[double], double if positions is None else positions[double]))


def _is_job_of_mpirun(comm):
    """Whether the communicator has all ranks of a job of hvdrun --mpi, in their order: then it is the world."""
    if not _is_mpi_job_of_hvdrun():
        return False
    mpi = sys.modules.get('mpi4py.MPI')
    if mpi is None or not isinstance(comm, mpi.Comm):
        return False
    return mpi.Comm.Compare(comm, mpi.COMM_WORLD) in (mpi.IDENT, mpi.CONGRUENT)


def _check_arguments(comm, process_sets):
    """The arguments of hvd.init(), checked: the process sets that _init_process_sets() takes, then the ranks of each of
    them, the communicator's address and the ranks of the world that hvd_init() takes."""
    global _given_comm
    _given_comm = comm
    address, ranks = (None, ()) if comm is None or _is_job_of_mpirun(comm) else _check_comm(comm)
    rank_lists = []
    if isinstance(process_sets, str) and process_sets.lower() == 'dynamic':
        os.environ[DYNAMIC] = '1'
        process_sets = None
    elif process_sets is not None:
        process_sets = _check_list(process_sets)
        # Sets defined by communicators are created once the world exists.
        if not _any_communicator(process_sets) and _first_double(_definitions(process_sets)) is None:
            rank_lists = _definitions(process_sets)
    return process_sets, rank_lists, address, ranks


def given_to_init():
    """The process sets for a new world: those that hvd.init() was given last.

    Returns: A list of ProcessSet, or None.
    """
    return _given


def _restrict_to_world(process_sets):
    """In an elastic world the runtime has of each set the ranks that exist, see hvd_init_options."""
    size = _native.query('size')
    for process_set in process_sets:
        process_set.ranks = [rank for rank in process_set._definition if rank < size]


def _init_process_sets(process_sets):
    """Called after each init(): gives the sets their ids, and takes them from those of an earlier world."""
    global _given
    elastic = _native.call('elastic') == 1
    if process_sets and elastic:
        _restrict_to_world(process_sets)
    known = {}
    if _registered or process_sets:
        known = {tuple(ranks): number for number, ranks in _ids_and_ranks().items()}
    for process_set in list(_registered):
        if known.get(tuple(process_set.ranks)) != process_set.process_set_id:
            process_set._invalidate()
    if not process_sets:
        return
    if _any_communicator(process_sets):
        rank_lists = _resolve_communicators(process_sets)
    else:
        _check_doubles(_definitions(process_sets))
        rank_lists = [process_set.ranks for process_set in process_sets if process_set.ranks or not elastic]
    _given = process_sets
    for ranks in rank_lists:
        if tuple(ranks) not in known:  # of a communicator, or hvd was initialized before this call
            from horovod.common import _library
            known[tuple(ranks)] = _library.add_process_set(ranks)
    for process_set in process_sets:
        if process_set.ranks in rank_lists:
            process_set._register(known[tuple(process_set.ranks)])
        else:
            process_set._invalidate()


# ---- at any time


def _check_dynamic():
    value = os.environ.get(DYNAMIC, '').strip().lower()
    if value in ('1', 'true', 'yes', 'on'):
        return
    if value not in ('', '0', 'false', 'no', 'off'):
        raise ValueError('The environment variable {} is {!r}, which is neither 1 nor 0.'.format(DYNAMIC, value))
    raise ValueError('Process sets can be added and removed only while dynamic process sets are on; set {}=1, or call '
                     'hvd.init(process_sets="dynamic").'.format(DYNAMIC))


def _refuse_in_children():
    from horovod.common import _children
    refusal = _children.refusal()
    if refusal is not None:
        raise refusal


def _add(ranks):
    """Registers a set on all ranks: its id, or None when there is such a set already."""
    ranks = sorted(ranks)
    known = _ids_and_ranks()  # ValueError before init()
    _check_dynamic()
    if ranks in known.values():
        return None
    from horovod.common import _children, _library
    number = _library.add_process_set(ranks)
    _children.publish()
    return number


def _remove(process_set_id):
    """Removes a set on all ranks: its id, or None when there is no such set."""
    _refuse_in_children()
    known = _ids_and_ranks()
    _check_dynamic()
    if process_set_id not in known:
        return None
    from horovod.common import _children, _library
    _library.remove_process_set(process_set_id)
    _children.publish()
    return process_set_id


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Registers a process set while the job runs.

    Every rank of the world must call it, with the same ranks. It needs
    hvd.init(process_sets='dynamic') or HOROVOD_DYNAMIC_PROCESS_SETS=1.

    Args:
        process_set: A ProcessSet, or a list of ranks.

    Returns: The ProcessSet, with its process_set_id.

    Raises:
        ValueError: Dynamic process sets are off, the ranks are wrong, hvd.init() has not been
            called, or there is a set of these ranks.
        HorovodInternalError: The ranks asked for different sets, or a rank died.

    Example:

        half = hvd.add_process_set([0, 1])
    """
    _refuse_in_children()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.mpi_comm is not None:
        _check_dynamic()
        rank_lists = _resolve_communicators([process_set])
    else:
        rank_lists = [process_set.ranks]
    known = _ids_and_ranks().values()
    for ranks in rank_lists:
        if len(set(ranks)) != len(ranks):
            raise ValueError('A process set has each rank once, but {} names one twice.'.format(ranks))
        if ranks in known:
            _check_dynamic()
            raise ValueError('There is a process set of the ranks {} already.'.format(ranks))
    for ranks in rank_lists:
        number = _add(ranks)
        if ranks == process_set.ranks:
            process_set._register(number)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a registered process set while the job runs; operations pending on it fail.

    Every rank of the world must call it, with the same set. It needs dynamic process sets, as
    add_process_set() does.

    Args:
        process_set: A ProcessSet.

    Returns: True; False when the set is not registered or is the world.

    Raises:
        ValueError: Dynamic process sets are off, or hvd.init() has not been called.
        HorovodInternalError: The ranks asked for different sets, or a rank died.
    """
    number = process_set.process_set_id
    if number is None or number == 0:
        _native.query('size')  # ValueError before init()
        return False
    removed = _remove(number) is not None
    process_set._invalidate()
    return removed


def _temp_process_set_object(process_set_id):
    """A ProcessSet with this id for code that only has the number."""
    if process_set_id == 0:
        return global_process_set
    temporary = ProcessSet.__new__(ProcessSet)
    temporary.process_set_id = process_set_id
    temporary.ranks = _ids_and_ranks().get(process_set_id)
    return temporary
