"""The benchmarks are no part of any test run: at least they can be started, and name parts that exist."""
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
PROGRAMS = sorted(path.name for path in BENCH.glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_module_can_be_imported(program):
    command = [sys.executable, "-B", "-c", f"import {program.removesuffix('.py')}"]
    done = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_part_has_something_that_measures_it():
    code = ("import time, bench, types\n"
            "args = types.SimpleNamespace(bench_dir='b', bin_dir='b', build_dir='b', rounds=1, starts=1, footprints=1, logs=1, events=1, "
            "log_lines=1, peer=False, python='python3', start_deadline=1, log_deadline=1, most_thrown=1)\n"
            "for part in bench.PARTS:\n"
            "    assert list(bench.tables_of(part, args, None, None, time.monotonic() + 60)), part\n")
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=BENCH, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
