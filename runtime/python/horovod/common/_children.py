"""What the child processes of a rank know of its world, such as the workers of a DataLoader.

They are not ranks: they answer queries about places (rank(), size(), the process sets), and have no other part in the world.
A forked child has the memory of its rank. One that was started from scratch (by "spawn", "forkserver" or subprocess) finds in its
environment which process is the rank, and reads what that has written into a file in memory: so a fork server that is older
than an elastic world still knows that world. The environment has a copy, for children that cannot read the file.
"""

import os

from horovod.common import _native

VARIABLE = 'HVD_RANK_PROCESS'
PLACES = ('rank', 'size', 'local_rank', 'local_size', 'cross_rank', 'cross_size', 'is_homogeneous')
_FILE_NAME = 'hvd-places'

# Identifies the parent rank: a process with different values in these variables is a rank of another job.
_OF_HVDRUN = ('HVD_AGENT', 'HVD_SLOT')
_OF_OTHERS = ('HOROVOD_RANK', 'OMPI_COMM_WORLD_RANK', 'PMIX_NAMESPACE', 'PMIX_RANK', 'PMI_RANK', 'SLURM_JOB_ID',
              'SLURM_STEP_ID', 'SLURM_STEPID', 'SLURM_PROCID')

_file = None  # of a rank: its number, the same in all worlds, since a fork server inherited it
_own_sets = None  # {id: ranks} in a process that has joined a world, and in its forked children
_inherited = None  # _Inherited, or False: this process was not started by a rank


class _Inherited:
    """What a child that was started from scratch has found."""

    def __init__(self, pid, places, sets, alone):
        self.pid = pid
        self.places = places
        self.sets = sets
        self.alone = alone  # a world of one, without a launcher: one of its children may start another


def _launch():
    names = _OF_HVDRUN if 'HVD_AGENT' in os.environ else _OF_OTHERS
    return ','.join(os.environ.get(name, '').replace(' ', '_').replace('\n', '_') for name in names)


def _start_time(pid):
    """The start time in ticks since the machine started, which distinguishes a process from a later one with the same pid."""
    try:
        with open('/proc/{}/stat'.format(pid), 'rb') as stat:
            return stat.read().rpartition(b')')[2].split()[19].decode()
    except (OSError, IndexError):
        return '0'


def _text(places, sets):
    parts = ['{}={}'.format(name, value) for name, value in places.items()]
    parts += ['set={}:{}'.format(number, ','.join(map(str, ranks))) for number, ranks in sets.items()]
    return ' '.join(parts)


def _parse(text):
    places, sets = {}, {}
    for part in text.split():
        name, _, value = part.partition('=')
        if name == 'set':
            number, _, ranks = value.partition(':')
            sets[int(number)] = [int(rank) for rank in ranks.split(',') if rank]
        else:
            places[name] = int(value)
    if any(name not in places for name in PLACES):
        raise ValueError(text)
    return places, sets


def prepare():
    """Before a rank joins its first world: so that later its variable only changes, which moves no other variable."""
    os.environ.setdefault(VARIABLE, '')


def publish():
    """In a rank, when its world or the process sets of that have changed."""
    global _own_sets
    sets = {}
    if _native.call('process_set_ids', None, 0) > 1:
        from horovod.common import _library
        sets = {number: ranks for number, ranks in _library.process_sets().items() if number != 0}
    places = {name: _native.call(name) for name in PLACES}
    _write(_text(places, sets).encode())
    _own_sets = sets
    pid = os.getpid()
    value = '{} {} {} {}|{}'.format(pid, _start_time(pid), -1 if _file is None else _file, _launch(), _text(places, {}))
    if os.environ.get(VARIABLE) != value:
        os.environ[VARIABLE] = value


def _write(text):
    global _file
    try:
        new = os.memfd_create(_FILE_NAME)
        os.write(new, text)
        if _file is None:
            _file = new
        else:
            os.dup2(new, _file, False)  # in one write, so that no child reads half of it
            os.close(new)
    except (OSError, AttributeError):
        pass  # children read the environment


def withdraw():
    """In a rank that has left its world."""
    global _own_sets
    if _own_sets is not None:
        _own_sets = None
        os.environ.pop(VARIABLE, None)
        _write(b'')


def _text_of_live_rank(pid, started, file):
    """What the rank wrote last; '' if it has left its world, None if it cannot be read."""
    if file < 0 or _start_time(pid) != started:
        return None
    try:
        with open('/proc/{}/fd/{}'.format(pid, file)) as text:
            return text.read()
    except OSError:
        return None


def _is_of_multiprocessing():
    import sys
    process = sys.modules.get('multiprocessing.process')
    return process is not None and process.parent_process() is not None


def _find():
    value = os.environ.get(VARIABLE)
    if not value:
        return False
    try:
        head, _, facts = value.partition('|')
        pid, started, file, launch = head.split(' ')
        pid, file = int(pid), int(file)
    except ValueError:
        return False
    if launch != _launch() or (pid == os.getpid() and started == _start_time(pid)):
        return False
    alone = not launch.strip(',')
    if alone and not _is_of_multiprocessing():  # an unrelated program that was started by one that uses horovod
        return False
    live = _text_of_live_rank(pid, started, file)
    try:
        places, sets = _parse(facts if live is None else live)
    except ValueError:
        return False
    return _Inherited(pid, places, sets, alone)


def inherited():
    """What this process knows of the world of the rank that started it; None in a rank, and in a forked child."""
    global _inherited
    if _inherited is None:
        _inherited = _find()
    return _inherited or None


def is_child():
    """Whether this process belongs to a rank without being it."""
    return _native.is_forked_child() or inherited() is not None


def place(name):
    """A child's answer to a query that its own runtime cannot answer; None if there is none."""
    known = inherited()
    return None if known is None else known.places.get(name)


def process_sets():
    """{id: ranks} as the rank has them, in a child; None in another process."""
    if _native.is_forked_child():
        sets = _own_sets or {}
        size = _native.call('size')
    else:
        known = inherited()
        if known is None:
            return None
        sets, size = known.sets, known.places['size']
    return dict([(0, list(range(size)))] + sorted(sets.items()))


def refusal():
    """The exception for calls that only a rank can make; None in a process that is not a child of one."""
    if _native.is_forked_child():
        return RuntimeError(_native.FORKED_SENTENCE)
    known = inherited()
    if known is None:
        return None
    return RuntimeError(
        'This process was started by rank {} (process {}) and is no rank itself: it can ask for rank(), size() and other '
        'places, but hvd.init() and collectives belong into the process of the rank.'.format(
            known.places['rank'], known.pid))


def refuse_to_join():
    """Called by init(): raises if this process's place in the world belongs to the rank that started it."""
    global _inherited
    known = inherited()
    if known is None:
        return
    if not known.alone:
        raise refusal()
    _inherited = False


_native.place_in_child, _native.refusal_in_child = place, refusal
