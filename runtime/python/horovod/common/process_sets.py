"""Process sets: groups of ranks that run collectives among themselves. Only the world is available yet."""

from horovod.common.util import is_iterable


class ProcessSet(object):
    """A set of ranks. It has an id only while it is registered with the runtime."""

    process_set_id = None
    ranks = None
    mpi_comm = None

    def __init__(self, ranks_or_comm):
        if is_iterable(ranks_or_comm):
            ranks = list(ranks_or_comm)
            for rank in ranks:
                if isinstance(rank, bool) or not isinstance(rank, int):
                    raise ValueError('A process set is made of ranks, which are integers, but {!r} was given.'
                                     .format(rank))
            self.ranks = sorted(ranks)
        else:
            raise ValueError('A process set is made of a list of ranks; {!r} is none, and communicators of mpi4py '
                             'need a build with MPI.'.format(ranks_or_comm))

    def _invalidate(self):
        self.process_set_id = None

    def size(self):
        """Number of ranks in the set, None while it is not registered."""
        if self.process_set_id is None:
            return None
        return _basics._process_set_size(self.process_set_id)

    def rank(self):
        """Rank of this process within the set, None while the set is not registered."""
        if self.process_set_id is None:
            return None
        return _basics._process_set_rank(self.process_set_id)

    def included(self):
        """Whether this process is in the set; None when its ranks are not known."""
        if self.ranks is None:
            return None
        return _basics.rank() in self.ranks

    def __str__(self):
        return 'ProcessSet(process_set_id={}, ranks={}, mpi_comm={})'.format(
            self.process_set_id, self.ranks, self.mpi_comm)

    __repr__ = __str__


class _GlobalProcessSet(ProcessSet):
    """The world. Its ranks are empty until init()."""

    def __init__(self):
        super(_GlobalProcessSet, self).__init__([])
        self.process_set_id = 0

    def _invalidate(self):
        pass


global_process_set = _GlobalProcessSet()
_basics = None


def _setup(basics):
    """Called once by each adapter with its HorovodBasics; they all speak to the same runtime."""
    global _basics
    _basics = basics


def _init_process_sets(process_sets):
    """Called after each init(): the world may have another size than last time."""
    global_process_set.ranks = list(range(_basics.size()))


def _temp_process_set_object(process_set_id):
    """A ProcessSet with this id for code that only has the number."""
    if process_set_id == 0:
        return global_process_set
    temporary = ProcessSet.__new__(ProcessSet)
    temporary.process_set_id = process_set_id
    return temporary


def add_process_set(process_set):
    """Registers a set on all ranks. Not available yet."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    ranks = process_set.ranks
    if len(set(ranks)) != len(ranks):
        raise ValueError('A process set has each rank once, but {} names one twice.'.format(ranks))
    _basics.size()  # ValueError before init()
    _basics._add_process_set_impl(ranks)
    return process_set


def remove_process_set(process_set):
    """Removes a registered set on all ranks; False when it is not registered, or is the world."""
    _basics.size()
    if process_set.process_set_id is None or process_set.process_set_id == 0:
        return False
    return _basics._remove_process_set_impl(process_set.process_set_id) is not None
