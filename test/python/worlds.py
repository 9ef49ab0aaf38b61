"""Worlds that tests share: one job for each number of ranks and hosts, in which the workers of many tests run one after the
other (workers/shared_world.py), since importing PyTorch takes a rank longer than most of them.

A test asks for it by the fixture `in_world`. A worker that fails, by an error or in time, takes its world along: the next test has a
fresh one. A test that needs processes of its own, one that kills, forks or looks at the start, uses jobs.run_job.
"""

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import jobs
from slowness import scaled

START_S = 120
GRACE_S = 10  # of the other ranks, once one has failed


class Rank(object):
    def __init__(self, connection):
        self.connection = connection
        self.received = b''
        connection.setblocking(False)

    def read(self):
        """The next answer, None while it is not complete; EOFError."""
        try:
            data = self.connection.recv(1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            raise EOFError
        if not data:
            raise EOFError
        self.received += data
        if b'\n' not in self.received:
            return None
        line, _, self.received = self.received.partition(b'\n')
        return json.loads(line.decode())


class World(object):
    """A job whose ranks wait for cases."""

    def __init__(self, processes, hosts, gpus):
        self.folder = tempfile.mkdtemp()
        self.log = open(os.path.join(self.folder, 'log'), 'w+', errors='replace')
        command = [jobs.find_hvdrun(), '-np', str(processes)]
        if hosts > 1:
            command += ['--hosts-per-machine', str(hosts)]
        path = os.path.join(self.folder, 'socket')
        self.ranks, self.pids = {}, {}
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen(processes)
            server.settimeout(1)
            command += [sys.executable] + [jobs.worker('on_fake_gpus.py')] * gpus + [jobs.worker('shared_world.py'), path]
            environment = jobs.environment(LD_LIBRARY_PATH=jobs.with_fake_gpus()) if gpus else jobs.environment()
            self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
                                            start_new_session=True, env=environment)
            self.accept(server, processes)

    def accept(self, server, processes):
        end = time.monotonic() + scaled(START_S)
        while len(self.ranks) < processes:
            try:
                rank = Rank(server.accept()[0])
            except socket.timeout:
                if self.process.poll() is not None or time.monotonic() > end:
                    output = self.output()
                    self.end()
                    raise AssertionError('a shared world did not start:\n' + output)
                continue
            self.receive({None: rank}, end, lambda _, hello: self.add(rank, hello))

    def add(self, rank, hello):
        self.ranks[hello['rank']], self.pids[hello['rank']] = rank, hello['pid']

    def run(self, case, timeout_s):
        """{rank: outcome} of the ranks that have one in time."""
        self.log.seek(0)
        self.log.truncate()
        for rank in self.ranks.values():
            rank.connection.setblocking(True)
            rank.connection.sendall((json.dumps(case) + '\n').encode())
            rank.connection.setblocking(False)
        outcomes = {}
        self.receive(self.ranks, time.monotonic() + scaled(timeout_s), outcomes.__setitem__)
        if len(outcomes) == len(self.ranks) and not any(answer['error'] for answer in outcomes.values()):
            end = time.monotonic() + scaled(GRACE_S)
            while self.output().count('END_OF_CASE') < len(self.ranks) and time.monotonic() < end:
                time.sleep(0.002)  # until hvdrun has written what the runtime said
        return outcomes

    @staticmethod
    def receive(ranks, end, note):
        """Passes the answer of each rank to note(number, answer); not those that come too late, or long after another's failure."""
        with selectors.DefaultSelector() as selector:
            for number, rank in ranks.items():
                selector.register(rank.connection, selectors.EVENT_READ, (number, rank))
            while selector.get_map() and time.monotonic() < end:
                for key, _ in selector.select(max(0, min(1, end - time.monotonic()))):
                    number, rank = key.data
                    try:
                        answer = rank.read()
                    except EOFError:
                        answer = {'error': 'the process ended', 'output': ''}
                    if answer is not None:
                        selector.unregister(rank.connection)
                        note(number, answer)
                        if answer.get('error'):
                            end = min(end, time.monotonic() + scaled(GRACE_S))

    def stacks(self, numbers):
        """Has these ranks write to the log where they are."""
        for number in numbers:
            try:
                os.kill(self.pids[number], signal.SIGUSR1)
            except ProcessLookupError:
                pass
        time.sleep(0.3)

    def output(self):
        self.log.flush()
        with open(self.log.name, errors='replace') as file:
            return file.read()

    def end(self, broken=False):
        """Its ranks see the end of their connections, and leave; those of a broken world may hang, and are killed."""
        for rank in self.ranks.values():
            rank.connection.close()
        for end in (lambda: None, self.process.terminate, self.process.kill)[1 if broken else 0:]:
            end()
            try:
                self.process.wait(scaled(GRACE_S))
                break
            except subprocess.TimeoutExpired:
                pass
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


current = {}  # at most one world: {(processes, hosts, gpus): World}


def end_all(broken=False):
    while current:
        current.popitem()[1].end(broken)


def world(processes, hosts, gpus):
    key = (processes, hosts, gpus)
    if key not in current:
        end_all()
        current[key] = World(*key)
    return current[key]


def run(processes, hosts, script, *arguments, timeout_s=60, gpus=False, **environment):
    """Runs a worker on all ranks of the shared world; a jobs.Result, whose output has the lines of each rank behind its number."""
    hosts = hosts or jobs.hosts_per_machine
    if not 1 < hosts <= processes:
        hosts = 1
    else:
        jobs.skip_without_gloo()
    shared = world(processes, hosts, gpus)
    case = {'script': jobs.worker(script), 'arguments': [str(a) for a in arguments], 'environment': environment}
    outcomes = shared.run(case, timeout_s)
    late = [number for number in range(processes) if number not in outcomes]
    failed = late or any(answer['error'] for answer in outcomes.values())
    if failed:
        shared.stacks(late)
    lines = ['[{}] {}'.format(number, line) for number in sorted(outcomes)
             for line in (outcomes[number]['output'] + (outcomes[number]['error'] or '')).splitlines()]
    lines += ['[{}] no outcome'.format(number) for number in late] + [shared.output()]
    if failed:
        end_all(broken=True)
    return jobs.Result([script] + case['arguments'], 1 if failed else 0, '\n'.join(lines))
