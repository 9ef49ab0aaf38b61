"""One machine plays several hosts that form one world: shared memory inside a host, libhvd_gloo.so between them."""

import ctypes
import os
import pathlib
import re
import select
import signal
import socket

import pytest

from conftest import REPO, WORKERS, has_modules, hvdrun_path, library, needs_the_build_tree, read_some, wait_until
from sentences import STALL_LIMIT_PASSED

PYTHON = "/usr/bin/python3"
GLOO = library("libhvd_gloo.so")


pytestmark = [
    pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so"),
    pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy"),
]


def hosts_worker(*args):
    return [PYTHON, WORKERS / "hosts_worker.py", *args]


def lines_with(word, text):
    return [line for line in text.splitlines() if word in line]


@pytest.mark.parametrize("ranks, hosts", [(2, 2), (3, 2), (4, 2), (3, 3)])
def test_every_operation_works_across_hosts(run, ranks, hosts):
    job = run("-np", ranks, "--hosts-per-machine", hosts, *hosts_worker("everything"))
    assert job.code == 0, job.out + job.err
    said = {line.split("everything")[1] for line in lines_with("everything", job.out)}
    assert len(lines_with("everything", job.out)) == ranks and len(said) == 1, "all name the same last rank"
    assert said.pop().split()[1] == "True"
    job.nothing_left()


class Busy:
    """A job whose ranks are in the middle of collectives, and its words while it is watched."""

    def __init__(self, job, ranks):
        self.job, self.out, self.err = job, "", ""
        wait_until("all ranks at work", lambda: len(self.pids()) == ranks or self.read())

    def pids(self):
        return {int(rank): int(pid) for rank, pid in re.findall(r"busy (\d+) (\d+)", self.out)}

    def read(self):
        """False: nobody has to be told that there may be more."""
        streams = [self.job.process.stdout, self.job.process.stderr]
        for stream in select.select(streams, [], [], 0.05)[0]:
            text = os.read(stream.fileno(), 65536).decode()
            if stream is streams[0]:
                self.out += text
            else:
                self.err += text

    def end(self):
        self.job.finish()
        self.out, self.err = self.out + self.job.out, self.err + self.job.err
        self.job.nothing_left()
        return self.job.process.returncode

    def told(self):
        return lines_with("told after", self.out)


@pytest.fixture
def busy(start):
    def begin(ranks, *args, hosts=2, **env):
        return Busy(start("-np", ranks, "--hosts-per-machine", hosts, *hosts_worker(*args), env=env), ranks)

    return begin


# The collective, ranks, hosts, and who is hit: rank 0 (the coordinator), other leaders, and ranks that lead nothing.
HITS = [
    ("allreduce", 4, 2, 0),
    ("allreduce", 2, 1, 1),
    ("allreduce", 8, 2, 5),
    ("small", 4, 2, 1),
    ("small", 2, 2, 1),
    ("allgather", 4, 2, 2),
    ("broadcast", 4, 2, 3),
    ("alltoall", 4, 2, 0),
    ("alltoall", 3, 3, 2),
    ("reducescatter", 4, 2, 2),
    ("barrier", 4, 2, 3),
]


@pytest.mark.parametrize("collective, ranks, hosts, victim", HITS)
def test_a_killed_rank_is_the_first_cause_on_all_hosts(busy, collective, ranks, hosts, victim):
    job = busy(ranks, "break", collective, hosts=hosts)
    os.kill(job.pids()[victim], signal.SIGKILL)
    assert job.end() == 137, job.out + job.err
    assert job.told(), job.out + job.err
    for line in job.told():
        assert "rank %d on host" % victim in line, line
        assert float(re.search(r"told after ([0-9.]+) s", line).group(1)) < 20
    assert "hvdrun: rank %d on host " % victim in job.err


@pytest.mark.parametrize("collective, ranks, hosts, victim", HITS)
def test_a_stopped_rank_is_named_and_goes_on(busy, tmp_path, collective, ranks, hosts, victim):
    if collective == "barrier":
        collective = "small"  # a barrier cannot say that the file is there
    watcher = 0 if victim != 0 else ranks - 1
    job = busy(ranks, "steady", collective, tmp_path / "enough", hosts=hosts, HOROVOD_STALL_CHECK_TIME_SECONDS="1")
    os.kill(job.pids()[victim], signal.SIGSTOP)
    # By the watcher as one of a host that is not ready; if it stopped in the middle of its host's sum, by its neighbours,
    # and by the watcher as one of the host of its leader, which does not answer.
    leader = victim - victim % (ranks // hosts)
    sentence = r"rank %s has waited \d+ s in '[a-z.]*gradient' .*\b(%s)\b"
    elsewhere, named = sentence % (watcher, "%d|%d" % (victim, leader)), sentence % (r"\d+", victim)
    wait_until("sentences about rank %d" % victim,
               lambda: all(re.search(said, job.err) for said in (elsewhere, named)) or job.read(), told=lambda: job.err)
    os.kill(job.pids()[victim], signal.SIGCONT)
    (tmp_path / "enough").touch()
    assert job.end() == 0, job.out + job.err
    assert len(lines_with("through", job.out)) == ranks, job.out + job.err


@pytest.mark.parametrize("victim", [0, 2, 3])
def test_a_rank_that_stays_stopped_ends_the_job_where_the_user_set_a_limit(busy, victim):
    limits = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "3"}
    job = busy(4, "break", "allreduce", **limits)
    os.kill(job.pids()[victim], signal.SIGSTOP)
    assert job.end() == 79, job.out + job.err
    assert re.search(rf"  rank {victim} on host \S+ \(pid \d+\) is stopped: by a signal", job.err), job.err
    assert job.told(), job.out + job.err
    for line in job.told():
        assert STALL_LIMIT_PASSED in line, line


@pytest.mark.parametrize("ranks, hosts", [(2, 2), (4, 2), (3, 1)])
def test_a_stall_beyond_its_limit_ends_the_world_on_all_hosts_with_one_sentence(run, tmp_path, ranks, hosts):
    absent = ranks - 1
    limits = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "2"}
    job = run("-np", ranks, "--hosts-per-machine", hosts, *hosts_worker("absent", absent, tmp_path / "told"), env=limits)
    told = lines_with("told:", job.out)
    assert len(told) == ranks, job.out + job.err
    for line in told:
        assert STALL_LIMIT_PASSED in line, line
        if "in 'allreduce.later' for rank 0" in line:
            # The one that was absent comes when rank 0 has told the others and left: its own limit ends it.
            assert line.startswith(f"[{absent}]"), line
            continue
        assert "in 'allreduce.without one' for " in line and re.search(r"\b%d\b" % absent, line), line
    assert any("in 'allreduce.without one' for " in line for line in told), told


def connections_of(pid):
    """Descriptors of the process that are established TCP connections."""
    established = set()
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "01":
            established.add("socket:[%s]" % fields[9])
    fds = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            if os.readlink("/proc/%d/fd/%s" % (pid, fd)) in established:
                fds.append(int(fd))
        except OSError:
            pass  # closed meanwhile
    return sorted(fds)


def cut(pid, fd):
    """Shuts a connection of another process down, whatever it is doing with it."""
    pidfd_getfd = 438
    pidfd = os.pidfd_open(pid)
    try:
        copy = ctypes.CDLL(None, use_errno=True).syscall(pidfd_getfd, pidfd, fd, 0)
    finally:
        os.close(pidfd)
    if copy < 0:
        pytest.skip("descriptors of other processes cannot be had here: " + os.strerror(ctypes.get_errno()))
    with socket.socket(fileno=copy) as connection:
        connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("which", [0, 1])  # each direction has a connection of its own
@pytest.mark.parametrize("collective", ["allreduce", "small", "allgather", "broadcast", "alltoall", "reducescatter", "barrier"])
def test_a_cut_connection_ends_the_collective_on_all_hosts(busy, collective, which):
    job = busy(4, "break", collective)
    connections = connections_of(job.pids()[2])
    # One each way between the leaders; small messages of both directions share the first.
    assert len(connections) == 2 or (collective == "small" and len(connections) == 1), connections
    cut(job.pids()[2], connections[which % len(connections)])
    assert job.end() == 3, job.out + job.err
    assert job.told(), job.out + job.err
    for line in job.told():
        assert re.search(r"rank [02]( at [0-9.:]+)? is gone|gave up|rank \d \(pid", line), line


@pytest.mark.parametrize("victim", ["agent", "warden"])
def test_a_lost_host_ends_the_job_everywhere(start, victim):
    job = start("-np", 4, "--hosts-per-machine", 2, *hosts_worker("break", "allreduce"))
    assert b"busy" in read_some(job.process.stdout)
    os.kill(job.agent if victim == "agent" else job.warden, signal.SIGKILL)
    wait_until("the end of the job", lambda: job.process.poll() is not None)
    job.nothing_left()


def test_a_rank_that_leaves_fails_what_needs_it(run):
    job = run("-np", 4, "--hosts-per-machine", 2, *hosts_worker("leave"))
    assert job.code == 0, job.out + job.err
    told = lines_with("told:", job.out)
    assert len(told) == 3 and all(" left the world before it took part" in line for line in told), job.out


def test_when_rank_0_leaves_nothing_crosses_any_more(run):
    """It arranges the work of all hosts. Also for a host that has never said anything to it."""
    for met in ("met", "never"):
        job = run("-np", 4, "--hosts-per-machine", 2, *hosts_worker("without-0", met))
        assert job.code == 0, job.out + job.err
        told = lines_with("told:", job.out)
        assert len(told) == 2, job.out + job.err
        for line in told:
            assert "rank 0, which arranges the work of all hosts" in line and "left" in line, line
        job.nothing_left()


@needs_the_build_tree("it copies the folders of one")
def test_without_the_library_init_says_what_is_missing(run, tmp_path):
    inside = pathlib.Path(hvdrun_path()).resolve().parent.parent
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    for part in ("bin/hvdrun", "lib/libhvd.so"):
        (tmp_path / part).write_bytes((inside / part).read_bytes())
        (tmp_path / part).chmod(0o755)
    (tmp_path / "lib/hvdrun").symlink_to(inside / "lib/hvdrun")
    program = [str(tmp_path / "bin/hvdrun")]
    job = run("-np", 2, "--hosts-per-machine", 2, *hosts_worker("everything"), program=program)
    assert job.code != 0
    assert "cannot load libhvd_gloo.so" in job.err
    job.nothing_left()


@pytest.mark.skipif(not has_modules("torch", "sklearn"), reason="the example needs PyTorch and scikit-learn")
@pytest.mark.soak
def test_digits_learn_alike_on_one_host_and_on_two(run):
    curves = []
    for hosts in (1, 2):
        job = run("-np", 4, "--hosts-per-machine", hosts, PYTHON, REPO / "examples" / "pytorch_digits.py")
        assert job.code == 0, job.out + job.err
        curve = re.findall(r"loss ([0-9.]+)\s+test accuracy ([0-9.]+)", job.out)
        curves.append([(float(loss), float(accuracy)) for loss, accuracy in curve])
    one, two = curves
    assert len(one) == len(two) > 0
    for (loss, accuracy), (other_loss, other_accuracy) in zip(one, two):
        # Sums of sums round otherwise than one sum of all: the last digit that is printed, and one of 360 pictures.
        assert abs(loss - other_loss) < 0.002 and abs(accuracy - other_accuracy) < 0.6, (one, two)


def read_of(pid):
    """Bytes that a process has read so far, from files and connections alike; shared memory is not among them."""
    return int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text()).group(1))


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "broadcast", "reducescatter", "alltoall"])
def test_ranks_of_a_host_meet_in_memory_and_one_of_them_goes_to_the_other_host(busy, tmp_path, collective):
    """For every collective, and without NCCL: only the first rank of each host reads from a connection at all."""
    job = busy(6, "steady", collective, tmp_path / "enough", hosts=2)
    pids = job.pids()
    before = {rank: read_of(pid) for rank, pid in pids.items()}
    # A step moves 100 KB between the hosts at the least; whoever leads has to get some of them.
    wait_until("some steps", lambda: read_of(pids[3]) > before[3] + 2e6 or job.read())
    moved = {rank: read_of(pid) - before[rank] for rank, pid in pids.items()}
    connections = {rank: len(connections_of(pid)) for rank, pid in pids.items()}
    (tmp_path / "enough").touch()
    assert job.end() == 0, job.out + job.err
    assert connections == {0: 2, 1: 0, 2: 0, 3: 2, 4: 0, 5: 0}, connections
    assert all(moved[rank] < moved[3] / 20 for rank in (1, 2, 4, 5)), moved
