"""The benchmarks are no part of any test run: at least they can be started, name parts that exist, and write their page honestly."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
PROGRAMS = sorted(path.name for path in BENCH.glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_module_can_be_imported(program):
    command = [sys.executable, "-B", "-c", f"import {program.removesuffix('.py')}"]
    # As a rank that hvdrun starts.
    environment = dict(os.environ, PYTHONPATH=str(BENCH.parents[1] / "runtime" / "python"),
                       HVD_RUNTIME=str(BENCH.parents[1] / "build" / "lib" / "libhvd.so"))
    done = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, timeout=60, env=environment)
    missing = re.search(r"ImportError: .*libhvd.*|No module named '(?:torch|numpy)'", done.stderr)
    if program.endswith("_rank.py") and missing:
        pytest.skip(missing.group())
    assert done.returncode == 0, done.stderr


def test_every_part_has_something_that_measures_it():
    code = ("import time, bench, types\n"
            "args = types.SimpleNamespace(bench_dir='b', bin_dir='b', build_dir='b', rounds=1, starts=1, footprints=1, logs=1, events=1, "
            "log_lines=1, peer=False, python='python3', start_deadline=1, log_deadline=1, most_thrown=1)\n"
            "for part in bench.PARTS:\n"
            "    assert list(bench.tables_of(part, args, None, None, time.monotonic() + 60)), part\n")
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=BENCH, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def page():
    sys.path.insert(0, str(BENCH))
    try:
        import page
    finally:
        sys.path.remove(str(BENCH))
    return page


def row_of(ratio, low, high, size=64, registered=False):
    return {"collective": "broadcast", "bytes": size, "registered": registered, "runs": 3, "us": 1.0, "peer_us": ratio, "peer_setting": "default",
            "ratio": ratio, "ratio_low": low, "ratio_high": high}


RESULTS = {
    "machine": {"cpu": "a processor", "cores": 2, "kernel": "6", "page_bytes": 4096, "load_at_start": 0.1}, "date": "1 May 2026", "source": "abc",
    "load_at_end": 1.0, "peers": {"Open MPI": "4"}, "command": "scripts/bench.sh", "seconds": 60, "failures": [],
    "collectives": [[row_of(0.5, 0.4, 0.6), row_of(1.2, 0.9, 1.4, 128), row_of(3, 2, 4, 256)]]}


def test_the_page_names_what_is_slower_and_what_is_not_known():
    lost, unclear = "\n".join(page().slower(RESULTS)).split("Every one whose rounds do not agree")
    assert "broadcast, private, 64 B, Open MPI: 0.50 (0.40 to 0.60)" in lost and lost.count("- ") == 1
    assert "broadcast, private, 128 B, Open MPI: 1.20" in unclear and "256 B" not in unclear


def test_the_page_says_that_the_machine_was_busy():
    assert "busy" not in page().figures(RESULTS)
    busy = dict(RESULTS, machine=dict(RESULTS["machine"], load_at_start=7))
    assert "**The machine was busy with something else**" in page().figures(busy)


def test_the_page_names_the_parts_that_were_not_measured():
    said = [line for line in page().figures(RESULTS).splitlines() if line.startswith("**Not in this run**")]
    assert len(said) == 1 and "`hosts`" in said[0] and "`torch_step`" in said[0] and "`collectives`" not in said[0]


def test_figures_replace_those_before_and_nothing_else():
    text = f"before\n\n{page().BEGIN}\nold\n{page().END}\n\nafter\n"
    once = page().written(text, RESULTS)
    assert "old" not in once and once.startswith("before\n") and once.endswith("\nafter\n") and "1 May 2026" in once
    assert page().written(once, RESULTS) == once
    with pytest.raises(ValueError, match="the page has no lines"):
        page().written("no marks", RESULTS)


def test_the_page_of_the_guide_has_its_marks_and_each_part_its_table():
    text = (BENCH.parents[1] / "docs" / "benchmarks.md").read_text()
    assert text.count(page().BEGIN) == 1 and text.count(page().END) == 1
    code = "import bench, page; assert set(bench.PARTS) == set(page.PARTS)"
    assert subprocess.run([sys.executable, "-B", "-c", code], cwd=BENCH, capture_output=True, timeout=60).returncode == 0


def test_the_sets_of_a_pytorch_step_exist_and_share_all_of_its_time():
    code = ("import torch_step, gradient_sets\n"
            "assert set(torch_step.SHARE) == set(torch_step.STEPS) <= set(gradient_sets.SETS)\n"
            "torch_step.has_torch = lambda python: True\n"
            "ran = []\n"
            "torch_step.TorchStep._run = lambda self, name, seconds: ran.append((name, round(seconds)))\n"
            "import time, types\n"
            "torch_step.TorchStep(types.SimpleNamespace(python='p'), types.SimpleNamespace(say=print), time.monotonic() + 100).measure()\n"
            "assert [name for name, _ in ran] == list(torch_step.SHARE) and ran[-1][1] == 100, ran\n")
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=BENCH, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("failure, told", [('Failed("it hung")', "it hung"), ('KeyError("a mistake")', "KeyError: 'a mistake'")])
def test_a_part_that_fails_does_not_take_the_others_along(failure, told):
    code = """if True:
        import types, bench
        from processes import Failed

        class Part:
            def __init__(self, name):
                self.name = name

            def measure(self):
                if self.name == "elastic":
                    raise FAILURE

            def report(self):
                print("measured", self.name)
                return {"rows": []} if self.name != "log" else {"ratio": None}

        bench.Calibration = lambda folder: types.SimpleNamespace(measure=lambda: None, samples=[])
        bench.parse = lambda argv: types.SimpleNamespace(no_peer=True, bench_dir="b", minutes=1, only=["elastic", "log"], json=None, page=None,
                                                         rounds=1, starts=1)
        bench.tables_of = lambda part, *_: [Part(part)]
        assert bench.main([]) == 1
    """.replace("FAILURE", failure)
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=BENCH, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "measured log" in done.stdout and "measured elastic" not in done.stdout and "FAILED: elastic: " in done.stdout
    assert told in done.stdout
