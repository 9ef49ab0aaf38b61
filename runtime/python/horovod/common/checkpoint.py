"""Checkpoints on disk: complete or absent, never half written.

A checkpoint is one file whose name has its step and the SHA-256 of its contents. It is written under another name, synced,
and renamed, so that a process that is killed at any moment leaves the former ones as they were.
"""

import contextlib
import hashlib
import os
import re
import socket
import warnings

try:
    import fcntl
except ImportError:  # Windows, where unfinished files of dead processes are not removed
    fcntl = None

_BLOCK = 1 << 20
_NAME = re.compile(r'\A(?P<name>.+)-(?P<step>\d{12,})-(?P<digest>[0-9a-f]{64})\Z')


def _digest(path):
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        for block in iter(lambda: file.read(_BLOCK), b''):
            digest.update(block)
    return digest.hexdigest()


def _sync_folder(folder):
    if not hasattr(os, 'O_DIRECTORY'):  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listed(folder, name):
    """(step, path, digest) of each, newest first."""
    try:
        entries = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = []
    for entry in entries:
        match = _NAME.match(entry)
        if match and match.group('name') == name:
            path = os.path.join(folder, entry)
            found.append((int(match.group('step')), os.stat(path).st_mtime_ns, path, match.group('digest')))
    return [(step, path, digest) for step, _, path, digest in sorted(found, reverse=True)]


def _remove_abandoned(folder, name):
    """Removes the unfinished files of processes that have died, recognised by their free lock."""
    if fcntl is None:
        return
    for entry in os.listdir(folder):
        if not (entry.startswith('.' + name + '-') and entry.endswith('.part')):
            continue
        path = os.path.join(folder, entry)
        with contextlib.suppress(OSError), open(path, 'rb') as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)


def _create(folder, name):
    """A new unfinished file under the lock of this process: its path and the open file."""
    while True:
        part = os.path.join(folder, '.{}-{}-{}-{}.part'.format(
            name, socket.gethostname(), os.getpid(), os.urandom(4).hex()))
        file = open(part, 'xb')
        if fcntl is None:
            return part, file
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process takes it for abandoned and is about to remove it
            file.close()
            continue
        except OSError:  # a file system without locks, where nothing is removed
            return part, file
        if os.path.exists(part):
            return part, file
        file.close()


def _check_name(name):
    if not name or '/' in name or '\0' in name or name.startswith('.'):
        raise ValueError('{!r} cannot be the name of checkpoints: it must not be empty, begin with a dot or contain a slash'
                         .format(name))


def save(folder, write, step, keep=3, name='checkpoint'):
    """Writes a checkpoint to disk, so that it is there as a whole or not at all. Call it on one rank, as a rule on rank 0.

    The file is written under a temporary name, synced, and renamed. If anything fails (no space is left, the process is
    killed), earlier checkpoints stay as they were. The oldest are removed once the new one is on the disk.

    Args:
        folder: A directory, which is made if it is missing.
        write: The bytes to write, or a function that gets a binary file and writes into it:
            `lambda file: torch.save(model.state_dict(), file)`.
        step: The number of the training step or epoch. The newest checkpoint is the one with the largest step.
        keep: How many checkpoints to keep, this one among them; None: all.
        name: The first part of the file's name. Checkpoints of different names in one directory are independent.

    Returns:
        The path of the file.
    """
    _check_name(name)
    if int(step) != step or step < 0:
        raise ValueError('step must be a whole number from 0 on, not {!r}'.format(step))
    if keep is not None and keep < 1:
        raise ValueError('keep must be at least 1, or None for all checkpoints, not {!r}'.format(keep))
    folder = os.fspath(folder)
    os.makedirs(folder, exist_ok=True)
    _remove_abandoned(folder, name)
    part, file = _create(folder, name)
    try:
        with file:
            if callable(write):
                write(file)
            else:
                file.write(write)
            file.flush()
            os.fsync(file.fileno())
            path = os.path.join(folder, '{}-{:012d}-{}'.format(name, int(step), _digest(part)))
            os.rename(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    _sync_folder(folder)
    # Replaces a file of the same step, which is from an earlier attempt.
    others = [entry for entry in _listed(folder, name) if entry[1] != path]
    stale = [other for at, other, _ in others if at == step]
    if keep is not None:
        stale += [other for at, other, _ in others if at != step][keep - 1:]
    for other in stale:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(other)
    return path


def newest(folder, name='checkpoint'):
    """Finds the newest complete checkpoint. One whose contents are damaged is skipped with a warning.

    Args:
        folder: The directory that was given to `save`.
        name: The name that was given to `save`.

    Returns:
        A pair: the path of the file and its step. None if there is no checkpoint.
    """
    _check_name(name)
    for step, path, digest in _listed(os.fspath(folder), name):
        try:
            whole = _digest(path) == digest
            reason = 'its contents have another checksum than its name says'
        except OSError as error:
            whole, reason = False, str(error)
        if whole:
            return path, step
        warnings.warn('the checkpoint {} is skipped: {}'.format(path, reason), RuntimeWarning, stacklevel=2)
    return None


def load(folder, read=None, name='checkpoint'):
    """Reads the newest complete checkpoint.

    Args:
        folder: The directory that was given to `save`.
        read: A function that gets the file, opened for reading, such as `torch.load`; None: the bytes of the file.
        name: The name that was given to `save`.

    Returns:
        A pair: the value that was read and its step. None if there is no checkpoint.
    """
    found = newest(folder, name)
    if found is None:
        return None
    path, step = found
    with open(path, 'rb') as file:
        return (file.read() if read is None else read(file)), step
