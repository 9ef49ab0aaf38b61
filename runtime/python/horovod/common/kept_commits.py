"""The commits that outlive all workers of a host: with hvdrun --keep-commits they are also in memory that the host's agent holds.

On each host the rank with the local rank 0 writes. What is unpickled here was written by a worker of the same job: the memory has
no name and is handed down to the workers of one agent only.
"""

import io
import os
import pickle
import re
import struct
import sys
import zlib

from horovod.common import _native
from horovod.common.commit_store import CommitRefused, CommitStore

_LENGTH = struct.Struct('<Q')
_ALIGNED = 64


class _Pickler(pickle.Pickler):
    """Leaves large buffers out of the stream, also those of what the state's own function reduces."""

    def __init__(self, reduce, *args, **kwargs):
        super(_Pickler, self).__init__(*args, **kwargs)
        self._reduce = reduce

    def reducer_override(self, value):
        return self._reduce(value)


def _padded(length):
    return -(-length // _ALIGNED) * _ALIGNED


def packed(value, reduce):
    """The pieces of a value, whose buffers are not copied: lengths, the pickle and the buffers, each from a multiple of 64 bytes on.

    Args:
        value: What is to be kept.
        reduce: As pickle.Pickler.reducer_override.
    """
    stream, buffers = io.BytesIO(), []
    _Pickler(reduce, stream, 5, buffer_callback=buffers.append).dump(value)
    parts = [stream.getbuffer()] + [buffer.raw() for buffer in buffers]
    lengths = b''.join(_LENGTH.pack(len(part)) for part in parts)
    pieces = []
    for part in [_LENGTH.pack(len(parts)) + lengths] + parts:
        pieces.append(part)
        pieces.append(bytes(_padded(len(part)) - len(part)))
    return pieces


def unpacked(contents):
    """The value, whose buffers are in `contents`, a bytearray."""
    count, = _LENGTH.unpack_from(contents)
    lengths = [_LENGTH.unpack_from(contents, _LENGTH.size * (1 + index))[0] for index in range(count)]
    memory, at, parts = memoryview(contents), _padded(_LENGTH.size * (1 + count)), []
    for length in lengths:
        parts.append(memory[at:at + length])
        at += _padded(length)
    return pickle.loads(parts[0], buffers=parts[1:])


def _descriptor(text):
    """The descriptor of HVD_COMMITS, which has also the device and the number of its file, and the size of that."""
    descriptor, device, number = map(int, text.split(','))
    try:
        found = os.fstat(descriptor)
    except OSError:
        found = None
    if found is None or (found.st_dev, found.st_ino) != (device, number):
        raise CommitRefused('descriptor {} of the command that hvdrun started did not reach this process; let what starts the script '
                            'hand it down'.format(descriptor))
    os.set_inheritable(descriptor, False)  # processes started by the script do not need it
    return descriptor, found.st_size


class KeptCommits:
    """The part of one process in the commits of its host.

    Args:
        text: The value of HVD_COMMITS.
    """

    def __init__(self, text):
        self._reasons_printed = set()
        self._store = None
        self._writes = False
        self._generation = None  # of the present world
        self._number = 0  # of the last commit in it
        self._other_commit = None  # (generation, number) of a commit of another state
        self._memory = self._failure = None
        try:
            self._memory = _descriptor(text)
        except CommitRefused as error:
            self._failure = error

    def _warn(self, what, why):
        """One line for each reason."""
        reason = re.sub(r'\d+', '', str(why))
        if reason not in self._reasons_printed:
            self._reasons_printed.add(reason)
            print('hvdrun: --keep-commits: {}, because {}'.format(what, why), file=sys.stderr, flush=True)

    def begin(self, generation, writes):
        """A world begins.

        Args:
            generation: Its generation.
            writes: This rank is the one of its host that keeps commits.
        """
        if generation != self._generation:
            self._generation, self._number = generation, 0
        self._writes = writes
        if not writes:
            if self._store is not None:
                self._store.release()
        elif self._failure is not None:
            self._warn('no commits are kept', self._failure)
        elif self._store is None:
            try:
                self._store = CommitStore(*self._memory)
            except (CommitRefused, OSError) as error:
                self._failure = error
                self._warn('no commits are kept', error)

    def newest(self, owner):
        """The newest commit of this host, if this process is the one that reads it: (generation, number), or None.

        Args:
            owner: The name of the state, bytes.
        """
        self._other_commit = None
        if self._store is None or not self._writes:
            return None
        tag = self._store.newest_tag()
        if tag is None:
            return None
        if tag[2] != zlib.crc32(owner):
            self._other_commit = tag[:2]
            return None
        return tag[:2]

    def warn_of_other_state(self):
        """Reports the newest commit if newest() has not returned it. For a world in which no rank has the state."""
        if self._other_commit is not None:
            self._warn('commit {1} of generation {0} is not restored'.format(*self._other_commit),
                      'it is not of the state that this call of hvd.elastic.run begins with')

    def contents(self):
        """Those of the newest commit."""
        return self._store.newest()[1]

    def keep(self, owner, value, reduce):
        """Keeps the commit that was made.

        Args:
            owner: The name of the state, bytes.
            value: A function that returns what is to be kept.
            reduce: As pickle.Pickler.reducer_override.
        """
        self._number += 1
        if self._store is None or not self._writes:
            return
        try:
            self._store.write(self._generation, self._number, owner, packed(value(), reduce))
        except (CommitRefused, OSError, ValueError, BufferError) as error:
            why = error
        except (pickle.PicklingError, AttributeError, TypeError, NotImplementedError) as error:
            why = 'a value of the state cannot be pickled: {}'.format(error)
        else:
            return
        self._warn('commit {} of generation {} is not kept'.format(self._number, self._generation), why)


_shared = None


def shared():
    """That of this process; None if hvdrun keeps none. Not for forked children."""
    global _shared
    if _shared is None:
        text = os.environ.get('HVD_COMMITS')
        if not text or not _native.launcher_decides():
            return None
        _shared = os.getpid(), KeptCommits(text)
    return _shared[1] if _shared[0] == os.getpid() else None
