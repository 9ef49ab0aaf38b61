"""The same command on every node, as a TrainJob with a torch runtime, a JobSet or an indexed Job starts it: no SSH, node 0 leads, the others
dial it. Nodes are hosts of the rig, which play pods."""

import subprocess
import sys
import time

import pytest
from conftest import DEADLINE, hvdrun_path, kill, read_proc, wait_until
from elastic_job import SCRIPT
from host_rig import WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
rig = rig_of(2)

WORLD = ("import os, platform; from horovod.common.basics import shared; hvd = shared(); hvd.init(); "
         "print('rank', hvd.rank(), 'of', hvd.size(), 'on', platform.node(), flush=True); hvd.shutdown()")
ALL = sorted(f"rank {rank} of 6 on {host}" for rank, host in enumerate(("head", "head", "hvd1", "hvd1", "hvd2", "hvd2")))


class Group:
    """Node 0 is the head, node 1 is hvd1, ..."""

    def __init__(self, rig, words, **variables):
        self.rig, self.words = rig, words
        self.variables = {"HVD_NODES": "3", "HVD_LEADER": "head:29777", "HVD_NODE_SLOTS": "2", **variables}
        self.processes = {}

    def start(self, node, stdout=subprocess.PIPE, **more):
        place = self.rig.hosts[node - 1].command if node else self.rig.on_head
        settings = {"HVD_NODE_RANK": str(node), **self.variables, "HVD_JOB_KEY_FILE": str(self.rig.folder / "job_key"), **more}
        words = [str(word).replace("NODE", str(node)) for word in self.words]
        settings = [f"{name}={value}" for name, value in settings.items() if value is not None]
        self.processes[node] = subprocess.Popen(place("env", *settings, hvdrun_path(), *words), stdin=subprocess.DEVNULL,
                                                stdout=stdout, stderr=subprocess.STDOUT if stdout != subprocess.PIPE else subprocess.PIPE,
                                                text=True)
        return self.processes[node]

    def kill(self, node):
        """The hvdrun of this node, alone: nsenter is its parent in another process namespace."""
        for pid in self.rig.hosts[node - 1].processes():
            if read_proc(pid, "cmdline").startswith(hvdrun_path().encode() + b"\0") and b"\0agent\0" not in read_proc(pid, "cmdline"):
                kill(pid)

    def finish(self, limit=DEADLINE):
        """{node: (exit code, stdout, stderr)}"""
        ends = {}
        try:
            for node, process in self.processes.items():
                out, err = process.communicate(timeout=limit)
                ends[node] = process.returncode, out, err
        finally:
            self.end()
        return ends

    def end(self):
        for node, process in self.processes.items():
            if process.poll() is None:
                self.kill(node) if node else process.kill()
                process.wait()


@pytest.fixture
def group(rig):
    made = []
    (rig.folder / "job_key").write_text("0123456789abcdef0123456789abcdef\n")

    def make(*words, **variables):
        made.append(Group(rig, words, **variables))
        return made[-1]

    yield make
    for one in made:
        one.end()
    rig.nothing_left()


def agents(host):
    return [pid for pid in host.processes() if b"\0agent\0" in read_proc(pid, "cmdline")]


def lines_of(out):
    return sorted(line[line.index("rank "):].split(": ")[-1] for line in out.splitlines() if "rank " in line)


TORCHRUN = {"HVD_NODES": None, "HVD_LEADER": None, "HVD_NODE_SLOTS": None, "PET_NNODES": "3", "PET_MASTER_ADDR": "head",
            "PET_MASTER_PORT": "29778", "PET_NPROC_PER_NODE": "2"}


@pytest.mark.parametrize("variables", [{}, TORCHRUN], ids=["HVD", "PET"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)], ids=["node 0 first", "node 0 last"])
def test_the_same_command_on_every_node_is_one_job(group, variables, order):
    job = group("--prefix", "", sys.executable, "-c", WORLD, **variables)
    for node in order:
        rank = {"PET_NODE_RANK": str(node), "HVD_NODE_RANK": None} if variables else {}
        job.start(node, **rank)
        time.sleep(0.5)  # so that the order is the one of the name
    ends = job.finish()
    assert all(code == 0 for code, _, _ in ends.values()), ends
    assert lines_of(ends[0][1]) == ALL, ends
    assert ends[1][1] == ends[2][1] == "", ends
    assert "3 hosts: localhost, " in ends[0][2] and "node 2 of 3 follows node 0 at head" in ends[2][2]


NO_VARIABLES = {"HVD_NODES": None, "HVD_LEADER": None, "HVD_NODE_SLOTS": None, "HVD_NODE_RANK": None}
OPTIONS = {
    "torchrun": ["--nnodes", 3, "--node-rank", "NODE", "--master-addr", "head", "--master-port", 29779, "--nproc-per-node", 2],
    "torchrun, a rendezvous": ["--nnodes=3", "--node_rank=NODE", "--rdzv_backend=c10d", "--rdzv_id=7", "--rdzv_endpoint=head:29780", "--nproc_per_node=2"],
    "accelerate": ["--num_machines", 3, "--machine_rank", "NODE", "--main_process_ip", "head", "--main_process_port", 29781, "--num_processes", 6],
}


@pytest.mark.parametrize("launcher", OPTIONS)
def test_options_of_other_launchers_start_the_same_job(group, launcher):
    job = group("--prefix", "", *OPTIONS[launcher], sys.executable, "-c", WORLD, **NO_VARIABLES)
    for node in (2, 0, 1):
        job.start(node)
    ends = job.finish()
    assert all(code == 0 for code, _, _ in ends.values()), ends
    assert lines_of(ends[0][1]) == ALL, ends
    assert ends[1][1] == ends[2][1] == "" and "node 2 of 3 follows node 0 at head" in ends[2][2], ends


MEETING = ["--nnodes", 3, "--rdzv-backend", "c10d", "--rdzv-id", 7, "--rdzv-endpoint", "head:29783", "--nproc-per-node", 2]
PYTORCHJOB = {"PET_NNODES": "3", "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "10.99.0.1:29784", "PET_NPROC_PER_NODE": "2"}


@pytest.mark.parametrize("words, variables", [(MEETING, NO_VARIABLES), ([], {**NO_VARIABLES, **PYTORCHJOB})], ids=["options", "PET"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)], ids=["node 0 first", "node 0 last"])
def test_nodes_need_no_rank_where_the_endpoint_says_who_leads(group, rig, words, variables, order):
    job = group("--prefix", "", *words, sys.executable, "-c", WORLD, **variables)
    for node in order:
        job.start(node)
        if order[0] != 0:
            time.sleep(0.5)  # mostly, node 0 is not there when the others dial
        elif node != 0:
            wait_until("its rank", lambda node=node: agents(rig.hosts[node - 1]))
    ends = job.finish()
    assert all(code == 0 for code, _, _ in ends.values()), ends
    said = [line.split() for line in lines_of(ends[0][1])]
    assert [words[1] for words in said] == list("012345") and {words[3] for words in said} == {"6"}, ends
    places = [words[-1] for words in said]
    in_order = ["head", "head", "hvd1", "hvd1", "hvd2", "hvd2"]
    assert places == in_order or (order[0] != 0 and places == in_order[:2] + in_order[4:] + in_order[2:4]), ends
    assert ends[1][1] == ends[2][1] == "" and "this machine is node 0 of 3" in ends[0][2] and "which gives it its rank" in ends[2][2], ends


# Until the test has written the file, and a little longer: then a machine that has dialled is known to node 0.
UNTIL_A_FILE = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
time.sleep(1)
sys.exit(7 * (os.environ['HOROVOD_RANK'] == '1'))
"""


def test_a_machine_more_than_there_are_nodes_ends_with_the_job(group, rig, tmp_path):
    words = ["--nnodes", 2, "--rdzv-endpoint", "head:29785", "--nproc-per-node", 1]
    job = group(*words, sys.executable, "-c", UNTIL_A_FILE, tmp_path / "finish", **NO_VARIABLES)
    for node in range(3):
        job.start(node)
    for host in rig.hosts:
        wait_until(f"a connection of {host.name}", lambda host=host: host.run("ss", "-Htn", "state", "established", "dport", "=", ":29785"))
    (tmp_path / "finish").write_text("")
    ends = job.finish()
    assert {end[0] for end in ends.values()} == {7} and "1 process" not in ends[1][1] + ends[2][1], ends


def test_the_exit_code_is_that_of_every_node(group):
    job = group("-np", "6", sys.executable, "-c", "import os, sys, time; os.environ['HOROVOD_RANK'] == '5' and sys.exit(7); time.sleep(100)")
    for node in range(3):
        job.start(node)
    ends = job.finish()
    assert {node: end[0] for node, end in ends.items()} == {0: 7, 1: 7, 2: 7}, ends
    assert "rank 5" in ends[0][2]


@pytest.mark.parametrize("key, words", [(None, "HVD_JOB_KEY_FILE is not set"), ("/no/such/file", "cannot be read"), ("short", "5 bytes, fewer than 16")])
def test_nothing_listens_without_a_key(group, rig, key, words):
    job = group(sys.executable, "-c", WORLD)
    if key == "short":
        key = rig.folder / "short"
        key.write_text("short")
    for node in range(3):
        job.start(node, HVD_JOB_KEY_FILE=key)
    for code, out, err in job.finish().values():
        assert code == 2 and out == "" and words in err and "kubectl create secret generic" in err, err


def test_a_node_with_another_key_is_no_part_of_the_job(group, rig):
    (rig.folder / "other_key").write_text("another secret of another job")
    job = group("--start-timeout", "4", sys.executable, "-c", WORLD)
    job.start(0)
    job.start(1)
    job.start(2, HVD_JOB_KEY_FILE=rig.folder / "other_key")
    ends = job.finish()
    assert ends[0][0] != 0 and "hvd" not in ends[0][1] and "node-2" in ends[0][2] and "it has not dialed port 29777" in ends[0][2], ends
    assert ends[1][0] == ends[0][0]
    assert ends[2][0] == 1 and "has not reached node 0 at head, port 29777" in ends[2][2], ends


def test_a_node_waits_for_a_node_0_that_starts_again(group, rig):
    job = group("--prefix", "", sys.executable, "-c", "import time; print('started', flush=True); time.sleep(100)")
    followers = [job.start(1), job.start(2)]
    leader = job.start(0)
    wait_until("the ranks", lambda: len([pid for host in rig.hosts for pid in host.processes() if b"started" in read_proc(pid, "cmdline")]) >= 4)
    leader.kill()
    leader.wait()
    wait_until("no rank is left", lambda: not any(b"time.sleep(100)" in read_proc(pid, "cmdline") and b"hvdrun" not in read_proc(pid, "cmdline")
                                                  for host in rig.hosts for pid in host.processes()))
    assert all(process.poll() is None for process in followers)
    job.words = ("--prefix", "", sys.executable, "-c", WORLD)
    job.start(0)
    ends = job.finish()
    assert [end[0] for end in ends.values()] == [0, 0, 0] and lines_of(ends[0][1]) == ALL, ends


def test_a_node_that_dies_alone_leaves_nothing_and_ends_the_job(group, rig):
    job = group(sys.executable, "-c", "import time; time.sleep(100)")
    for node in range(3):
        job.start(node)
    wait_until("the ranks", lambda: len([pid for host in rig.hosts for pid in host.processes()
                                         if read_proc(pid, "cmdline").startswith(sys.executable.encode())]) >= 4)
    job.kill(2)
    ends = job.finish()
    assert ends[0][0] not in (0, 7) and ends[1][0] == ends[0][0] and "node-2" in ends[0][2], ends


RANGE = ["--nnodes", "1:3", "--node-rank", "NODE", "--rdzv-endpoint", "head:29782", "--nproc-per-node", 1]
MEETING_RANGE = ["--nnodes", "1:3", "--rdzv-endpoint", "head:29786", "--nproc-per-node", 1]  # the node that comes back is another one


@pytest.mark.parametrize("words, variables", [(["--elastic", "--min-np", "1"], {"HVD_NODE_SLOTS": "1"}), (RANGE, NO_VARIABLES),
                                              (MEETING_RANGE, NO_VARIABLES)], ids=["variables", "a range of nodes", "nodes without a rank"])
def test_an_elastic_job_goes_on_without_a_node_and_takes_it_back(group, rig, tmp_path, words, variables):
    job = group(*words, sys.executable, SCRIPT, tmp_path, **variables)
    output = tmp_path / "output"
    with output.open("w") as file:
        leader = job.start(0, stdout=file)
        job.start(1)
        job.start(2)

        def worlds(size):
            return output.read_text().count(f" of {size} from step ")

        wait_until("a world of three", lambda: worlds(3) >= 3, told=output.read_text)
        job.kill(2)
        wait_until("a world of two", lambda: worlds(2) >= 2, told=output.read_text)
        before = worlds(3)
        job.processes[2].wait()
        job.start(2)
        wait_until("a world of three again", lambda: worlds(3) >= before + 3, told=output.read_text)
        (tmp_path / "finish").write_text("")
        ends = job.finish()
    assert leader.returncode == 0 and {end[0] for end in ends.values()} == {0}, output.read_text()
    assert "AssertionError" not in output.read_text()


def test_a_machine_that_waits_takes_the_place_of_one_that_is_lost(group, rig, tmp_path):
    job = group("--nnodes", "1:2", "--rdzv-endpoint", "head:29787", "--nproc-per-node", 1, sys.executable, SCRIPT, tmp_path, **NO_VARIABLES)
    output = tmp_path / "output"

    def ranks(host):
        return [pid for pid in host.processes() if str(SCRIPT).encode() in read_proc(pid, "cmdline") and b"hvdrun" not in read_proc(pid, "cmdline")]

    with output.open("w") as file:
        leader = job.start(0, stdout=file)
        job.start(1)
        wait_until("a world of two", lambda: output.read_text().count(" of 2 from step ") >= 2, told=output.read_text)
        job.start(2)
        wait_until("the third waits", lambda: rig.hosts[1].processes())
        before = output.read_text().count(" of 2 from step ")
        assert not ranks(rig.hosts[1])
        job.kill(1)
        wait_until("a world of two again", lambda: output.read_text().count(" of 2 from step ") >= before + 2, told=output.read_text)
        assert ranks(rig.hosts[1]) and not ranks(rig.hosts[0])
        (tmp_path / "finish").write_text("")
        ends = job.finish()
    assert leader.returncode == 0 and ends[2][0] == 0, output.read_text()


def test_torch_distributed_meets_at_an_address_that_all_nodes_reach(group):
    code = "import os; print('rank ' + os.environ['RANK'] + ' at ' + os.environ['MASTER_ADDR'] + ' of ' + os.environ['WORLD_SIZE'], flush=True)"
    job = group("--prefix", "", sys.executable, "-c", code)
    for node in range(3):
        job.start(node)
    said = lines_of(job.finish()[0][1])
    assert len(said) == 6 and len({line.split(" at ")[1] for line in said}) == 1, said
    assert not any(word in said[0] for word in ("localhost", "127.0.0.1")), said


def test_the_plan_is_shown_without_waiting_for_anybody(group):
    job = group("--dry-run", "true")
    job.start(0)
    code, out, _ = job.finish()[0]
    assert code == 0 and "localhost" in out and "node-2" in out and "6" in out, out


def test_a_node_that_does_not_fit_is_one_sentence(group):
    for variables, words in (({"HVD_NODE_RANK": "3"}, "HVD_NODE_RANK=3 is not one of 3 nodes"), ({"HVD_LEADER": None}, "HVD_LEADER is not"),
                             ({"HVD_NODES": "many"}, "is not a number of nodes")):
        job = group("true")
        job.start(0, **variables)
        code, _, err = job.finish()[0]
        assert code == 2 and words in err and err.count("\n") == 1, err
