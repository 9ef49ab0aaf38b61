"""`hvdrun trace`: what limits a job, and timelines in other forms, from timelines of real jobs."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import DEADLINE, has_modules, hvdrun_path, wait_until
from perfetto_decoder import events_of
from test_played_hosts import PYTHON
from test_timeline import NASTY, works

BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="neither chromium-headless-shell nor chromium is installed")
needs_numpy = pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")
KINETO = {"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": 1},
          "traceEvents": [{"ph": "M", "name": "process_name", "pid": 4711, "tid": 0, "ts": 5.0, "args": {"name": "python"}},
                          {"ph": "X", "name": "aten::add", "cat": "cpu_op", "pid": 4711, "tid": 1, "ts": 10.25, "dur": 3.5}],
          "baseTimeNanoseconds": 0}


def trace(*arguments):
    """Exit code, stdout, stderr."""
    done = subprocess.run([hvdrun_path(), "trace", *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE)
    return done.returncode, done.stdout, done.stderr


def made(*arguments):
    code, out, err = trace(*arguments)
    assert code == 0 and err == "", err
    return out


@pytest.fixture
def timeline(run, tmp_path):
    """The timeline of a job."""
    def make(ranks, *worker, name="out.json"):
        path = tmp_path / name
        job = run("-np", ranks, "--timeline", path, *works(*worker))
        assert job.code == 0, job.out + job.err
        return path
    return make


@needs_numpy
def test_the_report_names_a_straggler_by_rank_tensor_and_share(timeline):
    path = timeline(4, "layers", 20, 2, 0.05)
    report = json.loads(made("report", path, "--json"))
    straggler = report["straggler"]
    assert straggler["rank"] == 2 and straggler["tensor"] == "allreduce.layer3.weight"
    assert straggler["tensor_share_of_delay"] > 0.4 and straggler["time_share_of_others"] > 0.3
    assert report["steps"] == 19 and report["tensors_per_step"] == 5 and report["step_median_ms"] > 49
    assert report["bytes_per_step"] == 4 * 1000 * (1 + 2 + 3 + 4 + 5)
    text = made("report", path)
    first = re.sub(r"\s+", " ", text[text.index("1. "):text.index("Ranks")])
    assert re.match(r"1\. rank 2 on \S+ is last for \d+ % of the tensors; the others wait [\d.]+ ms of each step of [\d.]+ ms for it: "
                    r"\d+ %\. It falls behind .*allreduce\.layer3\.weight", first), text


@needs_numpy
def test_the_report_names_a_rank_on_a_slow_core(timeline):
    path = timeline(2, "crunch", 15, 1, 0.01)
    report = json.loads(made("report", path, "--json"))
    assert report["straggler"]["rank"] == 1 and report["straggler"]["last_share_of_tensors"] > 0.5, report["straggler"]
    assert report["straggler"]["time_share_of_others"] > 0.1
    text = re.sub(r"\s+", " ", made("report", path))
    assert re.search(r"rank 1 on \S+ is last for .* It falls behind little by little, at \d tensors, .*: a slow or shared core, or "
                     r"more work than the others have\.", text), text


@needs_numpy
def test_a_page_needs_nothing_else_and_keeps_names_as_texts(timeline, tmp_path):
    page = tmp_path / "page.html"
    made("report", timeline(2, "nasty"), "--html", page)
    html = page.read_text(encoding="utf-8")
    assert len(re.findall("</script>", html)) == 2
    assert not re.findall(r"""(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/)""", html)
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', html, re.S)
    assert "allreduce." + NASTY in [tensor["name"] for tensor in json.loads(found.group(1))["tensors"]]
    assert page.stat().st_mode & 0o077 == 0


@needs_numpy
@needs_browser
@pytest.mark.parametrize("worker", [["layers", 10, 1, 0.005], ["nasty"]], ids=["layers", "nasty"])
def test_a_browser_draws_the_page(timeline, tmp_path, worker):
    page = tmp_path / "page.html"
    made("report", timeline(2, *worker), "--html", page)
    # Its own folder for everything it writes; no sandbox, since tests may run as root.
    done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           f"--user-data-dir={tmp_path}/browser", "--dump-dom", f"file://{page}"],
                          capture_output=True, text=True, timeout=3 * DEADLINE, env={**os.environ, "HOME": str(tmp_path)})
    dom = done.stdout
    assert 'data-drawn="yes"' in dom, dom[-2000:] + done.stderr[-2000:]
    assert dom.count("<svg") >= 4 and "<polyline" in dom and dom.count("<rect") >= 6
    assert "2 ranks" in dom and "NaN" not in re.sub(r"<script.*?</script>", "", dom, flags=re.S)


@needs_numpy
def test_timelines_and_a_profilers_trace_are_merged_onto_one_clock(timeline, tmp_path):
    first, second = timeline(2, "steps", 3, name="a.json"), timeline(2, "nasty", name="b.json")
    begin = [json.loads(path.read_text())[0]["args"]["start_time_since_epoch_in_micros"] for path in (first, second)]
    kineto = tmp_path / "k.json"
    kineto.write_text(json.dumps({**KINETO, "baseTimeNanoseconds": begin[0] * 1000}, indent=2))
    out = tmp_path / "merged.json"
    assert "3 files" in made("merge", second, first, kineto, "-o", out)
    events = json.loads(out.read_text(), parse_constant=lambda name: 1 / 0)
    assert events[0]["args"]["start_time_since_epoch_in_micros"] == min(begin)
    add, = [event for event in events if event.get("name") == "aten::add"]
    assert add["ts"] == 10.25 and add["dur"] == 3.5
    names = {event["args"]["name"] for event in events if event.get("name") == "process_name"}
    assert any("rank 1, profiler" in name for name in names), names
    jobs = {event["args"]["name"]: event["pid"] for event in events if event.get("name") == "thread_name" and event["tid"] == 1}
    assert len(set(jobs.values())) == len(jobs) == 2
    later = [event["ts"] for event in events if event["pid"] == jobs["allreduce." + NASTY] and event["ph"] != "M"]
    assert min(later) >= begin[1] - begin[0]
    assert len(out.read_text().splitlines()) == len(events) + 2
    assert json.loads(made("report", out, "--json"))["ranks"]


@needs_numpy
def test_perfettos_form_has_the_same_events_and_is_smaller(timeline, tmp_path):
    path, out = timeline(3, "steps", 40), tmp_path / "out.pftrace"
    made("export", path, "--format", "perfetto", "-o", out)
    assert out.stat().st_size * 2 < path.stat().st_size
    events = events_of(out.read_bytes())
    source = [event for event in json.loads(path.read_text()) if event["ph"] != "M"]
    kinds = {"B": 1, "E": 2, "i": 3, "X": 3}
    expected = [(round(event["ts"] * 1000), kinds[event["ph"]], event.get("name", "")) for event in source]
    assert [event[:3] for event in events] == expected
    assert [event[4] for event in events] == [event.get("args", {}) for event in source]
    assert sum(event[3][1] == "allreduce.grad" for event in events) == sum(event["tid"] == 1 for event in source)
    assert events[0][3][0].startswith("rank 0 on ")



@needs_numpy
@pytest.mark.parametrize("form", ["chrome", "perfetto"])
def test_one_rank_of_a_timeline_can_be_had_alone(timeline, tmp_path, form):
    out = tmp_path / "one"
    made("export", timeline(3, "steps", 4), "--format", form, "--rank", 1, "-o", out)
    if form == "chrome":
        events = json.loads(out.read_text())
        assert {event["pid"] for event in events if event["ph"] != "M"} == {1}  # without the zero of the file
        assert sum(event["name"] == "ALLREDUCE" and event["ph"] == "B" for event in events if "name" in event) == 4
    else:
        assert "rank 1 on" in out.read_bytes().decode("latin-1") and "rank 0 on" not in out.read_bytes().decode("latin-1")


@needs_numpy
def test_the_chrome_form_has_one_event_in_a_line(timeline, tmp_path):
    path, out = timeline(2, "nasty"), tmp_path / "again.json"
    made("export", path, "--format=chrome", "-o", out)
    assert json.loads(out.read_text()) == json.loads(path.read_text())
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(KINETO, indent=2))
    made("export", pretty, "--format", "chrome", "-o", out)
    assert len(out.read_text().splitlines()) == len(json.loads(out.read_text())) + 2


@needs_numpy
def test_a_report_of_a_job_that_is_killed(start, tmp_path):
    marks, path = tmp_path / "marks", tmp_path / "out.json"
    marks.mkdir()
    job = start("-np", 2, "--timeline", path, *works("endless", marks))
    wait_until("both ranks at work", lambda: len(list(marks.iterdir())) == 2 or job.process.poll() is not None)

    def steps():
        ranks = json.loads(made("report", path, "--json"))["ranks"]
        return ranks[1]["steps"] if len(ranks) == 2 else 0

    # The file follows the ranks, later on a busy machine.
    wait_until("steps in the file", lambda: steps() > 10 or job.process.poll() is not None)
    os.kill(job.pid, signal.SIGKILL)
    job.finish()
    assert steps() > 10


@needs_numpy
def test_tail_follows_a_timeline_until_it_is_complete(start, tmp_path):
    marks, path = tmp_path / "marks", tmp_path / "out.json"
    marks.mkdir()
    job = start("-np", 2, "--timeline", path, *works("endless", marks))
    wait_until("both ranks at work", lambda: len(list(marks.iterdir())) == 2 or job.process.poll() is not None)
    with subprocess.Popen([hvdrun_path(), "trace", "tail", path], stdout=subprocess.PIPE, text=True) as tail:
        first = tail.stdout.readline()
        os.kill(job.workers[0], signal.SIGKILL)
        job.finish()
        rest = tail.communicate(timeout=DEADLINE)[0]
    assert tail.returncode == 0
    for line in (first + rest).splitlines():
        assert re.fullmatch(r"\d+ s: \d+ operations? of \d ranks?, .*", line), line
    assert made("tail", "--once", path).splitlines()[0].startswith(first.split(":")[0] + ":")


BAD = {
    "empty": ("", "is empty"),
    "text": ("hello", "is no trace"),
    "half": ('[\n{"ph":"i","name":"a","ts":1,"pid":0},\n{"ph":"i","na', "ends in the middle"),
    "no_comma": ('[{"ph":"i"} {"ph":"i"}]', "no comma"),
    "bad_event": ('[{"ph":"i","ts":1,}]', "no event"),
    "object": ('{"events":[]}', "traceEvents"),
    "no_ranks": ('[{"ph":"i","name":"a","ts":1,"pid":0}]', "no rank"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_no_timeline_is_one_sentence(tmp_path, case):
    path = tmp_path / "bad.json"
    path.write_text(BAD[case][0])
    code, out, err = trace("report", path)
    assert code == 2 and out == "" and err.count("\n") == 1 and err.startswith("hvdrun trace: ") and BAD[case][1] in err, err


@pytest.mark.parametrize("arguments, says", [
    ([], "say what to do"), (["repot", "x"], "'repot' is unknown"), (["report"], "name one file"), (["report", "a", "b"], "name one file"),
    (["report", "no/such"], "No such file"), (["report", "."], "Is a directory"), (["report", "--jsn", "x"], "'--jsn' is no option"),
    (["merge", "-o", "x"], "name the files"), (["export", "x", "-o", "y"], "--format is missing"),
    (["export", "x", "--format", "xml", "-o", "y"], "xml is unknown"), (["export", "x", "--format"], "needs a value"),
    (["export", "in.json", "--format", "chrome", "--rank", "one", "-o", "y"], "--rank one is no rank"),
    (["export", "in.json", "--format", "chrome", "--rank", "1", "-o", "y"], "in.json is none"),
    (["merge", "in.json"], "-o FILE is missing"), (["merge", "in.json", "-o", "in.json"], "would be overwritten"),
    (["merge", "in.json", "-o", "no/such/out"], "cannot be written"), (["merge", "in.json", "-o", "."], "no regular file"),
])
def test_wrong_words_are_one_sentence(tmp_path, arguments, says):
    (tmp_path / "in.json").write_text('[{"ph":"i","name":"a","ts":1,"pid":0}]')
    done = subprocess.run([hvdrun_path(), "trace", *arguments], capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and says in done.stderr, done.stderr
    assert os.listdir(tmp_path) == ["in.json"]


def test_help_of_the_trace_tools():
    code, out, _ = trace("--help")
    assert code == 0 and "usage: hvdrun trace" in out
    assert trace("report", "--help")[1] == out
