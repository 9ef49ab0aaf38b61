"""Where a round's job runs: this machine, or several hosts with clocks of their own. Says which process is which."""

import dataclasses
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from checks import END_LIMIT, Leftovers, Seen, job_id_of

from conftest import (WORKERS, Job, children_of, foreign_worker, hvdrun_path, is_alive, kill, own_children,  # isort: skip
                      parent_of, read_proc, state_of, wait_until)
from host_rig import HostRig  # isort: skip

# In a world that adds up all the time.
SUMS = foreign_worker("init", "sum", "sums")
LARGE = [*SUMS[:-1], *["large"] * 20000]
# Outside of any world: each has a child and a grandchild in another session, all deaf to SIGTERM.
FAMILY = ["sh", str(WORKERS / "family.sh")]
# Waits for orders, and for ever counts steps of an elastic job.
LIFE = [sys.executable, "-S", "-E", str(pathlib.Path(__file__).resolve().parent / "chaos_worker.py"), "{folder}"]
ELASTIC = [*LIFE, "elastic"]
# Prints as fast as somebody reads.
CHATTER = ["sh", "-c", "while :; do echo a line of some length that somebody reads, or does not; done"]


@dataclasses.dataclass
class Worker:
    rank: int
    host: str
    pid: int  # as we see it
    named_pid: int  # as its host sees it

    def cause(self, how):
        return rf"hvdrun: rank {self.rank} on host {re.escape(self.host)} \(pid {self.named_pid}\) failed: {how}"


@dataclasses.dataclass
class AgentPair:
    host: str
    warden: int
    agent: int

    def cause(self, how=""):
        return rf"hvdrun: host {re.escape(self.host)} was lost: {how}"


def worker_of(pid, host):
    rank = re.search(rb"\0HOROVOD_RANK=(\d+)\0", read_proc(pid, "environ"))
    named = re.search(rb"^NSpid:.*\t(\d+)$", read_proc(pid, "status"), re.MULTILINE)
    if not rank or not named:
        return None
    return Worker(int(rank.group(1)), host, pid, int(named.group(1)))


class Run:
    """One job of a round: its output goes to files, so that nobody has to read it. `{folder}` in its words is its folder."""

    def __init__(self, place, command, options, program, terminal=False, reader=False, stdin=os.devnull, disk=False):
        self.place = place
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="chaos-"))
        self.folder.chmod(0o755)
        self.gone_limit = None  # checks.GONE_LIMIT
        self.neighbour = None  # a job beside it that nothing happens to
        self.disk = self.folder / "disk" if disk else None
        if disk:  # a small one, which is full soon
            self.disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk}", "none", self.disk], check=True)
        self.list_hosts(place.elastic_hosts)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        (self.folder / "reports").mkdir()
        self.terminal = self.reader = None
        self.on_terminal = terminal
        self.leave_alone = set(place.processes_elsewhere())
        source = open(stdin, "rb")
        how = {"stdin": source, "start_new_session": True, "cwd": self.temporary}
        out, err = open(self.folder / "out", "wb"), open(self.folder / "err", "wb")
        how.update(stdout=out, stderr=err)
        if terminal:
            self.terminal, follower = pty.openpty()
            how.update(stdin=follower, stdout=follower, preexec_fn=self.take_terminal)
            os.set_blocking(self.terminal, False)
        if reader:
            self.reader, writer = os.pipe()
            how.update(stdout=writer)
        def filled(words):
            return [str(word).replace("{folder}", str(self.folder)) for word in words]
        self.job = Job("--terminate-grace", "0.5", *filled([*options, *command]), program=filled(program),
                       env={"TMPDIR": str(self.temporary), "HVD_TEST_SILENT_SECONDS": "3"}, **how)
        self.started = time.monotonic()
        for file in (source, out, err):
            file.close()
        if terminal:
            os.close(follower)
        if reader:
            os.close(writer)
        self.command = command
        self.job_id = None
        self.notes = []

    @staticmethod
    def take_terminal():
        import fcntl
        import termios
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read_terminal(self):
        if self.terminal is None:
            return
        with open(self.folder / "out", "ab") as out:
            try:
                while text := os.read(self.terminal, 65536):
                    out.write(text)
            except OSError:
                pass  # nothing there now, or the other end is closed

    def out(self):
        self.read_terminal()
        return (self.folder / "out").read_bytes().decode(errors="replace")

    def err(self):
        self.read_terminal()
        return (self.folder / ("out" if self.on_terminal else "err")).read_bytes().decode(errors="replace")

    def ended(self):
        return self.job.process.poll() is not None

    def wait_until_at_work(self, size):
        """All ranks have been in a sum, or have their families, or print."""
        def at_work():
            assert not self.ended(), f"the job ended by itself with {self.job.process.returncode}: {self.err()}"
            if self.command in (SUMS, LARGE):
                return self.out().count("sum ") >= size
            if self.command is LIFE:
                return self.out().count("ready\n") >= size
            if self.command is ELASTIC:
                return (self.folder / "progress").exists()
            if self.command is FAMILY:
                return sum(b"\0HOROVOD_RANK=" in read_proc(pid, "environ") for pid in self.processes()) >= 3 * size
            return len(self.place.workers(self)) == size
        wait_until("all ranks at work", at_work, told=self.err)
        self.note_job_id()

    def note_job_id(self):
        self.job_id = self.job_id or job_id_of(self.processes())

    def processes(self):
        found = {*self.job.processes(), *self.place.processes_elsewhere(), *self.daemons()}
        return sorted(found - self.leave_alone)

    def daemons(self):
        """Those of chaos_worker.py that have no mark any more; on hosts all processes are the job's anyway."""
        pids = [] if self.place.hosts else [int(path.name) for path in (self.folder / "daemons").glob("*")]
        return [pid for pid in pids if read_proc(pid, "cmdline").startswith(b"sleep\0")]

    # ---- orders, and what elastic jobs look at

    def order(self, **orders):
        """To chaos_worker.py. Whole at once."""
        self.note(f"the orders are {orders}")
        (self.folder / "orders.part").write_text(json.dumps(orders))
        (self.folder / "orders.part").rename(self.folder / "orders")

    def wait_for_words(self, words, count=1):
        wait_until(f"{count} times {words!r}", lambda: self.ended() or self.out().count(words) >= count, told=self.told)
        assert not self.ended(), f"the job ended by itself with {self.job.process.returncode}: {self.told()}"

    def told(self):
        return self.out()[-2000:] + self.err()[-3000:]

    def write_discovery(self, text):
        (self.folder / "discover.part").write_text(text)
        (self.folder / "discover.part").rename(self.folder / "discover")

    def list_hosts(self, hosts):
        self.write_discovery("".join(f"echo {name}:{slots}\n" for name, slots in hosts if slots))

    def wait_for_progress(self):
        """Until a step is committed after now."""
        (self.folder / "progress").unlink(missing_ok=True)
        wait_until("a commit", lambda: self.ended() or (self.folder / "progress").exists(), told=self.told)
        assert not self.ended(), f"the job ended by itself with {self.job.process.returncode}: {self.told()}"

    def finish(self, limit=END_LIMIT):
        """The result of the job. Whatever is left after that is ended by force, for the next round."""
        end = time.monotonic() + limit
        while not self.ended() and time.monotonic() < end:
            self.read_terminal()
            if self.job_id is None:
                self.note_job_id()
            time.sleep(0.005)
        code = self.job.process.poll()
        leftovers = Leftovers(self.job_id, [self.temporary], self.place.inits(), self.processes)
        left = leftovers.look_until_gone(self.gone_limit) if code is not None else self.where_it_hangs()
        for pid in self.processes():
            kill(pid)
        self.job.process.wait()
        self.read_terminal()
        for descriptor in (self.terminal, self.reader):
            if descriptor is not None:
                os.close(descriptor)
        self.terminal = None
        return Seen(code, self.err(), left)

    def where_it_hangs(self):
        """What is known of a job that does not end."""
        top = self.place.command(hvdrun_path(), "top", "--once", *([self.job_id] if self.job_id else []))
        def about(pid):
            words = read_proc(pid, "cmdline").replace(bytes(1), b" ").decode(errors="replace")
            return f"process {pid} is there, {state_of(pid)} in {read_proc(pid, 'wchan').decode() or '?'}: {words[:100]}"
        return [*map(about, self.processes()), f"hvdrun top: {output_of(top)}", f"it printed: {self.out()[-1000:]}"]

    def remove(self):
        """Its folder, after all looks at what is in it."""
        if self.disk is not None:
            subprocess.run(["umount", "-l", self.disk], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def note(self, words):
        self.notes.append(f"after {time.monotonic() - self.started:.3f} s {words}")

    def strike(self, number, what, pid):
        self.note(f"{signal.Signals(number).name} to {what} ({pid})")
        os.kill(pid, number)

    def strike_if_there(self, number, what, pid):
        """False: it has ended of what happened before."""
        try:
            if is_alive(pid):
                self.strike(number, what, pid)
                return True
        except ProcessLookupError:
            pass  # just now
        self.note(f"{what} has ended")
        return False

    def close_terminal(self):
        self.read_terminal()
        self.note("the terminal is closed")
        os.close(self.terminal)
        self.terminal = None

    def press(self, key, name):
        self.note(name)
        os.write(self.terminal, key)

    def close_reader(self):
        self.note("the reader goes away")
        os.close(self.reader)
        self.reader = None


def elastic_options(size):
    return ["--elastic", "--host-discovery-script", "sh {folder}/discover", "--min-np", 1, "--max-np", size + 3,
            "--max-failures", 100, "--elastic-timeout", 55, "--blacklist-cooldown-range", 1, 2]


def output_of(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=END_LIMIT)
    return done.stdout + done.stderr


class Machine:
    """This one."""

    name = "one machine"
    size = 3
    hosts = None
    elastic_hosts = [("127.0.0.1", 2), ("127.0.0.2", 1)]
    host_pattern = r"127\.0\.0\.\d"  # in elastic jobs

    def start(self, command=SUMS, options=(), wrapper=(), **kwargs):
        words = elastic_options(self.size) if command is ELASTIC else []
        return Run(self, command, ["-np", self.size, *words, *options], [*wrapper, hvdrun_path()], **kwargs)

    def command(self, *words):
        """The words that run a command where hvdrun runs."""
        return list(words)

    def listings(self):
        """What `hvdrun ps` says, wherever there may be a part of the job."""
        return [output_of([hvdrun_path(), "ps"])]

    def agents(self, run):
        host = os.uname().nodename
        return [AgentPair(host, warden, agent) for warden in own_children(run.job.pid) for agent in own_children(warden)]

    def workers(self, run):
        """The processes that agents started, as far as they have become what was asked for."""
        host = os.uname().nodename
        found = [worker_of(pid, host) for pair in self.agents(run) for pid in children_of(pair.agent)]
        return sorted((worker for worker in found if worker), key=lambda worker: worker.rank)

    def processes_elsewhere(self):
        return []

    def inits(self):
        return [os.getpid()]

    def clear_up(self):
        """Does the work of the next hvdrun: removes what hvdrun, warden and agent could not, all being dead."""
        subprocess.run([hvdrun_path(), "ps"], stdin=subprocess.DEVNULL, capture_output=True, timeout=END_LIMIT)

    def heal(self):
        pass


class Hosts:
    """Two hosts, reached over ssh from a third place."""

    name = "two hosts"
    size = 4

    def __init__(self, folder):
        self.rig = HostRig(folder, 2)
        self.hosts = self.rig.hosts
        self.elastic_hosts = [(host.name, 2) for host in self.hosts]

    host_pattern = r"hvd\d"

    def start(self, command=SUMS, options=(), wrapper=(), **kwargs):
        words = elastic_options(self.size) if command is ELASTIC else ["-H", ",".join(f"{host.name}:2" for host in self.hosts)]
        return Run(self, command, ["-np", self.size, *words, "--heartbeat-timeout", "3", *options],
                   self.rig.on_head(*wrapper, hvdrun_path()), **kwargs)

    def command(self, *words):
        return self.rig.on_head(*words)

    def listings(self):
        return [output_of(command) for command in
                [self.rig.on_head(hvdrun_path(), "ps"), *(host.command(hvdrun_path(), "ps") for host in self.hosts)]]

    def agents(self, run):
        pairs = []
        for host in self.hosts:
            agents = host.agents()
            pairs += [AgentPair(host.name, parent_of(pid), pid) for pid in agents
                      if parent_of(pid) in agents and pid not in run.leave_alone]
        return pairs

    def workers(self, run):
        found = [worker_of(pid, pair.host) for pair in self.agents(run) for pid in children_of(pair.agent)]
        return sorted((worker for worker in found if worker), key=lambda worker: worker.rank)

    def processes_elsewhere(self):
        return [pid for host in self.hosts for pid in host.processes()]

    def inits(self):
        return [self.rig.head.pid, *(host.init for host in self.hosts)]

    def clear_up(self):
        for host in self.hosts:
            host.run(hvdrun_path(), "ps")

    def heal(self):
        for host in self.hosts:
            host.join()
            for table in (["inet", "chaos"], ["ip", "chaos"], ["inet", "rig"]):
                subprocess.run(host.command("nft", "delete", "table", *table), capture_output=True)
            self.slow_down(host, None)
            self.set_mtu(host, 1500)

    def set_mtu(self, host, size):
        host.ip(f"link set eth0 mtu {size}")
        self.rig.ip(f"link set vh{host.number} mtu {size}")

    def slow_down(self, host, rate):
        try:
            host.slow_down(rate)
        except subprocess.CalledProcessError:
            assert rate is None  # nothing was slow

    def down(self):
        self.rig.down()
