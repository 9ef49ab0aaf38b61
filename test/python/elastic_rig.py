"""An agent of one host, played by the test: starts workers, makes their worlds and breaks them as the test says.

It speaks the link of runtime/net/PROTOCOL.md and lays out the job page of runtime/segment/SEGMENT.md, so a test sees what a
worker does in an elastic job step by step, whatever the launcher would do. test/system has the same with hvdrun.
"""

import itertools
import json
import mmap
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

import jobs
from slowness import scaled

_numbers = itertools.count()

REMOVED, ADDED, STOP = 1, 2, 4

_HELLO, _JOIN, _GOODBYE, _ALLOCATE, _FETCH, _FREE, _GENERATION, _BROKEN, _SEGMENT = range(9)
_DISMISSED, _LAYOUT = 14, 13

_PAGE, _RING, _TRACE = 4096, 256 * 1024, 4096 + 256 * 1024
_BLOCK, _BROKEN_AT, _HOLD_AT, _COMMITS_AT = 2112, 128, 1152, 136


def _text(text):
    data = text.encode()
    return struct.pack('<I', len(data)) + data


class _Page(object):
    """The job page of one generation."""

    def __init__(self, generation, ranks):
        self.ranks = ranks
        self.ring_offset = -(-(_BLOCK + 8 * ranks) // _PAGE) * _PAGE
        self.stride = self.ring_offset + _RING + _TRACE
        self.bytes = _PAGE + ranks * self.stride
        self.fd = os.memfd_create('hvd-page', os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.bytes)
        self.memory = mmap.mmap(self.fd, self.bytes)
        struct.pack_into('<8sIIQQQQQQQQ', self.memory, 0, b'HDpage01', 5, ranks, generation, self.bytes, _PAGE,
                         self.stride, self.ring_offset, _RING, self.ring_offset + _RING, _TRACE)

    def break_(self, reason):
        struct.pack_into('<1020s', self.memory, _BROKEN_AT + 4, reason.encode() + b'\0')
        struct.pack_into('<I', self.memory, _BROKEN_AT, 1)

    def commits(self):
        return [struct.unpack_from('<Q', self.memory, _PAGE + rank * self.stride + _COMMITS_AT)[0]
                for rank in range(self.ranks)]

    def hold(self):
        struct.pack_into('<I', self.memory, _HOLD_AT, 1)

    def act_at(self, commit, update, grace_ms):
        struct.pack_into('<I', self.memory, _HOLD_AT + 4, update)
        struct.pack_into('<I', self.memory, _HOLD_AT + 16, grace_ms)
        struct.pack_into('<Q', self.memory, _HOLD_AT + 8, commit)


def _state(pid):
    with open('/proc/{}/stat'.format(pid)) as file:
        return file.read().rsplit(')', 1)[1].split()[0]


class ForkServer(object):
    """workers/fork_server.py: one for all rigs of this process, since importing PyTorch takes a worker longer than most tests."""

    _one = None

    def __init__(self):
        own, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen([sys.executable, jobs.worker('fork_server.py'), str(its.fileno())],
                                             pass_fds=[its.fileno()], stdin=subprocess.DEVNULL, env=jobs.environment())
        self._stream = own.makefile('rw')
        own.close()  # the stream keeps it

    @classmethod
    def one(cls):
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def ask(self, **request):
        try:
            self._stream.write(json.dumps(request) + '\n')
            self._stream.flush()
            answer = self._stream.readline()
        except BaseException:  # a deadline: whose answer comes next is unknown
            ForkServer._one = None
            self._process.kill()
            raise
        assert answer, 'fork_server.py ended with {}'.format(self._process.wait())
        return json.loads(answer)


class Forked(object):
    """What subprocess.Popen is, of a process of the fork server."""

    def __init__(self, command, output, environment):
        self._server = ForkServer.one()
        self.pid = self._server.ask(run=command, output=output, environment=environment)
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            self.returncode = self._server.ask(poll=self.pid)
        return self.returncode

    def wait(self):
        if self.returncode is None:
            self.returncode = self._server.ask(wait=self.pid)
        return self.returncode

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class _Worker(object):
    def __init__(self, process, output):
        self.process = process
        self.output = output
        self.link = None
        self.joined = False


class Rig(object):
    """Workers of one elastic job on one host. A context manager that ends what it started.

    Args:
        folder: A folder for the output of the workers.
        script: The script that each of them runs, with the arguments.
    """

    def __init__(self, folder, script, *arguments):
        self._folder = str(folder)
        self._command = [script] + [str(argument) for argument in arguments]
        self._name = 'hvd-rig-{}-{}'.format(os.getpid(), next(_numbers))
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind('\0' + self._name)
        self._listener.listen(16)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._workers = {}
        self._segments = {}
        self._segments_made = 0
        self._generation = 0
        self._slots = []  # of the present generation, by rank
        self._page = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for worker in self._workers.values():
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait()
        self._selector.close()
        self._listener.close()
        for fd, _ in self._segments.values():
            os.close(fd)

    # ---- workers

    def start(self, slot, size=1):
        """Starts the worker of a slot."""
        path = os.path.join(self._folder, 'output.{}'.format(slot))
        process = Forked(self._command, path, jobs.environment(
            HVD_AGENT=self._name, HVD_SLOT=str(slot), HVD_JOB_KEY='key', HOROVOD_ELASTIC='1', HOROVOD_RANK=str(slot),
            HOROVOD_SIZE=str(size), HOROVOD_LOCAL_RANK=str(slot), HOROVOD_LOCAL_SIZE=str(size), HOROVOD_CROSS_RANK='0',
            HOROVOD_CROSS_SIZE='1'))
        self._workers[slot] = _Worker(process, path)

    def output(self, slot):
        """The words of the worker so far."""
        with open(self._workers[slot].output, errors='replace') as file:
            return file.read()

    def kill(self, slot):
        """Kills the worker of the present world and breaks that, as an agent does."""
        worker = self._workers[slot]
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
        self.break_('rank {} died'.format(self._slots.index(slot)))

    def stop(self, slot):
        """Stops a worker by a signal."""
        os.kill(self._workers[slot].process.pid, signal.SIGSTOP)

    def go_on(self, slot):
        """Continues a stopped worker, also one that has only said that it stops."""
        pid = self._workers[slot].process.pid
        self.pump(lambda: _state(pid) == 'T', 'stop of slot {}'.format(slot))
        os.kill(pid, signal.SIGCONT)

    def has(self, slot):
        return slot in self._workers

    def await_join(self, slot):
        """Until the worker has called hvd.init()."""
        worker = self._workers[slot]
        self.pump(lambda: worker.joined, 'hvd.init() in slot {}'.format(slot))

    def wait(self, slot):
        """The exit code of a worker that comes to its end."""
        worker = self._workers[slot]
        self.pump(lambda: worker.process.poll() is not None, 'the end of slot {}'.format(slot))
        return worker.process.returncode

    # ---- worlds

    def begin(self, *slots, elastic=1):
        """Makes a world of these slots, rank 0 first, once all of them have asked for one."""
        workers = [self._workers[slot] for slot in slots]
        self.pump(lambda: all(worker.joined for worker in workers), 'hvd.init() in slots {}'.format(slots))
        self._generation += 1
        self._slots = list(slots)
        self._page = _Page(self._generation, len(slots))
        size = len(slots)
        for rank, worker in enumerate(workers):
            worker.joined = False
            self._send(worker, bytes([_LAYOUT]) + struct.pack('<QHIIII', self._generation, 1, 0, 0, size, 1))
            self._send(worker, bytes([_GENERATION]) + struct.pack(
                '<QQIIIIIIB', self._generation, self._page.bytes, rank, size, rank, size, 0, 1, 1) + _text('data') +
                bytes([0]) + struct.pack('<HHB', 0, 0, elastic), self._page.fd)

    def break_(self, reason):
        """Breaks the present world."""
        self._page.break_(reason)
        for slot in self._slots:
            self._send(self._workers[slot], bytes([_BROKEN]) + struct.pack('<Q', self._generation) + _text(reason))

    def refuse_world(self, slot, reason):
        """Answers the worker's hvd.init(): there will be no world."""
        self.await_join(slot)
        self._workers[slot].joined = False
        self._send(self._workers[slot], bytes([_BROKEN]) + struct.pack('<Q', 0) + _text(reason))

    def dismiss(self, slot, reason):
        """Answers the worker's hvd.init(): the job goes on without it."""
        self.await_join(slot)
        self._workers[slot].joined = False
        self._send(self._workers[slot], bytes([_DISMISSED]) + _text(reason))

    def act(self, update, grace_ms=0):
        """Makes all ranks act at one commit, and gives its number."""
        self._page.hold()
        commit = max(self._page.commits()) + 1
        self._page.act_at(commit, update, grace_ms)
        return commit

    def hold(self):
        self._page.hold()

    def commits(self):
        """How many commits each rank of the present world has come to."""
        return self._page.commits()

    # ---- the link

    def pump(self, done, what, timeout_s=60):
        """Serves the workers until done()."""
        timeout_s = scaled(timeout_s)
        deadline = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > deadline:
                raise AssertionError('no {} within {:.0f} s\n{}'.format(what, timeout_s, '\n'.join(
                    'slot {}:\n{}'.format(slot, self.output(slot)) for slot in self._workers)))
            for key, _ in self._selector.select(0.02):
                if key.data is None:
                    link, _ = self._listener.accept()
                    self._selector.register(link, selectors.EVENT_READ, [link, None])
                else:
                    self._receive(key.data)

    def _receive(self, entry):
        link, worker = entry
        try:
            message = link.recv(4096)
        except ConnectionError:
            message = b''
        if not message:
            self._selector.unregister(link)
            link.close()
            if worker is not None:
                worker.link = None
            return
        kind, fields = message[0], message[1:]
        if kind == _HELLO:
            entry[1] = self._workers[struct.unpack_from('<I', fields, 4)[0]]
            entry[1].link = link
        elif kind == _JOIN:
            worker.joined = True
        elif kind == _ALLOCATE:
            self._allocate(worker, struct.unpack('<Q', fields)[0])
        elif kind == _FETCH:
            number = struct.unpack('<I', fields)[0]
            self._give(worker, number)
        elif kind == _FREE:
            os.close(self._segments.pop(struct.unpack('<I', fields)[0])[0])

    def _allocate(self, worker, size):
        fd = os.memfd_create('hvd-segment', os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, size)
        self._segments_made += 1
        number = self._segments_made
        self._segments[number] = (fd, size)
        self._give(worker, number)

    def _give(self, worker, number):
        fd, size = self._segments[number]
        self._send(worker, bytes([_SEGMENT]) + struct.pack('<IQ', number, size) + _text(''), fd)

    def _send(self, worker, message, fd=None):
        if worker.link is None:
            return  # it is dead
        try:
            if fd is None:
                worker.link.send(message)
            else:
                socket.send_fds(worker.link, [message], [fd])
        except (BrokenPipeError, ConnectionError):
            pass  # it is dying
