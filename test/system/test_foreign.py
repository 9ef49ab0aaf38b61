"""Ranks started by somebody else: mpirun, a launcher of one's own, an HTTP rendezvous. No hvdrun in sight, except the
agent that the first rank of a host starts."""

import hmac
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import uuid

import pytest
import slurm_rig
from conftest import DEADLINE, REPO, hvdrun_path, kill, library, package_folder, skip_without, wait_until, foreign_worker as worker
from sentences import NO_SERVER

MPIRUN = shutil.which("mpirun")
needs_mpirun = pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun")
MESH_VERSION = int(re.search(r"kMeshVersion = (\d+);", (REPO / "runtime/net/mesh/mesh_handshake.h").read_text())[1])

# Variables that a launcher or an outer job may have left in our own environment.
FOREIGN = re.compile("^(HOROVOD_|HVD_AGENT|HVD_SLOT|HVD_JOB|OMPI_|PMIX_|PMI_|SLURM_|MPI_LOCAL)")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if FOREIGN.match(name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HVD_RUNTIME", os.environ.get("HVD_RUNTIME", str(library("libhvd.so"))))
    monkeypatch.setenv("PYTHONPATH", str(package_folder()))
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    monkeypatch.setenv("HVD_HVDRUN", hvdrun_path())


def mpirun(np, *command):
    return [MPIRUN, "-np", str(np), "--oversubscribe", "--bind-to", "none", *command]


class Ranks:
    """Ranks that this test starts, as a launcher with HOROVOD_* variables would; two hosts take turns."""

    def __init__(self, start, size, *steps, job=None, hosts=1, env=None, command=None):
        self.jobs = []
        for rank in range(size):
            variables = {
                "HOROVOD_RANK": rank, "HOROVOD_SIZE": size, "HOROVOD_LOCAL_RANK": rank // hosts,
                "HOROVOD_LOCAL_SIZE": size // hosts, "HOROVOD_CROSS_RANK": rank % hosts, "HOROVOD_CROSS_SIZE": hosts,
                "HOROVOD_HOSTNAME": "host-%d" % (rank % hosts), "HOROVOD_CONTROLLER": "gloo",
            }
            if job:
                variables["HVD_JOB"] = job
            variables.update(env or {})
            program = command or worker(*steps)
            self.jobs.append(start(*program[1:], program=program[:1], env={k: str(v) for k, v in variables.items()}))

    def finish(self):
        """The lines of each rank, and the exit codes."""
        codes = [job.finish() for job in self.jobs]
        return [job.out.splitlines() for job in self.jobs], codes

    def nothing_left(self):
        for job in self.jobs:
            job.nothing_left()


@pytest.fixture
def job_name():
    return uuid.uuid4().hex


# ---- mpirun


@needs_mpirun
def test_mpirun_ranks_form_a_world(run):
    program = mpirun(4, *worker("init", "world", "sum", "shutdown"))
    job = run(*program[1:], program=program[:1])
    assert job.code == 0, job.out + job.err
    expected = ["world %d of 4 local %d of 4 cross 0 of 1" % (rank, rank) for rank in range(4)] + ["sum 10"] * 4
    assert sorted(job.out.splitlines()) == sorted(expected)
    job.nothing_left()


@needs_mpirun
def test_mpirun_trains_with_torch(run):
    skip_without("torch")
    code = (
        "import os, torch, horovod.torch as hvd; hvd.init();"
        "x = torch.arange(100000.) * (hvd.rank() + 1);"
        "assert hvd.allreduce(x, op=hvd.Sum).equal(torch.arange(100000.) * 3); os.write(1, b'right %d\\n' % hvd.rank())"
    )
    program = mpirun(2, sys.executable, "-c", code)
    job = run(*program[1:], program=program[:1])
    assert job.code == 0, job.out + job.err
    assert sorted(job.out.splitlines()) == ["right 0", "right 1"]
    job.nothing_left()


@needs_mpirun
def test_mpirun_with_one_rank_is_a_world_of_one(run):
    program = mpirun(1, *worker("init", "world"))
    job = run(*program[1:], program=program[:1], env={"HVD_HVDRUN": "/no/hvdrun"})
    assert job.out == "world 0 of 1 local 0 of 1 cross 0 of 1\n", job.err


@needs_mpirun
def test_two_mpiruns_side_by_side_never_meet(start):
    programs = [mpirun(np, *worker(*["init", "sum", "shutdown"] * 3)) for np in (2, 3)]
    jobs = [start(*program[1:], program=program[:1]) for program in programs]
    for job, expected in zip(jobs, ("sum 3", "sum 6")):
        assert job.finish() == 0, job.out + job.err
        assert set(job.out.splitlines()) == {expected}
        job.nothing_left()


@needs_mpirun
def test_a_rank_that_dies_under_mpirun_ends_the_job(run):
    program = mpirun(3, *worker("init", "sum", "1:kill", "sums"))
    job = run(*program[1:], program=program[:1])
    assert job.code != 0
    job.nothing_left()


# ---- srun


@pytest.fixture(scope="module")
def slurm():
    if slurm_rig.why_not():
        pytest.skip(slurm_rig.why_not())
    with slurm_rig.an_address_beside_loopback():
        # Unix sockets have short names.
        rig = slurm_rig.Slurm(tempfile.mkdtemp(prefix="hvd-slurm-"), nodes=2)
        yield rig
        rig.stop()
        shutil.rmtree(rig.folder, ignore_errors=True)


def test_srun_tasks_of_one_node_form_a_world(run, slurm):
    job = run("-N1", "-n3", *worker(*["init", "world", "sum", "shutdown"] * 2), program=["srun"], env=slurm.environment)
    assert job.code == 0, job.out + job.err
    world = ["world %d of 3 local %d of 3 cross 0 of 1" % (rank, rank) for rank in range(3)]
    assert sorted(job.out.splitlines()) == sorted((world + ["sum 6"] * 3) * 2)
    job.nothing_left()


def test_srun_over_two_nodes_without_a_server_is_one_sentence(run, slurm):
    job = run("-N2", "-n2", *worker("init"), program=["srun"], env=slurm.environment)
    assert job.code == 3
    assert job.out.count(NO_SERVER) == 2


def test_srun_with_pmix_can_meet_by_mpi(run, slurm):
    if "pmix" not in subprocess.run(["srun", "--mpi=list"], env=dict(os.environ, **slurm.environment), text=True,
                                    capture_output=True).stdout:
        pytest.skip("this Slurm has no PMIx")
    if not library("libhvd_mpi.so").exists():
        pytest.skip("this build has no libhvd_mpi.so")
    env = dict(slurm.environment, HOROVOD_CONTROLLER="mpi", OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include="lo")
    job = run("--mpi=pmix", "-N1", "-n2", *worker("init", "world", "facts", "sum"), program=["srun"], env=env)
    assert job.code == 0, job.out + job.err
    world = ["world %d of 2 local %d of 2 cross 0 of 1" % (rank, rank) for rank in range(2)]
    facts = ["mpi True gloo False threads True", "sum 3"] * 2
    assert sorted(line for line in job.out.splitlines() if line) == sorted(world + facts)
    job.nothing_left()


def test_a_shell_of_an_allocation_is_a_world_of_one(run, slurm, tmp_path):
    alone = "world 0 of 1 local 0 of 1 cross 0 of 1\n"
    job = run("-n4", *worker("init", "world"), program=["salloc"], env=slurm.environment)
    assert job.out == alone, job.err
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexec " + subprocess.list2cmdline(worker("init", "world")) + "\n")
    job = run("-W", "-n4", "-o", tmp_path / "out", script, program=["sbatch"], env=slurm.environment)
    assert (tmp_path / "out").read_text() == alone, job.err


def test_a_rank_that_dies_under_srun_is_named_by_the_others(run, slurm):
    job = run("-N1", "-n3", *worker("init", "sum", "1:kill", "sums"), program=["srun"], env=slurm.environment)
    assert job.code != 0
    assert len(re.findall(r"rank 1 on host node\d \(pid \d+\) died in the middle of the job", job.out)) == 2
    job.nothing_left()


# ---- a launcher of one's own, on one host


def test_ranks_with_a_job_name_need_no_server(start, job_name):
    ranks = Ranks(start, 4, "init", "world", "sum", "shutdown", job=job_name)
    lines, codes = ranks.finish()
    assert codes == [0] * 4, lines
    for rank in range(4):
        assert lines[rank] == ["world %d of 4 local %d of 4 cross 0 of 1" % (rank, rank), "sum 10"]
    ranks.nothing_left()


def test_init_twenty_times_with_ranks_that_come_at_different_times(start, job_name):
    ranks = Ranks(start, 3, *["init", "sum", "shutdown", "pause=0.01"] * 20, job=job_name)
    lines, codes = ranks.finish()
    assert codes == [0] * 3, lines
    assert lines == [["sum 6"] * 20] * 3
    ranks.nothing_left()


def test_two_jobs_side_by_side_never_meet(start, job_name):
    jobs = [Ranks(start, 2, "init", "sum", "shutdown", job=job_name + letter) for letter in "ab"]
    for ranks in jobs:
        lines, codes = ranks.finish()
        assert codes == [0] * 2 and lines == [["sum 3"]] * 2
        ranks.nothing_left()


def test_a_rank_that_is_killed_is_named_by_the_others(start, job_name):
    ranks = Ranks(start, 3, "init", "sum", "1:kill", "sums", job=job_name)
    lines, codes = ranks.finish()
    assert codes == [3, -9, 3], lines
    for rank in (0, 2):
        assert re.match(
            r"failed: .*rank 1 on host host-0 \(pid \d+\) died in the middle of the job, without hvd.shutdown\(\)",
            lines[rank][-1],  # the first sum of a rank that is slow may be the one that fails
        ), lines
    ranks.nothing_left()


@pytest.mark.parametrize("one_is_slow", [False, True])
def test_the_death_of_the_agent_ends_the_world_and_leaves_nothing(start, job_name, one_is_slow):
    """Both ranks name the agent, also one that looks only after the other has come to its end."""
    ranks = Ranks(start, 2, "init", "sum", "sums", job=job_name)
    agents = lambda: [
        p for job in ranks.jobs for p in job.processes()
        if b"\0agent\0--adopt\0" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()
    ]
    for job in ranks.jobs:
        assert job.process.stdout.readline() == b"sum 3\n"
    wait_until("the agent", agents)
    if one_is_slow:
        os.kill(ranks.jobs[1].pid, signal.SIGSTOP)
    os.kill(agents()[0], 9)
    if one_is_slow:
        ranks.jobs[0].process.wait(DEADLINE)
        os.kill(ranks.jobs[1].pid, signal.SIGCONT)
    lines, codes = ranks.finish()
    assert codes == [3, 3] and all("the agent of this host is gone" in line for (line,) in lines), lines
    ranks.nothing_left()


def test_operations_that_are_asked_for_are_obeyed_or_refused(start, job_name):
    """There is no default of the build that could be ignored: the environment counts, and it is read."""
    for asked, says in (("ccl", "is 'ccl', which is neither"), ("gloo", "sum 3")):
        ranks = Ranks(start, 2, "init", "sum", "shutdown", job=job_name + asked, env={"HOROVOD_CPU_OPERATIONS": asked})
        lines, codes = ranks.finish()
        assert codes == ([0, 0] if asked == "gloo" else [3, 3]) and all(says in line for (line,) in lines), lines
        ranks.nothing_left()


def test_a_second_script_in_the_same_ranks_forms_a_world_of_its_own(start, job_name):
    one = subprocess.list2cmdline(worker("init", "sum", "shutdown"))
    ranks = Ranks(start, 2, job=job_name, command=["sh", "-c", f"{one}; {one}; {one}"])
    lines, codes = ranks.finish()
    assert codes == [0, 0] and lines == [["sum 3"] * 3] * 2, lines
    ranks.nothing_left()


def test_a_second_script_may_meet_the_agent_of_a_rank_that_has_ended(start, job_name):
    """Rank 0 starts the agent of its first script, ends, and comes again while rank 1 is still in its first."""
    one = subprocess.list2cmdline(worker("pause=0.5", "init", "sum", "shutdown", "pause=1"))
    ranks = Ranks(start, 2, job=job_name, command=["sh", "-c", f"{one}; {one}"])
    lines, codes = ranks.finish()
    assert codes == [0, 0] and lines == [["sum 3"] * 2] * 2, lines
    ranks.nothing_left()


def test_a_rank_that_never_comes_again_is_missed_aloud(start, job_name):
    steps = ["init", "sum", "shutdown", "0:init"]
    ranks = Ranks(start, 2, *steps, job=job_name, env={"HVD_TEST_ABSENCE_MS": "200"})
    lines, codes = ranks.finish()
    assert codes == [3, 0], lines
    assert "rank 1 has ended, and no process has taken its place" in lines[0][1]
    ranks.nothing_left()


# ---- sentences


@pytest.mark.parametrize(
    "env, says",
    [
        ({"HOROVOD_SIZE": ""}, "HOROVOD_RANK is set and HOROVOD_SIZE is not"),
        ({"HVD_JOB": ""}, "HOROVOD_GLOO_RENDEZVOUS_ADDR and HOROVOD_GLOO_RENDEZVOUS_PORT are not set"),
        ({"HOROVOD_LOCAL_RANK": "0", "HOROVOD_LOCAL_SIZE": "1"}, "the world spans several hosts"),
        ({"HVD_HVDRUN": "/no/hvdrun"}, "set HVD_HVDRUN to the path of hvdrun"),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
          "OMPI_COMM_WORLD_LOCAL_SIZE": "8"}, "unset those that were left over from another launcher"),
    ],
)
def test_an_environment_that_makes_no_sense_is_one_sentence(start, job_name, env, says):
    ranks = Ranks(start, 2, "init", job=job_name, env=env)
    lines, codes = ranks.finish()
    assert codes == [3, 3]
    for (line,) in lines:
        assert says in line
    ranks.nothing_left()


# ---- several hosts and an HTTP rendezvous


class Rendezvous(http.server.BaseHTTPRequestHandler):
    def log_message(self, *unused):
        pass

    def do_PUT(self):
        self.server.values[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def do_GET(self):
        value = self.server.forge(self.path, self.server.values.get(self.path))
        self.send_response(404 if value is None else 200)
        self.send_header("Content-Length", str(len(value or b"")))
        self.end_headers()
        self.wfile.write(value or b"")


class Server(dict):
    """The variables that announce it; `values` by path, and `forge` if it is hostile."""

    def __init__(self, variables, server):
        super().__init__(variables)
        self.server = server


@pytest.fixture
def rendezvous():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Rendezvous)
    server.values = {}
    server.forge = lambda path, value: value  # a hostile server gives something else
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    host, port = server.server_address
    yield Server({"HOROVOD_GLOO_RENDEZVOUS_ADDR": host, "HOROVOD_GLOO_RENDEZVOUS_PORT": port}, server)
    server.shutdown()
    thread.join()
    server.server_close()


def test_ranks_that_do_not_come_are_waited_for_within_the_limit_of_horovod(start, rendezvous):
    """Where HOROVOD_GLOO_TIMEOUT_SECONDS is set. Rank 1 never calls hvd.init()."""
    env = dict(rendezvous, HOROVOD_GLOO_TIMEOUT_SECONDS=3)
    command = ["sh", "-c", "[ $HOROVOD_RANK = 1 ] && exec true; exec " + subprocess.list2cmdline(worker("init"))]
    ranks = Ranks(start, 2, hosts=2, env=env, command=command)
    lines, codes = ranks.finish()
    assert codes == [3, 0], lines
    assert "rank 1 has not called hvd.init() within the 3 s of HOROVOD_GLOO_TIMEOUT_SECONDS" in "".join(lines[0]), lines
    ranks.nothing_left()


def test_a_rendezvous_that_is_not_there_is_one_sentence(start):
    (port,) = slurm_rig.free_ports(1)
    env = {"HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": port,
           "HVD_TEST_STORE_SILENCE_MS": 300}
    ranks = Ranks(start, 4, "init", hosts=2, env=env)
    lines, codes = ranks.finish()
    assert codes == [3] * 4, lines
    for (line,) in lines:
        assert f"the key-value server at 127.0.0.1:{port}: Connection refused; is it the one of this job" in line
    ranks.nothing_left()


def test_ranks_of_one_host_do_not_even_ask_the_rendezvous(start):
    env = {"HOROVOD_GLOO_RENDEZVOUS_ADDR": "192.0.2.77", "HOROVOD_GLOO_RENDEZVOUS_PORT": 1}
    ranks = Ranks(start, 2, "init", "sum", "shutdown", env=env)
    lines, codes = ranks.finish()
    assert codes == [0, 0] and lines == [["sum 3"]] * 2
    ranks.nothing_left()


def test_hosts_meet_by_the_rendezvous(start, rendezvous):
    ranks = Ranks(start, 4, "init", "world", "sum", "shutdown", hosts=2, env=rendezvous)
    lines, codes = ranks.finish()
    assert codes == [0] * 4, lines
    for rank in range(4):
        assert lines[rank] == ["world %d of 4 local %d of 2 cross %d of 2" % (rank, rank // 2, rank % 2), "sum 10"]
    ranks.nothing_left()


def world_with(change):
    """Forges what the server has under world.N: `change` gets its words."""
    def forge(path, value):
        if value is None or "/world." not in path:
            return value
        words = value.split(b" ")
        hosts = int(words[3])
        return b" ".join(change(words[:3], words[4:4 + hosts], words[5 + hosts:]))
    return forge


def world_words(head, tokens, runs):
    return head + [b"%d" % len(tokens)] + tokens + [b"%d" % (len(runs) // 4)] + runs


STRANGER = b"f" * 16
FORGERIES = {
    # our token is the number of a host that the layout does not have: read and resized out of bounds
    "a host beyond the layout": (
        "world", world_with(lambda head, tokens, runs: world_words(head, [tokens[0], STRANGER, tokens[1]], runs)),
        "names 3 hosts for a world of 2 ranks"),
    "a host far beyond the layout": (
        "world", world_with(lambda head, tokens, runs: world_words(
            head, tokens[:1] + [b"%016x" % n for n in range(3000)] + tokens[1:], runs)), "is too long"),
    "a count of four thousand million": (
        "world", world_with(lambda head, tokens, runs: head + [b"4000000000"] + tokens),
        "names 4000000000 hosts for a world of 2 ranks"),
    "a run of four thousand million": (
        "world", world_with(lambda head, tokens, runs: world_words(head, tokens, [b"0", b"0", b"1", b"4000000000"])),
        "has a layout of 4000000000 ranks for a world of 2"),
    "a layout in which we are somebody else": (
        "world", world_with(lambda head, tokens, runs: world_words(head, tokens[::-1], runs)), "has other ranks on this host"),
    "the last of all generations": (
        "world", world_with(lambda head, tokens, runs: world_words([head[0], b"18446744073709551615", head[2]], tokens, runs)),
        "has a generation that cannot be"),
    "no generation": (
        "world", world_with(lambda head, tokens, runs: world_words([head[0], b"0", head[2]], tokens, runs)),
        "has a generation that cannot be"),
    "a key of the stranger's": (
        "world", world_with(lambda head, tokens, runs: world_words([head[0], head[1], b"0"], tokens, runs)), "has no key"),
    "bytes for a world": ("world", lambda path, value: value and b"\x1b[2J\0\xff" if "/world." in path else value, "is no note"),
    "a world of 100 MB": ("world", lambda path, value: value and b"x" * 100_000_000 if "/world." in path else value, "is too long"),
    "bytes for a rank": ("rank", lambda path, value: value and b"\0" * 200 if "/rank." in path else value, "is no note about a rank"),
    "a rank with the last local rank": (
        "rank", lambda path, value: value and value.replace(b" 0 0", b" 4294967295 0") if "/rank." in path else value,
        "has a local rank that cannot be"),
    "a rank with the last generation": (
        "rank", lambda path, value: value and value.replace(b" 0 0", b" 0 18446744073709551615") if "/rank." in path else value,
        "has a generation that cannot be"),
    "a name of 100 MB": ("leader", lambda path, value: value and b"x" * 100_000_000 if "/leader" in path else value, "is too long"),
    "a name that is none": ("leader", lambda path, value: value and b"../../x" if "/leader" in path else value, "names no rendezvous"),
    "an entry of 100 MB": ("entry", lambda path, value: value and b"x" * 100_000_000 if "/entry." in path else value, "is too long"),
    "a break that is no sentence": ("broken", lambda path, value: b"\xb9" if "/broken." in path else value, "is no sentence"),
    "a break of 100 MB": ("broken", lambda path, value: b"x" * 100_000_000 if "/broken." in path else value, "is too long"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_hostile_key_value_server_ends_the_world_with_a_sentence(start, rendezvous, name):
    """No agent crashes or takes much memory: a sentence names the server and the record, on the host that read it. The
    other host hears of it, or loses its peer."""
    record, forge, says = FORGERIES[name]
    rendezvous.server.forge = forge
    most = 3 << 30
    command = ["sh", "-c", f"ulimit -v {most >> 10}; ulimit -c 0; exec " + subprocess.list2cmdline(worker("init", "sums"))]
    env = dict(rendezvous, HOROVOD_GLOO_TIMEOUT_SECONDS=10)
    ranks = Ranks(start, 2, hosts=2, env=env, command=command)
    if record == "leader":  # the host of rank 0 is not asked: it waits until its launcher ends it
        ranks.jobs[1].finish()
        kill(ranks.jobs[0].pid)
    lines, codes = ranks.finish()
    address = "%s:%d" % rendezvous.server.server_address
    told = [line for job in lines for line in job if line.startswith("failed:") and says in line]
    assert told, lines
    pattern = f"the key-value server at {address} has a record hvdrun/{record}" + r"\S* that " + re.escape(says)
    for line in told:
        assert re.search(pattern, line) and len(line) < 1000 and line.isprintable(), line
    assert codes[1] == 3 and codes[0] == (-9 if record == "leader" else 3), (codes, lines)
    assert not any("agent of this host" in line for job in lines for line in job), lines
    ranks.nothing_left()


# ---- secrets of a job


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text("a secret of the user's own, 0123456789\n")
    path.chmod(0o600)
    return path


def spread_over_hosts(command):
    """A command for mpirun on one machine whose ranks believe that each is on a host of its own; MPI itself would not."""
    return ["sh", "-c", "export HOROVOD_CONTROLLER=gloo PMIX_NAMESPACE=$PMIX_NAMESPACE.$OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK=0 "
                        "OMPI_COMM_WORLD_LOCAL_SIZE=1; exec " + subprocess.list2cmdline(command)]


def answer_to_a_hello(values):
    """The answer of rank 0 to one who has read the server and says that it is rank 1: 64 bytes if it is believed."""
    (world,) = [value.split() for path, value in values.items() if "/world." in path]
    (record,) = [value.decode() for path, value in values.items() if path.endswith(".mesh.0")]
    host, port = re.search(r" 127\.0\.0\.1:\d+", record)[0].strip().split(":")
    hello = b"HvMh" + struct.pack("<IQIII", MESH_VERSION, int(world[1]), 1, 0, 0) + bytes(32)
    hello += hmac.digest(world[2], b"hvd mesh hello\0" + hello, "sha256")
    with socket.create_connection((host, int(port)), DEADLINE) as to:
        to.settimeout(DEADLINE)
        to.sendall(hello)
        to.shutdown(socket.SHUT_WR)
        heard = b""
        try:
            while more := to.recv(4096):
                heard += more
        except ConnectionResetError:
            pass
    return len(heard)


@pytest.mark.parametrize("secret", ["none", "file", "variable", pytest.param("mpirun", marks=needs_mpirun)])
def test_one_who_reads_the_server_gets_into_a_world_without_a_secret_only(start, rendezvous, secret, secret_file):
    env = dict(rendezvous)
    if secret == "file":
        env["HVD_WORLD_SECRET_FILE"] = secret_file
    if secret == "variable":
        env["HVD_WORLD_SECRET"] = "0123456789abcdef"
    steps = worker("init", "sum", "sums")
    if secret == "mpirun":
        program = mpirun(2, *spread_over_hosts(steps))
        jobs = [start(*program[1:], program=program[:1], env={k: str(v) for k, v in env.items()})]
        said = [jobs[0].process.stdout.readline() for _ in range(2)]
    else:
        jobs = Ranks(start, 2, hosts=2, env=env, command=steps).jobs
        said = [job.process.stdout.readline() for job in jobs]
    assert said == [b"sum 3\n"] * 2
    assert answer_to_a_hello(rendezvous.server.values) == (64 if secret == "none" else 0)
    for path, value in rendezvous.server.values.items():
        assert b"0123456789" not in value
        assert (b" seal=" in value) == (secret != "none" and not path.endswith("/leader")), path
    for job in jobs:
        job.process.terminate()
    for job in jobs:
        job.finish()
        job.nothing_left()
    warned = sum(job.err.count("set HVD_WORLD_SECRET_FILE") for job in jobs)
    assert warned == (1 if secret == "none" else 0), [job.err for job in jobs]


@pytest.mark.parametrize("other", ["another secret, 0123456789", None])
def test_a_secret_that_is_not_the_same_everywhere_is_a_sentence(start, rendezvous, other):
    """One sentence on the host that reads the first record of the other, which hears of it or waits for its launcher."""
    command = ["sh", "-c", '[ $HOROVOD_RANK = 0 ] || export HVD_WORLD_SECRET="$OTHER"; exec ' +
               subprocess.list2cmdline(worker("init"))]
    env = dict(rendezvous, HVD_WORLD_SECRET="one secret, 0123456789", OTHER=other or "")
    ranks = Ranks(start, 2, hosts=2, env=env, command=command)
    lines, codes = ranks.finish()
    assert codes == [3, 3], lines
    assert re.search(r"has a record hvdrun/rank\S+ that is not sealed with the secret of this host", lines[0][0]), lines
    assert "sealed with" in lines[1][0], lines
    ranks.nothing_left()


@pytest.mark.parametrize("mode, content, says", [
    (0o644, "0123456789abcdef", "may be used by other users"),
    (0o600, "short", "has a secret of 5 bytes; 16 to 1024 are possible"),
    (0o600, "x" * 5000, "16 to 1024 are possible"),
    (None, "", "cannot be read: No such file"),
])
def test_a_secret_that_is_none_is_a_sentence(start, job_name, tmp_path, mode, content, says):
    path = tmp_path / "secret"
    if mode is not None:
        path.write_text(content)
        path.chmod(mode)
    ranks = Ranks(start, 2, "init", job=job_name, env={"HVD_WORLD_SECRET_FILE": path})
    lines, codes = ranks.finish()
    assert codes == [3, 3]
    for (line,) in lines:
        assert f"HVD_WORLD_SECRET_FILE={path} " in line and says in line
    ranks.nothing_left()


# ---- containers that share a network


def test_a_rank_and_an_agent_of_two_containers_never_meet(start, job_name):
    """The same user, job and place, in another process namespace: it finds no agent of ours, and is no rank of ours."""
    ranks = Ranks(start, 2, "init", "sum", "sums", job=job_name)
    for job in ranks.jobs:
        assert job.process.stdout.readline() == b"sum 3\n"
    (ours,) = adopt_addresses()
    container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    env = {"HOROVOD_SIZE": 2, "HOROVOD_LOCAL_SIZE": 2}
    stranger = Ranks(start, 1, job=job_name, command=[*container, *worker("init")], env=env)
    # If it met our agent it would be told that there is a rank 0 already. It waits for a rank 1 of its own container.
    wait_until("an agent of its own", lambda: len(adopt_addresses()) == 2)
    # One that knows our agent's address is sent away before it has said a word: it hears nothing but the end.
    knock = ("import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(60);"
             "s.connect(sys.argv[1].replace('@', '\\0')); print(s.recv(100))")
    command = [*container, sys.executable, "-c", knock, ours]
    assert subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE).stdout == "b''\n"
    assert stranger.jobs[0].process.poll() is None
    for job in stranger.jobs + ranks.jobs:
        job.process.kill()
    for job in stranger.jobs + ranks.jobs:
        job.finish()
        job.nothing_left()


def adopt_addresses():
    lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
    return {line.split()[-1] for line in lines if "@hvd-adopt-" in line and line.split()[3] == "00010000"}
