"""`hvdrun --timeline`: one file of all ranks on one clock, whole JSON whatever is killed."""

import collections
import json
import os
import resource
import signal

import pytest
from conftest import WORKERS, has_modules, kill, read_until, wait_until
from host_rig import WHY_NOT, rig_of
from test_played_hosts import GLOO, PYTHON

pytestmark = pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")
NASTY = 'a "quoted"\nname \U0001f525 \\ </script>'
ALGORITHMS = {"announcement", "direct", "sliced"}  # of an allreduce over hosts that is staged
needs_hosts = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
needs_gloo = pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so")

rig = rig_of(2)


def works(*arguments):
    return [PYTHON, str(WORKERS / "timeline_worker.py"), *map(str, arguments)]


class Trace:
    """A strict reader: the whole file as JSON, each row of each rank with ends for its beginnings."""

    def __init__(self, path):
        self.events = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda name: 1 / 0)
        self.open = collections.Counter()
        last = {}
        for event in self.events:
            if event["ph"] == "M":
                continue
            row = event["pid"], event["tid"]
            self.open[row] += {"B": 1, "E": -1}.get(event["ph"], 0)
            assert self.open[row] >= 0, event
            assert event["ts"] >= last.get(row, -1e18) or event["name"] == "LAST_TO_ARRIVE", event
            last[row] = max(event["ts"], last.get(row, -1e18))
        self.rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in self.named("thread_name")}

    def named(self, name, phase=None):
        return [e for e in self.events if e.get("name") == name and phase in (None, e["ph"])]

    def count(self, name, rank):
        return sum(e["pid"] == rank for e in self.named(name, "B"))

    @property
    def complete(self):
        return not +self.open and self.events[-1]["name"] == "events_lost"

    @property
    def lost(self):
        return sum(e["args"]["count"] for e in self.named("EVENTS_LOST"))


def trace_of(path):
    assert path.exists(), "there is no timeline"
    return Trace(path)


@pytest.mark.parametrize("flag", ["--timeline", "--timeline-filename"])
def test_a_timeline_has_all_ranks_and_is_valid_json(run, tmp_path, flag):
    path = tmp_path / "out.json"
    job = run("-np", 3, flag, path, *works("steps", 5))
    assert job.code == 0, job.out + job.err
    trace = trace_of(path)
    assert trace.complete and trace.lost == 0
    for rank in range(3):
        assert trace.count("NEGOTIATE_ALLREDUCE", rank) == trace.count("ALLREDUCE", rank) == 5
        assert (rank, 1) in trace.rows and trace.rows[rank, 1] == "allreduce.grad"
    first = trace.events[0]
    assert (first["name"], first["pid"]) == ("process_name", 0)
    assert isinstance(first["args"]["start_time_since_epoch_in_micros"], int)
    ends = [e for e in trace.events if e["ph"] == "E" and "dtype" in e.get("args", {})]
    assert len(ends) == 15 and all(e["args"]["shape"] == "[3, 4]" and e["args"]["dtype"] == "float32" for e in ends)
    assert os.listdir(tmp_path) == ["out.json"]
    assert not trace.named("CYCLE_START")


def test_names_are_escaped(run, tmp_path):
    job = run("-np", 2, "--timeline", tmp_path / "out.json", *works("nasty"))
    assert job.code == 0, job.out + job.err
    assert "allreduce." + NASTY in trace_of(tmp_path / "out.json").rows.values()


def test_cycles_are_marked_where_nothing_is_in_flight(run, tmp_path):
    job = run("-np", 2, "--timeline", tmp_path / "out.json", "--timeline-mark-cycles", *works("steps", 5))
    assert job.code == 0, job.out + job.err
    marks = trace_of(tmp_path / "out.json").named("CYCLE_START", "i")
    assert sorted(e["pid"] for e in marks) == [0] * 5 + [1] * 5


def test_the_rank_that_is_late_is_named_for_each_tensor(run, tmp_path):
    job = run("-np", 3, "--timeline", tmp_path / "out.json", *works("late", 2))
    assert job.code == 0, job.out + job.err
    last = trace_of(tmp_path / "out.json").named("LAST_TO_ARRIVE")
    assert len(last) == 10
    assert sum(e["args"]["rank"] == 2 for e in last) >= 9
    assert sorted(e["args"]["late_ns"] for e in last)[5] > 30e6


def activities(trace, rank):
    """The events inside of the operations of a rank: name, of which operation, its arguments, microseconds."""
    found, open_on = [], {}
    for event in trace.events:
        if event["pid"] != rank or event.get("tid", 0) == 0 or event["ph"] not in "BE":
            continue
        stack = open_on.setdefault(event["tid"], [])
        if event["ph"] == "B":
            stack.append(event)
            continue
        begin = stack.pop()
        if begin["name"] not in OPERATIONS and not begin["name"].startswith("NEGOTIATE_"):
            parent = stack[-1]["name"] if stack else None
            found.append((begin["name"], parent, begin["args"], event["ts"] - begin["ts"]))
    return found


OPERATIONS = {"ALLREDUCE", "ALLGATHER", "BROADCAST", "ALLTOALL", "REDUCESCATTER"}


def algorithms(trace, rank):
    return {e["args"]["algorithm"] for e in trace.events
            if e["ph"] == "E" and e["pid"] == rank and "shape" in e.get("args", {}) and "algorithm" in e["args"]}


def test_copies_and_algorithms_are_in_the_timeline_of_one_host(run, tmp_path):
    """A large tensor of NumPy is copied into shared memory before it is announced, and out of it; a small one travels in its
    announcement."""
    job = run("-np", 2, "--timeline", tmp_path / "out.json", *works("many", 3, 1, 100_000))
    assert job.code == 0, job.out + job.err
    trace = trace_of(tmp_path / "out.json")
    assert trace.complete
    for rank in range(2):
        seen = activities(trace, rank)
        assert [name for name, *_ in seen] == ["MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"] * 3, seen
        assert all(args["bytes"] == 400_000 for _, _, args, _ in seen), seen
        assert {parent for name, parent, *_ in seen if "OUT" in name} == {"ALLREDUCE"}
        assert algorithms(trace, rank) == {"copied"}
    job = run("-np", 2, "--timeline", tmp_path / "small.json", *works("steps", 3))
    assert job.code == 0, job.out + job.err
    small = trace_of(tmp_path / "small.json")
    assert not activities(small, 0) and algorithms(small, 0) == {"announcement"}


def check_phases(trace, leaders, others, exchange):
    """Each host's leader shows the way of the data between hosts, every rank takes the result from it."""
    for rank in (*leaders, *others):
        seen = activities(trace, rank)
        inside = {name for name, parent, *_ in seen if parent == "ALLREDUCE"}
        between = {"WAIT_FOR_HOSTS", "QUEUE", "HOST_REDUCE", exchange}
        assert between <= inside if rank in leaders else not between & inside, (rank, inside)
        assert "HAND_OUT" in inside and algorithms(trace, rank) <= ALGORITHMS, (rank, inside)
        assert all(us >= 0 for *_, us in seen)
    exchanged = [args for rank in leaders for name, _, args, _ in activities(trace, rank) if name == exchange]
    assert {args["algorithm"] for args in exchanged} <= ALGORITHMS
    together = [args for args in exchanged if args.get("tensors", 1) > 1]
    assert together, "no tensors travelled together"
    assert all(args["bytes"] == args["tensors"] * 4000 for args in together), together
    copied = {name for name, *_ in activities(trace, leaders[0])}
    assert {"MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"} <= copied


@needs_gloo
def test_the_phases_between_hosts_are_in_the_timeline(run, tmp_path):
    job = run("-np", 4, "--hosts-per-machine", 2, "--timeline", tmp_path / "out.json", *works("many", 10, 40, 1000))
    assert job.code == 0, job.out + job.err
    check_phases(trace_of(tmp_path / "out.json"), leaders=(0, 2), others=(1, 3), exchange="GLOO_ALLREDUCE")


@needs_hosts
@needs_gloo
def test_the_phases_between_namespaced_hosts_are_in_the_timeline(hosts_run, rig, tmp_path):
    job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:2", "--timeline", tmp_path / "out.json", *works("many", 10, 40, 1000))
    assert job.code == 0, job.out + job.err
    check_phases(trace_of(tmp_path / "out.json"), leaders=(0, 2), others=(1, 3), exchange="GLOO_ALLREDUCE")
    rig.nothing_left()


def settings_file(tmp_path, text):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    return path


def test_the_timeline_of_yaml_and_of_the_environment(run, tmp_path):
    config = settings_file(tmp_path, f"timeline:\n  filename: {tmp_path}/yaml.json\n  mark_cycles: true\n")
    job = run("-np", 1, "--config-file", config, *works("steps", 2))
    assert job.code == 0, job.out + job.err
    assert len(trace_of(tmp_path / "yaml.json").named("CYCLE_START")) == 2
    env = {"HOROVOD_TIMELINE": str(tmp_path / "env.json")}
    job = run("-np", 1, *works("steps", 2), env=env)
    assert job.code == 0, job.out + job.err
    assert trace_of(tmp_path / "env.json").complete


@pytest.mark.parametrize("place", ["no/such/out.json", ""])
def test_a_path_that_cannot_be_written_is_refused_before_the_start(run, tmp_path, place):
    job = run("-np", 2, "--timeline", tmp_path / place, "touch", tmp_path / "started")
    assert job.code == 2, job.err
    assert job.err.count("\n") == 1 and "cannot be written" in job.err
    assert not (tmp_path / "started").exists()


def begin(start, tmp_path, ranks=2, hosts=()):
    marks = tmp_path / "marks"
    marks.mkdir()
    job = start("-np", ranks, *hosts, "--timeline", tmp_path / "out.json", *works("endless", marks))
    wait_until("all ranks at work", lambda: len(list(marks.iterdir())) == ranks or job.process.poll() is not None)
    return job


@pytest.mark.parametrize("victim", ["worker", "agent", "hvdrun"])
def test_a_file_survives_the_kill_of_anything(start, tmp_path, victim):
    job = begin(start, tmp_path)
    path = tmp_path / "out.json"
    # Read while it is written: events in between two pages that are read may be missing, so nothing is said about nesting.
    steps = '{"ph":"B","name":"ALLREDUCE"'
    wait_until("many steps in the file", lambda: path.read_text().count(steps) >= 100)
    pid = {"worker": lambda: job.workers[-1], "agent": lambda: job.agent, "hvdrun": lambda: job.pid}[victim]()
    kill(pid)
    assert job.finish() != 0
    job.nothing_left()
    trace = trace_of(path)
    assert trace.count("ALLREDUCE", 0) >= 20 and trace.count("ALLREDUCE", 1) >= 20
    assert trace.complete == (victim != "hvdrun")


def test_what_a_killed_rank_has_recorded_is_in_the_file(start, tmp_path):
    """Its last step: the agent reads the ring after the death."""
    job = begin(start, tmp_path)
    kill(job.workers[-1])
    job.finish()
    trace = trace_of(tmp_path / "out.json")
    counts = [trace.count("ALLREDUCE", rank) for rank in range(2)]
    assert abs(counts[0] - counts[1]) <= 1 and trace.lost == 0, counts


def test_ctrl_c_leaves_a_complete_file(start, tmp_path):
    job = begin(start, tmp_path)
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130
    assert trace_of(tmp_path / "out.json").complete


def test_what_is_beyond_the_limit_is_counted_and_said_once(run, tmp_path):
    path = tmp_path / "out.json"
    job = run("-np", 2, "--timeline", path, "--timeline-max", "1MB", *works("steps", 20000))
    assert job.code == 0, job.out + job.err
    assert job.err.count("has reached its limit") == 1, job.err
    assert path.stat().st_size <= 1 << 20
    assert trace_of(path).events[-1]["args"]["not_written"] > 0


def test_the_last_events_are_kept_on_request(run, tmp_path):
    path = tmp_path / "out.json"
    job = run("-np", 2, "--timeline", path, "--timeline-max", "1MB", "--timeline-keep", "last", *works("steps", 6000))
    assert job.code == 0 and "has reached its limit" not in job.err, job.err
    before, last = trace_of(tmp_path / "out.json.1"), trace_of(path)
    assert path.stat().st_size <= 1 << 19 and (tmp_path / "out.json.1").stat().st_size <= 1 << 19
    assert last.complete and last.rows[0, 0] and len(last.named("process_name")) == 3
    for rank in range(2):  # their records come in turns
        times = [[e["ts"] for e in trace.events if "ts" in e and e["pid"] == rank and e.get("name") != "LAST_TO_ARRIVE"]
                 for trace in (before, last)]
        assert not times[0] or not times[1] or max(times[0]) <= min(times[1])
    assert before.named("ALLREDUCE") and last.rows


def test_the_first_steps_alone_are_written_on_request(run, tmp_path):
    path = tmp_path / "out.json"
    job = run("-np", 2, "--timeline", path, "--timeline-steps", 10, *works("steps", 500))
    assert job.code == 0, job.out + job.err
    trace = trace_of(path)
    assert trace.complete and [trace.count("ALLREDUCE", rank) for rank in range(2)] == [10, 10]
    assert os.listdir(tmp_path) == ["out.json"]


def test_the_last_steps_are_kept_on_request(run, tmp_path):
    path = tmp_path / "out.json"
    job = run("-np", 2, "--timeline", path, "--timeline-steps", 50, "--timeline-keep", "last", *works("steps", 3000))
    assert job.code == 0, job.out + job.err
    before, last = trace_of(tmp_path / "out.json.1"), trace_of(path)
    for rank in range(2):
        assert 50 <= before.count("ALLREDUCE", rank) + last.count("ALLREDUCE", rank) < 3000
    assert last.complete and last.events[-1]["args"]["not_written"] == 0
    assert sorted(os.listdir(tmp_path)) == ["out.json", "out.json.1"]


@pytest.mark.parametrize("steps", ["-1", "many", "1.5"])
def test_steps_that_are_no_number_are_one_sentence(run, tmp_path, steps):
    job = run("-np", 2, "--timeline", tmp_path / "out.json", f"--timeline-steps={steps}", "true")
    assert job.code == 2 and job.err.count("\n") == 1 and "--timeline-steps" in job.err, job.err
    assert not os.listdir(tmp_path)


def test_a_full_disk_is_said_once_and_training_goes_on(start, tmp_path):
    """A limit of the size of files plays the full disk, for hvdrun alone."""
    job = begin(start, tmp_path)
    resource.prlimit(job.pid, resource.RLIMIT_FSIZE, (1_200_000, 1_200_000))
    said = read_until(job.process.stderr, "cannot be written").decode()
    steps = tmp_path / "marks" / "0"
    steps.unlink()
    wait_until("more steps", steps.exists)
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130
    assert (said + job.err).count("cannot be written") == 1, said + job.err
    assert trace_of(tmp_path / "out.json").events[-1]["args"]["not_written"] > 0
    assert sorted(os.listdir(tmp_path)) == ["marks", "out.json"]


def test_events_that_are_overwritten_are_counted(run, tmp_path):
    """Nothing is lost without being counted: ends in the file and the count are what was recorded."""
    job = run("-np", 1, "--timeline", tmp_path / "out.json", *works("burst", 20000))
    assert job.code == 0, job.out + job.err
    trace = trace_of(tmp_path / "out.json")
    # Three records for each step, beside names; a gap may split a step.
    gaps = len(trace.named("EVENTS_LOST"))
    assert 3 * trace.count("ALLREDUCE", 0) + trace.lost + 3 * gaps >= 3 * 20000 - 3
    assert trace.events[-1]["args"]["overwritten"] == trace.lost


@needs_hosts
@needs_gloo
def test_two_hosts_are_on_one_clock(hosts_run, rig, tmp_path):
    """The steady clocks of the hosts are hours apart; a rank of one host waits for one of the other."""
    job = hosts_run("-np", 2, "-H", "hvd1,hvd2", "--timeline", tmp_path / "out.json", *works("late", 1))
    assert job.code == 0, job.out + job.err
    trace = trace_of(tmp_path / "out.json")
    assert trace.complete and [trace.count("ALLREDUCE", rank) for rank in range(2)] == [10, 10]
    clocks = {e["pid"]: e["args"] for e in trace.named("clock")}
    assert set(clocks) == {0, 1} and all(c["uncertainty_ns"] < 1e9 for c in clocks.values())
    last = trace.named("LAST_TO_ARRIVE")
    assert len(last) == 10 and sum(e["args"]["rank"] == 1 for e in last) >= 9
    ends = [[e["ts"] for e in trace.events if e["ph"] == "E" and e["pid"] == rank and "dtype" in e.get("args", {})]
            for rank in range(2)]
    slack = 1e-3 * sum(c["uncertainty_ns"] for c in clocks.values())
    submits = [[e["ts"] for e in trace.named(str(rank), "X") if e["pid"] == rank] for rank in range(2)]
    for step in range(10):
        # No rank is done before the other has submitted.
        assert ends[0][step] + slack >= submits[1][step] and ends[1][step] + slack >= submits[0][step]
    rig.nothing_left()
