"""Two slots of shared memory for the commits of an elastic job: the newest whole one can be read after its writer was killed.

    0      the record of slot 0 | 64: the record of slot 1 | 4096: slot 0 | slot 1, half of the rest each

A commit goes to the slot that does not hold the newest one: its record is erased, the contents are copied, and the record with
their checksum is written last. So whatever byte a writer is killed at, the other slot is as it was. The checksum of a large commit
is computed by a thread, so the writer waits for little more than a memcpy; killed before the thread is done, it leaves the commit before.
"""

import _thread
import atexit
import fcntl
import os
import struct
import zlib

_MAGIC = b'HVDCOMM1'
_RECORD = struct.Struct('<8sQQQII')  # magic, generation, number, bytes, checksums of the owner's name and of the contents
_SUM = struct.Struct('<I')  # of the record before it
_RECORD_BYTES = 64
_PAGE = 4096
_LARGE = 256 << 10  # from this size in bytes on a thread computes the checksum


class CommitRefused(Exception):
    """A commit cannot be kept; earlier ones are as they were."""


def available_memory():
    """Bytes that this host, or the cgroup of this process, can still allocate; None if the kernel does not say."""
    found = []
    try:
        with open('/proc/meminfo') as file:
            found = [int(line.split()[1]) << 10 for line in file if line.startswith('MemAvailable:')]
        with open('/proc/self/cgroup') as file:
            group = next((line[3:].strip() for line in file if line.startswith('0::')), '/').strip('/')
    except OSError:
        group = ''
    while group:
        try:
            texts = []
            for name in ('memory.max', 'memory.current', 'memory.stat'):
                with open(os.path.join('/sys/fs/cgroup', group, name)) as file:
                    texts.append(file.read())
            if texts[0].strip() != 'max':
                cache = sum(int(line.split()[1]) for line in texts[2].splitlines() if line.startswith('inactive_file '))
                found.append(max(int(texts[0]) - int(texts[1]) + cache, 0))
        except OSError:
            pass
        group = os.path.dirname(group)
    return min(found, default=None)


class CommitStore:
    """The commits of one host. One process writes at a time; it holds a lock that ends with it.

    Args:
        descriptor: Of shared memory, which stays open as long as this object is used.
        size: Its size in bytes, the most that commits may use.
    """

    def __init__(self, descriptor, size):
        self._descriptor = descriptor
        self._room = max(size - _PAGE, 0) // 2 // _PAGE * _PAGE
        if not self._room:
            raise CommitRefused('{} bytes are too few for two commits; the least is {}'.format(size, 3 * _PAGE))
        import mmap  # not needed to import horovod.torch
        self._memory = mmap.mmap(descriptor, size)
        self._locked = False
        self._slot = None  # of the newest commit, once this process writes
        self._tag = (0, 0)
        self._reserved = [0, 0]  # bytes of each slot
        self._sealing = None  # (the lock held by the thread that completes the last commit, this process)
        atexit.register(self.wait)

    def close(self):
        """Ends the writing of this process; what was kept stays."""
        self.release()
        atexit.unregister(self.wait)
        self._memory.close()

    def wait(self):
        """Waits until the last commit can be read."""
        if self._sealing is not None and self._sealing[1] == os.getpid():  # a forked child does not have that thread
            with self._sealing[0]:
                self._sealing = None

    def release(self):
        """Lets another process write."""
        self.wait()
        if self._locked:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
        self._locked = False

    def newest_tag(self):
        """(generation, number, checksum of the owner's name) of the newest commit whose contents are whole, or None."""
        self.wait()
        found = self._newest()
        return None if found is None else found[0]

    def newest(self):
        """As newest_tag(), with a copy of the contents: (tag, contents), or None."""
        self.wait()
        found = self._newest()
        if found is None:
            return None
        tag, slot, length = found
        start = self._start(slot)
        with memoryview(self._memory) as memory:
            return tag, bytearray(memory[start:start + length])

    def write(self, generation, number, owner, pieces):
        """Keeps a commit instead of the older of the two.

        Args:
            generation: Of the world that made it.
            number: Which one it is of that generation.
            owner: The name of the state that it is of, bytes.
            pieces: The contents: objects with byte buffers, in order.

        Raises:
            CommitRefused: It has no room, or another process writes.
            ValueError: It is not newer than the newest that is kept.
        """
        self.wait()
        self._begin()
        if (generation, number) <= self._tag:
            raise ValueError('commit {} of generation {} is not newer than commit {} of generation {}, which is kept'.format(
                number, generation, self._tag[1], self._tag[0]))
        pieces = [memoryview(piece).cast('B') for piece in pieces]
        length = sum(len(piece) for piece in pieces)
        if length > self._room:
            raise CommitRefused('a commit of {} bytes does not fit: two of at most {} are kept'.format(length, self._room))
        slot = 1 if self._slot == 0 else 0
        start = at = self._start(slot)
        self._reserve(slot, length)
        self._put(slot * _RECORD_BYTES, bytes(_RECORD_BYTES))
        for piece in pieces:
            self._put(at, piece)
            at += len(piece)
        fields = _MAGIC, generation, number, length, zlib.crc32(owner)
        self._slot, self._tag = slot, (generation, number)
        if length < _LARGE or not self._seal_beside(slot, fields):
            self._seal(slot, fields)

    def _seal_beside(self, slot, fields):
        """Has a thread seal; False if none can be started. threading.Thread would wait until the thread runs."""
        lock = _thread.allocate_lock()

        def seal():
            try:
                self._seal(slot, fields)
            finally:
                lock.release()

        lock.acquire()
        try:
            _thread.start_new_thread(seal, ())
        except RuntimeError:
            return False
        self._sealing = lock, os.getpid()
        return True

    def _seal(self, slot, fields):
        """Writes the record of a commit that is there."""
        start = self._start(slot)
        with memoryview(self._memory) as memory, memory[start:start + fields[3]] as contents:
            record = _RECORD.pack(*fields, zlib.crc32(contents))
        self._put(slot * _RECORD_BYTES, record + _SUM.pack(zlib.crc32(record)))

    def _begin(self):
        if self._locked:
            return
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise CommitRefused('another process of this host writes commits') from None
        self._locked = True
        found = self._newest()
        self._tag, self._slot = (found[0][:2], found[1]) if found else ((0, 0), None)
        self._reserved = [self._written(slot) for slot in (0, 1)]

    def _written(self, slot):
        """The bytes from the beginning of a slot on that have memory."""
        start = self._start(slot)
        try:
            return min(os.lseek(self._descriptor, start, os.SEEK_HOLE) - start, self._room)
        except OSError:
            return 0

    def _reserve(self, slot, length):
        """Has the pages of a commit, so that a store into them cannot end the process by SIGBUS."""
        more = length - self._reserved[slot]
        if more <= 0:
            return
        available = available_memory() if more >= _LARGE else None
        if available is not None and more > available // 2:
            raise CommitRefused('it needs {} MiB more of shared memory, and half of the {} MiB that are available is the most '
                                'that is used for it'.format(-(-more >> 20), available >> 20))
        try:
            os.posix_fallocate(self._descriptor, self._start(slot), length)
        except OSError as error:
            raise CommitRefused('there is no memory for a commit of {} bytes: {}'.format(length, error.strerror)) from None
        self._reserved[slot] = length

    def _put(self, at, piece):
        self._memory[at:at + len(piece)] = piece

    def _start(self, slot):
        return _PAGE + slot * self._room

    def _newest(self):
        found = [entry for entry in map(self._read, (0, 1)) if entry is not None]
        return max(found, default=None)

    def _read(self, slot):
        """((generation, number, owner), slot, bytes), or None if the commit of the slot is not whole."""
        at = slot * _RECORD_BYTES
        record = self._memory[at:at + _RECORD.size]
        if self._memory[at + _RECORD.size:at + _RECORD.size + _SUM.size] != _SUM.pack(zlib.crc32(record)):
            return None
        magic, generation, number, length, owner, checksum = _RECORD.unpack(record)
        if magic != _MAGIC or length > self._room:
            return None
        start = self._start(slot)
        with memoryview(self._memory) as memory, memory[start:start + length] as contents:
            return ((generation, number, owner), slot, length) if zlib.crc32(contents) == checksum else None
