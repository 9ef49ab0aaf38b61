"""The two slots in which commits of an elastic job are kept: what is read is whole and the newest, whatever byte a writer dies at."""

import os
import random
import threading
import zlib

import pytest

from horovod.common.commit_store import CommitRefused, CommitStore

PAGE = 4096
SIZE = 9 * PAGE
OWNER = b'a state'


def found(generation, number, kept):
    return (generation, number, zlib.crc32(OWNER)), kept


class Killed(Exception):
    """Stands for the death of a writer."""


class MortalStore(CommitStore):
    """Dies after it has written `left` bytes."""

    left = None

    def _put(self, at, piece):
        if self.left is None:
            return super()._put(at, piece)
        super()._put(at, piece[:self.left])
        if len(piece) > self.left:
            raise Killed()
        self.left -= len(piece)


def contents(seed, length):
    return random.Random(seed).getrandbits(8 * length).to_bytes(length, 'little') if length else b''


def test_the_newest_of_many_commits_is_read(memory):
    store = CommitStore(memory, SIZE)
    assert store.newest() is None
    for seed in range(40):
        kept = contents(seed, random.Random(seed).choice([0, 1, 63, 64, PAGE - 1, PAGE, PAGE + 1, 4 * PAGE]))
        tag = 1 + seed // 7, 1 + seed % 7
        store.write(*tag, OWNER, [kept[:5], kept[5:]])
        assert CommitStore(memory, SIZE).newest() == found(*tag, kept)


@pytest.mark.parametrize('before', [0, 1, 2, 3])
@pytest.mark.parametrize('length', [0, 1, 200])
def test_a_writer_that_dies_at_any_byte_leaves_the_commit_before(before, length):
    every = 64 + length + 44  # an erased record, the contents, a record
    for cut in range(every + 1):
        descriptor = os.memfd_create('commits')
        os.ftruncate(descriptor, SIZE)
        try:
            store = MortalStore(descriptor, SIZE)
            last = None
            for number in range(1, before + 1):
                kept = contents(number, 150 + number)
                last = found(1, number, kept)
                store.write(1, number, OWNER, [kept])
            if cut % 2:  # as often by another process, which has to find the slot that it must not touch
                store.close()
                store = MortalStore(descriptor, SIZE)
            store.left, fresh = cut, contents(99, length)
            if cut < every:
                with pytest.raises(Killed):
                    store.write(2, 1, OWNER, [fresh[:10], fresh[10:]])
                assert CommitStore(descriptor, SIZE).newest() == last, cut
            else:
                store.write(2, 1, OWNER, [fresh[:10], fresh[10:]])
                assert CommitStore(descriptor, SIZE).newest() == found(2, 1, fresh)
            # The next writer goes on in the slot of the torn one.
            store.close()
            CommitStore(descriptor, SIZE).write(3, 1, OWNER, [b'next'])
            assert CommitStore(descriptor, SIZE).newest() == found(3, 1, b'next')
        finally:
            os.close(descriptor)


def test_a_changed_byte_makes_the_commit_before_count(memory):
    store = CommitStore(memory, SIZE)
    store.write(1, 1, OWNER, [contents(1, 300)])
    store.write(1, 2, OWNER, [contents(2, 300)])
    sound = os.pread(memory, SIZE, 0)
    room = (SIZE - PAGE) // 2
    for at in list(range(64, 64 + 44)) + list(range(PAGE + room, PAGE + room + 300)):
        os.pwrite(memory, bytes([sound[at] ^ 1 << at % 8]), at)
        assert CommitStore(memory, SIZE).newest() == found(1, 1, contents(1, 300)), at
        os.pwrite(memory, sound[at:at + 1], at)
    assert store.newest() == found(1, 2, contents(2, 300))


def test_a_commit_that_does_not_fit_leaves_those_before(memory):
    store = CommitStore(memory, SIZE)
    store.write(1, 1, OWNER, [b'a'])
    store.write(1, 2, OWNER, [b'b'])
    with pytest.raises(CommitRefused, match='a commit of 16385 bytes does not fit: two of at most 16384 are kept'):
        store.write(1, 3, OWNER, [bytes(4 * PAGE + 1)])
    assert store.newest() == found(1, 2, b'b')
    with pytest.raises(CommitRefused, match='too few for two commits'):
        CommitStore(memory, 2 * PAGE)


def test_short_memory_is_refused_with_a_sentence(memory, monkeypatch):
    store = CommitStore(memory, SIZE)
    store.write(1, 1, OWNER, [b'a'])

    def full(*_):
        raise OSError(28, 'No space left on device')
    monkeypatch.setattr(os, 'posix_fallocate', full)
    with pytest.raises(CommitRefused, match='there is no memory for a commit of 1 bytes: No space left on device'):
        store.write(1, 2, OWNER, [b'b'])
    assert store.newest() == found(1, 1, b'a')


def test_an_older_commit_does_not_replace_a_newer_one(memory):
    store = CommitStore(memory, SIZE)
    store.write(2, 5, OWNER, [b'new'])
    store.close()
    store = CommitStore(memory, SIZE)
    for tag in ((2, 5), (2, 4), (1, 9)):
        with pytest.raises(ValueError, match='is not newer than commit 5 of generation 2'):
            store.write(*tag, OWNER, [b'old'])
    assert store.newest() == found(2, 5, b'new')


def test_one_process_writes_at_a_time(memory):
    store = CommitStore(memory, SIZE)
    store.write(1, 1, OWNER, [b'first'])
    child = os.fork()
    if child == 0:
        try:
            CommitStore(memory, SIZE).write(1, 2, OWNER, [b'second'])
        except CommitRefused:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    store.release()
    child = os.fork()
    if child == 0:
        CommitStore(memory, SIZE).write(1, 2, OWNER, [b'second'])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.newest() == found(1, 2, b'second')
