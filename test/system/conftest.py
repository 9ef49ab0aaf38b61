"""Helpers to drive the real hvdrun. Standard library and pytest only."""

import functools
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time
import uuid

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from slowness import scaled  # noqa: E402
from tiers import pytest_collection_modifyitems  # noqa: E402, F401

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every hvdrun.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # a shell ignores it in what it starts beside itself
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and children would, too

os.environ["HVDRUN_STANDING_CONFIG"] = "0"  # what somebody set for the jobs of this machine is not tested

REPO = pathlib.Path(__file__).resolve().parents[2]
WORKERS = pathlib.Path(__file__).resolve().parent / "workers"
QUIET_S = 60
DEADLINE = scaled(QUIET_S)  # generous: the event that a test waits for has happened long before, or never will
MARK = "MARK_OF_HVDRUN_TEST"


# HVD_INSTALLED=1: HVDRUN is a package's (test/installed.py), which knows none of the faults that tests make.
INSTALLED = os.environ.get("HVD_INSTALLED") == "1"


def hvdrun_path():
    path = pathlib.Path(os.environ.get("HVDRUN", REPO / "build" / "bin" / "hvdrun"))
    if not path.exists():
        pytest.fail(f"{path} does not exist; build first, or set HVDRUN")
    return str(path)


def library(name):
    """Where a library of this hvdrun lies: in lib beside bin, in a wheel in the package; the former where it is in neither."""
    prefix = pathlib.Path(hvdrun_path()).resolve().parents[1]
    return next((path for path in prefix.glob(f"lib/python3*/site-packages/horovod/lib/{name}")), prefix / "lib" / name)


def package_folder():
    """What PYTHONPATH names for a script that hvdrun does not start."""
    return library("libhvd.so").parent / "python" if INSTALLED else REPO / "runtime" / "python"


def needs_the_build_tree(why):
    """A mark of tests that cannot be about an installed hvdrun (HVD_INSTALLED=1)."""
    return pytest.mark.skipif(INSTALLED, reason=f"not about an installed hvdrun: {why}")


@functools.cache
def has_modules(*names, python="/usr/bin/python3"):
    """Whether this Python has them. They are looked for, not imported: PyTorch would take each process that collects tests a second."""
    code = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))"
    return os.path.exists(python) and subprocess.run([python, "-c", code, *names]).returncode == 0


def skip_without(*names):
    """Skips a test, or all of a file, where this Python, which runs the workers, too, lacks them."""
    if not has_modules(*names, python=sys.executable):
        pytest.skip(f"{' or '.join(names)} is not installed for this Python", allow_module_level=True)


def foreign_worker(*steps):
    """The command of a rank that takes these steps (workers/foreign_worker.py)."""
    return [sys.executable, "-S", "-E", str(WORKERS / "foreign_worker.py"), *steps]


def read_proc(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_alive(pid):
    """A zombie has ended: whoever inherited it may reap late."""
    stat = read_proc(pid, "stat")
    return bool(stat) and stat[stat.rindex(b")") + 2 :][:1] not in (b"Z", b"X")


def state_of(pid):
    stat = read_proc(pid, "stat")
    return stat[stat.rindex(b")") + 2 :][:1].decode() if stat else ""


def parent_of(pid):
    stat = read_proc(pid, "stat")
    return int(stat[stat.rindex(b")") + 2 :].split()[1]) if stat else 0


def children_of(pid):
    return [p for p in pids() if is_alive(p) and parent_of(p) == pid]


def environ_has(pid, name, value):
    return f"{name}={value}".encode() in read_proc(pid, "environ").split(b"\0")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it was ending by itself


def wait_until(what, condition, limit=QUIET_S, told=lambda: ""):
    """`told` is what a failure shows beside. The limit is of a quiet machine (slowness.py)."""
    limit = scaled(limit)
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"waited {limit:.0f} s in vain for: {what}\n{told()}")
        time.sleep(0.01)


def is_full(writer):
    """Whether a pipe takes no more. Not by its bytes: short writes fill its pages with gaps."""
    return not select.select([], [writer], [], 0)[1]


def read_some(stream, size=65536, limit=DEADLINE):
    """The next bytes out of a pipe or terminal; b"" at its end."""
    fd = stream if isinstance(stream, int) else stream.fileno()
    if not select.select([fd], [], [], limit)[0]:
        pytest.fail(f"waited {limit} s in vain for output")
    try:
        return os.read(fd, size)
    except OSError:  # a terminal whose other end is closed
        return b""


def read_until(stream, text, count=1):
    """All that comes until `text` has come so many times."""
    seen = b""
    while seen.count(text.encode()) < count:
        data = read_some(stream)
        assert data, f"it ended without {text!r}: {seen[-1000:]!r}"
        seen += data
    return seen


def own_children(pid):
    """Those that are part of hvdrun: wardens and agents."""
    return [p for p in children_of(pid) if read_proc(p, "cmdline").split(b"\0")[1:2] == [b"agent"]]


def wait_for_standstill(job):
    """Until all processes of the job sleep, many looks in a row: nobody will move until somebody reads."""
    own = job.processes()  # looked for once: that takes longer than what is between two heartbeats on a busy machine
    asleep = 0

    def look():
        nonlocal asleep
        asleep = asleep + 1 if all(state_of(pid) == "S" for pid in own) else 0
        return asleep == 20

    wait_until("standstill", look, limit=3 * QUIET_S)


class Job:
    """One run of hvdrun. All its processes carry a mark in their environment."""

    def __init__(self, *args, env=None, program=None, **popen):
        self.mark = uuid.uuid4().hex
        environment = dict(os.environ, **{MARK: self.mark}, **(env or {}))
        if INSTALLED and any(name.startswith("HVD_TEST_") for name in env or {}):
            pytest.skip("an installed hvdrun knows no faults that tests make")
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        popen.setdefault("bufsize", 0)  # communicate() would lose bytes that a readline() has buffered
        self.process = subprocess.Popen([*(program or [hvdrun_path()]), *map(str, args)], env=environment, **popen)
        self.out = self.err = ""
        self.failure_code = None

    @property
    def pid(self):
        return self.process.pid

    @property
    def warden(self):
        wait_until("the warden", lambda: own_children(self.pid))
        return own_children(self.pid)[0]

    @property
    def agent(self):
        warden = self.warden
        wait_until("the agent", lambda: own_children(warden))
        return own_children(warden)[0]

    @property
    def workers(self):
        """The processes that the agent started; told by their parent, because pids begin again at some number."""
        return children_of(self.agent)

    def processes(self):
        return [p for p in pids() if is_alive(p) and environ_has(p, MARK, self.mark)]

    def job_id(self):
        for pid in self.processes():
            for entry in read_proc(pid, "environ").split(b"\0"):
                if entry.startswith(b"HVD_JOB_ID="):
                    return entry[len(b"HVD_JOB_ID=") :].decode()
        return None

    def kill_all(self):
        """Until none is left: what a worker starts while its agent is killed outlives the first round."""
        wait_until("the end of what was killed", lambda: not [kill(pid) for pid in self.processes()])

    def finish(self, limit=DEADLINE):
        """Waits for the end; returns the exit code, fills out and err."""
        try:
            out, err = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.kill_all()
            pytest.fail("hvdrun did not end")
        self.out = (out or b"").decode(errors="surrogateescape")
        self.err = (err or b"").decode(errors="surrogateescape")
        # The last line of the last block, which one test looks at (test_exit_paths.py).
        code = re.search(r"^  hvdrun explain (HVD\d+)\n", self.err, re.M)
        self.failure_code = code and code.group(1)
        if code:
            self.err = self.err[:code.start()] + self.err[code.end():]
        return self.process.returncode

    def nothing_left(self, job_id=None, within=QUIET_S):
        """No process, no socket and no shared memory of the job, at the latest `within` seconds from now."""
        wait_until(f"the end of {self.processes()}", lambda: not self.processes(), within)
        if job_id is None:
            return
        assert f"hvd-{job_id}" not in pathlib.Path("/proc/net/unix").read_text(errors="replace")
        for pid in pids():
            if b"memfd:hvd-" in read_proc(pid, "maps") and is_alive(pid):
                assert job_id.encode() not in read_proc(pid, "environ")


def jobs_here():
    """Ids of the jobs of which processes run."""
    jobs = set()
    for pid in pids():
        for variable in read_proc(pid, "environ").split(b"\0"):
            if variable.startswith(b"HVD_JOB_ID=") and is_alive(pid):
                jobs.add(variable.partition(b"=")[2])
    return jobs


def end_dead_jobs():
    """As the hvdrun of a test would, which would say so."""
    subprocess.run([hvdrun_path(), "ps"], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module", autouse=True)
def no_job_of_the_file_before():
    """Whose hosts have just been switched off, with all that they ran."""
    end_dead_jobs()


@pytest.fixture(autouse=True)
def no_job_for_the_next_test():
    before = jobs_here()
    yield
    end = time.monotonic() + scaled(5)
    while jobs_here() - before:
        if time.monotonic() > end:
            end_dead_jobs()
            break
        time.sleep(0.01)


@pytest.fixture
def start():
    """start(*args): a running Job, ended for certain after the test."""
    jobs = []

    def begin(*args, **kwargs):
        jobs.append(Job(*args, **kwargs))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.kill_all()
        job.process.wait()
        for stream in (job.process.stdout, job.process.stderr):
            if stream:
                stream.close()


@pytest.fixture
def run(start):
    """run(*args): the finished Job."""

    def begin(*args, limit=DEADLINE, **kwargs):
        job = start(*args, **kwargs)
        job.finish(limit)
        job.code = job.process.returncode
        return job

    return begin


def worker(name, *args):
    """The command line of a test worker written in Python."""
    return [sys.executable, "-S", "-E", str(WORKERS / name), *map(str, args)]


@pytest.fixture(params=["auto", "program"])
def client(request):
    """The speaker of SSH: hvdrun itself by libssh2, or the ssh program."""
    return request.param


@pytest.fixture
def hosts_run(run, rig):
    """run() on the head of the module's `rig` (host_rig.py)."""
    return lambda *args, **kwargs: run(*args, program=rig.on_head(hvdrun_path()), **kwargs)


@pytest.fixture
def hosts_start(start, rig):
    """start() there."""
    return lambda *args, **kwargs: start(*args, program=rig.on_head(hvdrun_path()), **kwargs)
