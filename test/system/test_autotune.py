"""`hvdrun --autotune`: settings change while ranks train, results do not."""

import csv
import json
import os
import re
import signal

import pytest
from conftest import WORKERS, has_modules, wait_until
from elastic_job import WITH_TORCH, Training
from test_played_hosts import GLOO, PYTHON

pytestmark = pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")
HOROVODS = ["hierarchical_allreduce", "hierarchical_allgather", "torus_allreduce", "cache_enabled", "cycle_time_ms",
            "tensor_fusion_threshold", "score"]


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    """The results of other runs and tests count for nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hvdrun" / "tuning"


def rows(log):
    if not log.exists():
        return []
    with open(log, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["step_ms"]]


def train(start, tmp_path, *flags, windows):
    """A job that trains until the log has so many windows; its output, and its log."""
    log, stop = tmp_path / "tuning.csv", tmp_path / "stop"  # relative to the folder in which hvdrun was started
    for earlier in (log, stop):
        earlier.unlink(missing_ok=True)
    job = start("--autotune", "--autotune-log-file", log.name, "--autotune-warmup-samples", 1, *flags, PYTHON,
                str(WORKERS / "tuned_worker.py"), stop, cwd=tmp_path)
    wait_until(f"{windows} windows were tried", lambda: len(rows(log)) >= windows, told=lambda: str(rows(log)))
    stop.touch()
    assert job.finish() == 0, job.err
    bits = re.findall(r"bits (\w+)", job.out)
    assert len(bits) == 2 and len(set(bits)) == 1, job.out
    return job, rows(log)


def test_every_choice_is_logged_and_no_sum_changes_its_bits(start, tmp_path):
    """The file has the columns of Horovod, windows in order, and more than one choice; the default comes first."""
    _, tried = train(start, tmp_path, "-np", 2, "--autotune-bayes-opt-max-samples", 12, windows=14)
    assert list(tried[0])[: len(HOROVODS)] == HOROVODS
    assert [row["kind"] for row in tried[:2]] == ["warm-up", "default"]
    assert {row["chunk_kib"] for row in tried[:2]} == {"128"}
    assert len({(row["chunk_kib"], row["wait_spins"], row["wait_yields"]) for row in tried}) > 1, tried
    assert all(float(row["score"]) > 0 and float(row["step_ms"]) > 0 for row in tried), tried
    assert os.stat(tmp_path / "tuning.csv").st_mode & 0o777 == 0o600


def test_trials_are_events_of_the_timeline(start, tmp_path):
    """Each window that the log has is a mark on the row of rank 0, with its settings."""
    timeline = tmp_path / "timeline.json"
    _, tried = train(start, tmp_path, "-np", 2, "--timeline", timeline, "--autotune-bayes-opt-max-samples", 6, windows=8)
    marks = [e for e in json.loads(timeline.read_text()) if e.get("name") == "TUNING_TRIAL"]
    assert [mark["args"]["kind"] for mark in marks] == [row["kind"] for row in tried][:len(marks)]
    assert len(marks) >= 8 and {mark["pid"] for mark in marks} == {0}
    settings = [row for row in tried[:len(marks)] if f"--chunk-kib {row['chunk_kib']} " in marks[tried.index(row)]["args"]["settings"]]
    assert len(settings) == len(marks), (marks, tried)
    assert all(mark["args"]["bytes_per_second"] > 0 and mark["args"]["steps"] > 0 for mark in marks), marks


def test_the_end_of_a_search_is_one_sentence(start, tmp_path):
    result, tried = train(start, tmp_path, "-np", 2, "--autotune-bayes-opt-max-samples", 6, windows=12)
    assert [row["kind"] for row in tried].count("best") > 0, tried
    told = [line for line in result.err.splitlines() if "tuning found" in line]
    assert told and ("faster than with the defaults" in told[0] or "no measurable gain" in told[0]), result.err


def test_what_the_user_set_is_not_changed(start, tmp_path):
    _, tried = train(start, tmp_path, "-np", 2, "--chunk-kib", 64, "--autotune-bayes-opt-max-samples", 12, windows=8)
    assert {row["chunk_kib"] for row in tried} == {"64"}


def candidates(log):
    return sum(row["kind"] == "candidate" for row in rows(log))


def test_a_rank_that_dies_in_a_trial_ends_the_job_as_ever(start, tmp_path, memory):
    """The report names the rank; the log ends with a whole line, and no result is left of half a search."""
    log, stop = tmp_path / "tuning.csv", tmp_path / "stop"
    job = start("-np", 2, "--autotune", "--autotune-log-file", log.name, "--autotune-warmup-samples", 1, "--autotune-steps-per-sample", 200,
                "--autotune-report", "report.html", PYTHON, str(WORKERS / "tuned_worker.py"), stop, "dies", cwd=tmp_path)
    wait_until("a trial", lambda: len(rows(log)) >= 2, told=lambda: str(rows(log)))
    stop.touch()
    assert job.finish() != 0 and "rank 1" in job.err and "SIGKILL" in job.err, job.err
    assert log.read_text(encoding="utf-8").endswith("\n") and (tmp_path / "report.html").exists(), job.err
    assert not memory.exists() or not list(memory.iterdir())


@pytest.mark.skipif(not has_modules("torch"), reason="the workers need PyTorch")
def test_an_elastic_job_is_tuned_before_and_after_a_death(start, tmp_path):
    """Each generation has a search of its own; the log goes on, and the sums stay right."""
    log = tmp_path / "tuning.csv"
    training = Training(start, tmp_path, "-np", 3, "--min-np", 1, "--autotune", "--autotune-log-file", log, "--autotune-warmup-samples", 1,
                        script=WITH_TORCH)
    training.await_world(3)
    wait_until("a trial", lambda: candidates(log) >= 1, told=training.text)
    os.kill(training.victim(3, 1), signal.SIGKILL)
    wait_until("a new rank in its place", lambda: len(training.worlds(3)) == 4, told=training.text)
    before = candidates(log)
    wait_until("more trials", lambda: candidates(log) > before + 1, told=training.text)
    training.finish()
    assert len({row["chunk_kib"] for row in rows(log)}) > 1, rows(log)


def test_with_nothing_to_choose_it_says_so(run, tmp_path):
    (tmp_path / "stop").touch()
    worker = [PYTHON, str(WORKERS / "tuned_worker.py"), tmp_path / "stop"]
    one = run("-np", 1, "--autotune", *worker)
    assert one.code == 0 and "nothing is tuned: a world of one rank exchanges nothing" in one.err, one.err
    given = run("-np", 2, "--autotune", "--chunk-kib", 64, "--wait-spins", 100, "--wait-yields", 10, *worker)
    assert given.code == 0 and "nothing is tuned: all settings that have an effect were given" in given.err, given.err


def test_a_log_that_cannot_be_written_stops_nothing(start, tmp_path):
    """One sentence, and the job goes on."""
    stop = tmp_path / "stop"
    with open(tmp_path / "err", "wb") as err:
        job = start("-np", 2, "--autotune", "--autotune-warmup-samples", 0, "--autotune-log-file", tmp_path / "none" / "x.csv",
                    PYTHON, str(WORKERS / "tuned_worker.py"), stop, stderr=err)
    wait_until("the log is missed", lambda: b"tuning goes on without it" in (tmp_path / "err").read_bytes())
    stop.touch()
    assert job.finish() == 0


@pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so")
def test_between_hosts_fusion_and_stripes_are_tuned(start, tmp_path):
    _, tried = train(start, tmp_path, "-np", 2, "--hosts-per-machine", 2, "--autotune-bayes-opt-max-samples", 12, windows=10)
    assert len({row["tensor_fusion_threshold"] for row in tried}) > 1, tried
    assert len({row["stripes"] for row in tried}) > 1, tried
    predicted = [float(row["predicted_ms"]) for row in tried]
    assert tried[0]["kind"] == "warm-up" and predicted[0] == 0 and min(predicted) >= 0, "what is predicted is made of the warm-up"
    assert {row["chunk_kib"] for row in tried} == {"128"}


def bits(run, tmp_path, *flags):
    """The bits of the sums of a job without --autotune, which takes 20 steps."""
    (tmp_path / "stop").touch()
    job = run(*flags, PYTHON, str(WORKERS / "tuned_worker.py"), tmp_path / "stop")
    assert job.code == 0, job.err
    (found,) = set(re.findall(r"bits (\w+)", job.out))
    return found


def test_no_setting_that_is_tuned_changes_the_order_of_sums(run, tmp_path):
    """Sums have the same bits at both ends of each range as with the defaults: the search may choose any of them."""
    job = ("-np", 3)
    ends = [("--chunk-kib", 16), ("--chunk-kib", 2048), ("--wait-spins", 1), ("--wait-spins", 20000), ("--wait-yields", 1), ("--wait-yields", 2000)]
    assert {bits(run, tmp_path, *job, *flags) for flags in ends} == {bits(run, tmp_path, *job)}


@pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so")
def test_no_threshold_of_fusion_changes_the_order_of_sums(run, tmp_path):
    """The same between three hosts."""
    job = ("-np", 3, "--hosts-per-machine", 3)
    ends = [("--fusion-threshold-mb", mb) for mb in (0, 1, 256)]
    assert {bits(run, tmp_path, *job, *flags) for flags in ends} == {bits(run, tmp_path, *job)}


SEARCH = ("-np", 2, "--autotune-bayes-opt-max-samples", 6)


def test_the_next_run_starts_from_the_result_and_verifies_it(start, run, tmp_path, memory):
    """Six windows are enough then: three of the default, three of the earlier choice."""
    first, _ = train(start, tmp_path, *SEARCH, windows=9)
    assert "an earlier run found" not in first.err
    assert [path.stat().st_mode & 0o777 for path in memory.iterdir()] == [0o600]
    second, _ = train(start, tmp_path, "-np", 2, windows=9)
    assert re.search(r"tuning starts from --chunk-kib \d+ --wait-\w+ \d+, which an earlier run found", second.err), second.err
    third, _ = train(start, tmp_path, *SEARCH, "--no-autotune-memory", windows=9)
    assert "an earlier run found" not in third.err
    fixed, _ = train(start, tmp_path, *SEARCH, "--chunk-kib", 64, windows=9)
    assert "an earlier run found" not in fixed.err, "another search space"


def test_results_are_listed_exported_applied_and_forgotten(start, run, tmp_path, memory):
    none = run("tune", "show")
    assert none.code == 0 and none.out == f"nothing is remembered in {memory}; hvdrun --autotune remembers on the host of rank 0\n"
    train(start, tmp_path, *SEARCH, windows=9)
    (found,) = json.loads(run("tune", "show", "--json").out)
    assert found["ranks"] == 2 and found["settings"]["chunk_kib"] >= 16
    assert found["id"] in run("tune", "show").out and f"settings  {found['flags']}\n" in run("tune", "show", found["id"][:3]).out
    exported = run("tune", "export")
    config = tmp_path / "job.yaml"
    config.write_text("launcher:\n  verbose: 1\nruntime:\n  chunk_kib: 8\n", encoding="utf-8")
    applied = run("tune", "apply", found["id"], config)
    assert applied.code == 0 and found["flags"] in applied.out, applied.err
    chunk = f"chunk_kib: {found['settings']['chunk_kib']:.0f}"
    assert chunk in exported.out and chunk in config.read_text(encoding="utf-8") and "verbose: 1" in config.read_text(encoding="utf-8")
    printed = run("-np", 2, "--config-file", config, "--print-config", "true")
    assert printed.code == 0 and chunk.split(": ")[1] in printed.out, printed.err
    assert run("tune", "forget", found["id"]).code == 0 and list(memory.iterdir()) == []


@pytest.mark.parametrize("words, sentence", [
    ((), "usage: hvdrun tune"), (("sow",), "'sow' is none of show, export, apply, forget"), (("export",), "nothing is remembered in"),
    (("show", "a", "b"), "show takes one id at most"), (("forget",), "forget takes one id, or --all"),
    (("apply",), "apply takes an id and a file")])
def test_tune_says_in_a_sentence_how_it_is_used(run, words, sentence):
    used = run("tune", *words)
    assert used.code == 2 and sentence in used.err, used.err


def test_a_damaged_memory_is_said_and_replaced(start, run, tmp_path, memory):
    train(start, tmp_path, *SEARCH, windows=9)
    (path,) = memory.iterdir()
    path.write_text("{", encoding="utf-8")
    assert "is not a result of tuning" in run("tune", "show").err
    job, _ = train(start, tmp_path, *SEARCH, windows=9)
    assert "tuning starts anew: " in job.err and str(path) in job.err, job.err
    assert json.loads(path.read_text(encoding="utf-8"))["ranks"] == 2


def test_a_memory_that_cannot_be_written_stops_nothing(start, tmp_path, memory):
    memory.parent.parent.write_text("", encoding="utf-8")
    job, _ = train(start, tmp_path, *SEARCH, windows=9)
    assert "the result of tuning is not remembered: " in job.err and str(memory) in job.err, job.err


def test_the_report_is_one_page(start, tmp_path):
    page = tmp_path / "report.html"
    train(start, tmp_path, *SEARCH, "--autotune-report", page.name, windows=9)
    text = page.read_text(encoding="utf-8")
    assert page.stat().st_mode & 0o777 == 0o600 and "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    report = json.loads(re.search(r'id="report">(.*?)</script>', text, re.S)[1])
    assert report["sentence"].startswith("tuning found") and len(report["windows"]) >= 7 and len(report["axes"]) == 2


def test_a_report_that_cannot_be_written_stops_nothing(start, tmp_path):
    job, _ = train(start, tmp_path, *SEARCH, "--autotune-report", tmp_path / "none" / "x.html", windows=9)
    assert "--autotune-report: " in job.err and "tuning goes on without it" in job.err, job.err


@pytest.mark.parametrize("flag", ["--autotune-warmup-samples=-1", "--autotune-steps-per-sample=0",
                                  "--autotune-bayes-opt-max-samples=many", "--chunk-kib=1", "--wait-spins=-1"])
def test_bad_values_are_one_sentence(run, flag):
    job = run("-np", 1, flag, "true")
    assert job.code == 2 and flag.split("=")[0] in job.err and len(job.err.splitlines()) == 1, job.err
