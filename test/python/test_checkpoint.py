"""hvd.checkpoint: a checkpoint is there as a whole or not at all."""

import errno
import os
import random
import signal
import subprocess
import sys

import pytest

from horovod.common import checkpoint

WRITER = """
import sys
from horovod.common import checkpoint
step = int(sys.argv[2])
print('ready', flush=True)
while True:
    step += 1
    block = bytes([step % 251]) * 65536
    checkpoint.save(sys.argv[1], lambda file: [file.write(block) for _ in range(16)], step, keep=2)
    print(step, flush=True)
"""


def names(folder):
    return sorted(os.listdir(folder))


def test_nothing_is_found_where_nothing_was_saved(tmp_path):
    assert checkpoint.newest(tmp_path / 'none') is None and checkpoint.load(tmp_path) is None


def test_the_newest_of_those_kept_is_read(tmp_path):
    for step in (1, 2, 10, 9):
        checkpoint.save(tmp_path / 'here', b'at %d' % step, step, keep=2)
    assert checkpoint.load(tmp_path / 'here') == (b'at 10', 10)
    steps = [int(entry.split('-')[1]) for entry in names(tmp_path / 'here')]
    assert steps == [9, 10]


def test_names_are_independent(tmp_path):
    checkpoint.save(tmp_path, b'a', 1, keep=1, name='a')
    checkpoint.save(tmp_path, b'a-b', 2, keep=1, name='a-b')
    assert checkpoint.load(tmp_path, name='a') == (b'a', 1)
    assert checkpoint.load(tmp_path, lambda file: file.read(2), name='a-b') == (b'a-', 2)


def test_the_same_step_again_replaces_the_first(tmp_path):
    checkpoint.save(tmp_path, b'first', 5)
    path = checkpoint.save(tmp_path, b'second', 5)
    assert names(tmp_path) == [os.path.basename(path)]
    assert checkpoint.load(tmp_path) == (b'second', 5)
    assert checkpoint.save(tmp_path, b'second', 5) == path and checkpoint.load(tmp_path) == (b'second', 5)


@pytest.mark.parametrize('damage', ['flip', 'cut', 'append', 'empty'])
def test_a_damaged_one_is_skipped_with_a_warning(tmp_path, damage):
    checkpoint.save(tmp_path, b'good', 1)
    path = checkpoint.save(tmp_path, b'x' * 100000, 2)
    with open(path, 'r+b') as file:
        if damage == 'flip':
            file.seek(50000)
            file.write(b'y')
        elif damage == 'append':
            file.seek(0, 2)
            file.write(b'y')
        else:
            file.truncate(99999 if damage == 'cut' else 0)
    with pytest.warns(RuntimeWarning, match='000002-.* is skipped: .*checksum'):
        assert checkpoint.load(tmp_path) == (b'good', 1)


def test_a_failure_leaves_the_former_as_they_were(tmp_path):
    checkpoint.save(tmp_path, b'good', 1, keep=1)
    before = names(tmp_path)

    def full(file):
        file.write(b'half of it')
        raise OSError(errno.ENOSPC, 'No space left on device')

    with pytest.raises(OSError):
        checkpoint.save(tmp_path, full, 2, keep=1)
    assert names(tmp_path) == before


@pytest.mark.parametrize('arguments', [{'step': -1}, {'step': 1.5}, {'step': 1, 'keep': 0}, {'step': 1, 'name': 'a/b'},
                                       {'step': 1, 'name': ''}, {'step': 1, 'name': '.a'}])
def test_wrong_arguments_are_refused(tmp_path, arguments):
    with pytest.raises(ValueError):
        checkpoint.save(tmp_path, b'', **arguments)
    assert names(tmp_path) == []


def test_an_unfinished_one_is_left_to_its_writer(tmp_path):
    def inner(file):
        file.write(b'outer')
        checkpoint.save(tmp_path, b'inner', 2)  # from another thread or process, say

    checkpoint.save(tmp_path, inner, 1)
    assert checkpoint.load(tmp_path) == (b'inner', 2) and len(names(tmp_path)) == 2


def test_a_writer_killed_at_any_moment_leaves_a_whole_one(tmp_path):
    seed = random.randrange(1 << 30)
    print('seed', seed)
    chance = random.Random(seed)
    package = os.path.dirname(os.path.dirname(os.path.dirname(checkpoint.__file__)))
    last = 0
    for _ in range(20):
        writer = subprocess.Popen([sys.executable, '-c', WRITER, str(tmp_path), str(last)], stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, PYTHONPATH=package))
        assert writer.stdout.readline() == 'ready\n'
        for _ in range(chance.randrange(3)):
            writer.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(chance.random() * 0.02)
        writer.send_signal(signal.SIGKILL)
        said = [int(line) for line in writer.stdout]
        writer.wait()
        found = checkpoint.load(tmp_path)
        if found is None:
            assert last == 0 and not said
            continue
        contents, step = found
        assert step >= max(said + [last]) and contents == bytes([step % 251]) * 65536 * 16
        last = step
    checkpoint.save(tmp_path, b'end', last + 1, keep=2)
    assert not [entry for entry in names(tmp_path) if entry.endswith('.part')] and len(names(tmp_path)) == 2
