"""`hvdrun top`, `hvdrun dump` and the metrics: a job's work while it runs, seen from outside."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from conftest import DEADLINE, WORKERS, has_modules, hvdrun_path, kill, read_until, wait_until
from host_rig import WHY_NOT, rig_of
from test_played_hosts import GLOO, PYTHON
from test_terminal import Terminal
from test_timeline import trace_of

pytestmark = pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")
needs_hosts = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
needs_gloo = pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so")

rig = rig_of(2)


def works(*arguments):
    return [PYTHON, str(WORKERS / "live_worker.py"), *map(str, arguments)]


def begin(start, tmp_path, *options, ranks=2, work=()):
    """A job whose ranks are all at work, and its id."""
    marks = tmp_path / "marks"
    marks.mkdir()
    job = start("-np", ranks, *options, *works(marks, *work))
    wait_until("all ranks at work", lambda: len(list(marks.iterdir())) == ranks or job.process.poll() is not None)
    assert job.process.poll() is None, job.finish()
    return job, job.job_id()


def asked(*arguments, **kwargs):
    return subprocess.run([hvdrun_path(), *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE, **kwargs)


def view_of(job_id):
    done = asked("top", job_id, "--once", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def test_top_shows_each_rank_and_whom_the_others_wait_for(start, tmp_path):
    _, job_id = begin(start, tmp_path, ranks=3, work=(1, 0.02))
    view = view_of(job_id)
    assert view["job"] == job_id and view["generation"] == 1 and view["size"] == 3
    assert [rank["rank"] for rank in view["ranks"]] == [0, 1, 2]
    for rank in view["ranks"]:
        assert rank["operations"] > 20 and rank["bytes"] == 4000 * rank["operations"]
        assert rank["last_collective"] == {"type": "ALLREDUCE", "name": "allreduce.grad"}
        assert rank["state"] in ("computing", "waiting")
        assert rank["rates"]["operations_per_second"] > 0
        assert abs(rank["steps"] - rank["operations"]) <= 1

    def named():
        straggler = view_of(job_id)["straggler"]
        return straggler and straggler["rank"] == 1

    wait_until("rank 1 as the one that is waited for", named)
    # Most of the time, on any machine: the one that sleeps comes last.
    wait_until("rank 1 comes last", lambda: view_of(job_id)["ranks"][1]["rates"]["last_share"] > 0.5)
    table = asked("top", job_id, "--once").stdout
    assert re.search(r"^ +1 +\S+ +(computing|waiting)", table, re.M), table
    assert "\x1b" not in table


def test_top_without_a_terminal_prints_lines_until_the_job_ends(start, tmp_path):
    job, job_id = begin(start, tmp_path)
    top = subprocess.Popen([hvdrun_path(), "top", job_id], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    try:
        seen = read_until(top.stdout, "operations/s", count=2).decode()
        assert "\x1b" not in seen and "2 ranks" in seen
        job.process.send_signal(signal.SIGINT)
        assert job.finish() == 130
        assert top.wait(DEADLINE) == 0
    finally:
        top.kill()
        top.communicate()


def test_top_leaves_the_terminal_as_it_was(start, tmp_path):
    _, job_id = begin(start, tmp_path)
    terminal = Terminal(hvdrun_path(), "top", job_id, columns=70)
    terminal.until("WAITING")
    terminal.until("computing")
    terminal.type("q")
    assert terminal.end() == 0
    assert terminal.seen.index("\x1b[?1049h") < terminal.seen.index("\x1b[?1049l")
    assert terminal.seen.rstrip().endswith("\x1b[?25h\x1b[?1049l")
    shown = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", terminal.seen)
    assert all(len(line.rstrip("\r")) <= 70 for line in shown.split("\n"))


def test_top_ends_with_its_job_on_a_terminal(start, tmp_path):
    job, job_id = begin(start, tmp_path)
    terminal = Terminal(hvdrun_path(), "top", job_id)
    terminal.until("RANK")
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130
    assert terminal.end() == 0
    assert "the job has ended" in terminal.seen


def test_a_rank_that_a_signal_stopped_is_shown(start, tmp_path):
    job, job_id = begin(start, tmp_path)
    pid = view_of(job_id)["ranks"][1]["pid"]
    assert pid in job.workers
    os.kill(pid, signal.SIGSTOP)
    wait_until("a rank that is stopped", lambda: view_of(job_id)["ranks"][1]["state"] == "stopped")
    os.kill(pid, signal.SIGCONT)


def test_looking_is_taken_back_when_the_one_who_looks_is_killed(start, tmp_path):
    """Waits are measured while somebody looks: the counter stands still again a few seconds after."""
    job, job_id = begin(start, tmp_path, work=(1, 0.02))
    top = subprocess.Popen([hvdrun_path(), "top", job_id], stdout=subprocess.PIPE)
    read_until(top.stdout, "operations/s", count=2)
    kill(top.pid)
    top.communicate()
    before = view_of(job_id)
    # A look begins to measure again, for 5 s.
    time.sleep(8)
    after = view_of(job_id)
    measured = after["ranks"][0]["waited_seconds"] - before["ranks"][0]["waited_seconds"]
    assert after["ranks"][0]["operations"] > before["ranks"][0]["operations"]
    assert measured < 0.95 * (after["time"] - before["time"]), (before, after)


@pytest.mark.parametrize("verb", ["top", "dump"])
@pytest.mark.parametrize("args", [["0123456789abcdef"], ["a", "b"], ["--no-such"], [""]])
def test_wrong_use_is_one_sentence_and_exit_2(verb, args):
    done = asked(verb, *args)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith(f"hvdrun {verb}: ")


def test_nonsense_and_silence_on_the_socket_do_no_harm(start, tmp_path):
    _, job_id = begin(start, tmp_path)
    clients = []
    for said in [b"", b"nonsense", b"top" * 1000, b"dump\n", None]:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(f"\0hvd-view-{job_id}")
        if said is not None:
            client.send(said)
        clients.append(client)
    assert len(view_of(job_id)["ranks"]) == 2
    for client in clients:
        client.close()


def test_dump_writes_the_last_events_of_all_ranks(start, tmp_path):
    job, job_id = begin(start, tmp_path)
    path = tmp_path / "dump.json"
    done = asked("dump", job_id, "-o", path)
    assert done.returncode == 0, done.stderr
    assert re.match(rf"{re.escape(str(path))}: \d+ events of 2 ranks, the last [\d.]+ s\n", done.stdout), done.stdout
    trace = trace_of(path)
    assert trace.complete and trace.lost == 0
    for rank in range(2):
        assert sum(e["pid"] == rank for e in trace.named("ALLREDUCE", "X")) >= 20
    assert {e["pid"] for e in trace.named("clock")} == {0, 1}
    done = asked("dump", job_id, cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / f"hvd-dump-{job_id}.json").exists()
    assert job.process.poll() is None


def test_dump_refuses_a_path_that_cannot_be_written(start, tmp_path):
    _, job_id = begin(start, tmp_path)
    done = asked("dump", job_id, "-o", tmp_path / "no" / "dump.json")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "cannot be written" in done.stderr


class Metrics:
    """A strict reader of the text format 0.0.4."""

    SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (\S+)')
    LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"')

    def __init__(self, text):
        assert text.endswith("\n")
        self.types, self.samples, helped = {}, {}, set()
        family = None
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP "):
                family = line.split(" ", 3)[2]
                assert family not in helped, line
                helped.add(family)
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name == family and name not in self.types and kind in ("counter", "gauge"), line
                assert kind != "counter" or name.endswith("_total"), line
                self.types[name] = kind
            else:
                match = self.SAMPLE.fullmatch(line)
                assert match and match[1] == family and family in self.types, line
                labels = frozenset(self.LABEL.findall(match[2]))
                assert (family, labels) not in self.samples, line
                self.samples[family, labels] = float(match[3])

    def of(self, name, **labels):
        return sum(value for (family, has), value in self.samples.items() if family == name and set(labels.items()) <= has)


def metrics_url(err):
    return re.search(r"metrics are at (http://127\.0\.0\.1:\d+/metrics)\n", err)[1]


def scrape(url, **kwargs):
    with urllib.request.urlopen(urllib.request.Request(url, **kwargs), timeout=DEADLINE) as answer:
        return answer.headers, answer.read().decode()


def test_silent_connections_do_not_lock_the_metrics_out(start, tmp_path):
    job, _ = begin(start, tmp_path, "--metrics-port", 0, work=(1, 0.01))
    url = metrics_url(read_until(job.process.stderr, "/metrics\n").decode())
    port = int(url.split(":")[2].split("/")[0])
    strangers = []
    for _ in range(200):
        stranger = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        stranger.sendall(b"GET /metrics HTTP/1.1\r\n")
        strangers.append(stranger)
    begun = time.monotonic()
    assert "hvd_ranks" in scrape(url)[1]
    assert time.monotonic() - begun < 5, "before the limit of a request"


def test_metrics_are_what_prometheus_reads(start, tmp_path):
    job, job_id = begin(start, tmp_path, "--metrics-port", 0, work=(1, 0.01))
    url = metrics_url(read_until(job.process.stderr, "/metrics\n").decode())
    headers, text = scrape(url)
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")

    def measured():
        metrics = Metrics(scrape(url)[1])
        return metrics if metrics.of("hvd_wait_seconds_total", rank="0") > 0 else None

    wait_until("waits", measured)
    metrics = measured()
    assert metrics.of("hvd_ranks") == 2 and metrics.of("hvd_generation", job_id=job_id) == 1
    for rank in "01":
        operations = metrics.of("hvd_operations_total", rank=rank)
        assert operations > 20 and metrics.of("hvd_bytes_total", rank=rank) == 4000 * operations
        assert metrics.of("hvd_rank_state", rank=rank) == 1
    wait_until("more operations", lambda: measured().of("hvd_operations_total", rank="0") > operations)
    for path, method, code in [("/", "GET", 404), ("/metrics", "POST", 405), ("/metrics/../x", "GET", 404)]:
        with pytest.raises(urllib.error.HTTPError) as refused:
            scrape(url.replace("/metrics", path), method=method, data=b"x" if method == "POST" else None)
        assert refused.value.code == code
    assert "hvd_ranks" not in scrape(url, method="HEAD")[1]


def test_metrics_survive_slow_and_bad_clients(start, tmp_path):
    job, _ = begin(start, tmp_path, "--metrics-port", 0)
    url = metrics_url(read_until(job.process.stderr, "/metrics\n").decode())
    port = int(re.search(r":(\d+)/", url)[1])
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"x" * 20000)
        client.settimeout(DEADLINE)
        assert client.recv(100).startswith(b"HTTP/1.1 431 ")
    assert "hvd_ranks" in scrape(url)[1]
    for client in silent:
        client.close()


@pytest.mark.parametrize("options", [["--metrics-port", "70000"], ["--metrics-port", "x"],
                                     ["--metrics-port", "0", "--metrics-bind", "nowhere"]])
def test_metrics_that_cannot_be_served_are_refused_before_the_start(run, tmp_path, options):
    job = run("-np", 1, *options, "touch", tmp_path / "started")
    assert job.code == 2 and job.err.count("\n") == 1, job.err
    assert not (tmp_path / "started").exists()


def test_a_port_that_is_taken_is_refused_before_the_start(run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        job = run("-np", 1, "--metrics-port", other.getsockname()[1], "touch", tmp_path / "started")
    assert job.code == 2 and "no metrics can be served" in job.err
    assert not (tmp_path / "started").exists()


@needs_hosts
@needs_gloo
def test_top_and_dump_see_all_hosts_on_one_clock(hosts_start, rig, tmp_path):
    job, _ = begin(hosts_start, tmp_path, "-H", "hvd1,hvd2", work=(1, 0.05))

    def on_head(*arguments):
        return subprocess.run([*rig.on_head(hvdrun_path()), *map(str, arguments)], capture_output=True, text=True,
                              timeout=DEADLINE)

    listed = [line.split()[0] for line in on_head("ps").stdout.splitlines() if str(tmp_path) in line or "hvd1,hvd2" in line]
    assert len(listed) == 1
    job_id = listed[0]

    def named():
        done = on_head("top", job_id, "--once", "--json")
        assert done.returncode == 0, done.stderr
        view = json.loads(done.stdout)
        assert [rank["host"] for rank in view["ranks"]] == ["hvd1", "hvd2"]
        return view["straggler"] and view["straggler"]["rank"] == 1

    wait_until("rank 1 as the one that is waited for", named)
    done = on_head("dump", job_id, "-o", tmp_path / "dump.json")
    assert done.returncode == 0, done.stderr
    trace = trace_of(tmp_path / "dump.json")
    clocks = {e["pid"]: e["args"] for e in trace.named("clock")}
    assert [clocks[rank]["host"] for rank in range(2)] == ["hvd1", "hvd2"]
    ends = [[e["ts"] for e in trace.named("ALLREDUCE", "X") if e["pid"] == rank] for rank in range(2)]
    # The clocks of the hosts are hours apart; both ranks end their operations within a minute.
    assert abs(ends[0][-1] - ends[1][-1]) < 60e6
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130


def test_a_job_that_fails_leaves_its_last_events(run, tmp_path):
    (tmp_path / "marks").mkdir()
    path = tmp_path / "dump.json"
    job = run("-np", 2, "--dump-on-failure", path, *works(tmp_path / "marks", -1, 0.001, 50, 1))
    assert job.code == 3, job.err
    assert job.err.count(f"the last events of the ranks are in {path}\n") == 1, job.err
    trace = trace_of(path)
    assert trace.complete
    for rank in range(2):
        assert sum(e["pid"] == rank for e in trace.named("ALLREDUCE", "X")) == 50


def test_a_killed_rank_has_its_last_events_in_the_dump(start, tmp_path):
    path = tmp_path / "dump.json"
    job, _ = begin(start, tmp_path, "--dump-on-failure", path)
    kill(job.workers[-1])
    assert job.finish() == 137
    counts = [sum(e["pid"] == rank for e in trace_of(path).named("ALLREDUCE", "X")) for rank in range(2)]
    assert min(counts) >= 20 and abs(counts[0] - counts[1]) <= 2, counts  # the last one may have been under way


def test_steps_are_marked_in_a_timeline(run, tmp_path):
    (tmp_path / "marks").mkdir()
    job = run("-np", 2, "--timeline", tmp_path / "out.json", *works(tmp_path / "marks", -1, 0, 30))
    assert job.code == 0, job.err
    marks = trace_of(tmp_path / "out.json").named("OPTIMIZER_STEP", "i")
    assert sorted(e["pid"] for e in marks) == [0] * 30 + [1] * 30


def test_a_job_that_succeeds_leaves_no_dump(run, tmp_path):
    (tmp_path / "marks").mkdir()
    job = run("-np", 1, "--dump-on-failure", tmp_path / "dump.json", *works(tmp_path / "marks", -1, 0, 30))
    assert job.code == 0, job.err
    assert not (tmp_path / "dump.json").exists()
    job = run("-np", 1, "--dump-on-failure", tmp_path / "no" / "dump.json", "touch", tmp_path / "started")
    assert job.code == 2 and job.err.count("\n") == 1 and not (tmp_path / "started").exists()
