"""The benchmarks are no part of any test run: at least they can be started, and a part that fails leaves the others alone."""
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


def run(code):
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=BENCH, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_can_be_imported():
    needs_torch = lambda name: name.endswith("_rank") or name == "step_costs"
    names = [path.stem for path in sorted(BENCH.glob("*.py")) if not needs_torch(path.stem)]
    assert len(names) > 20
    run("import " + ", ".join(names))


def test_every_part_has_something_that_measures_it():
    code = ("import time, bench, types\n"
            "args = types.SimpleNamespace(bench_dir='b', bin_dir='b', build_dir='b', rounds=1, starts=1, footprints=1, logs=1, events=1, "
            "log_lines=1, peer=False, python='python3', start_deadline=1, log_deadline=1, most_thrown=1)\n"
            "for part in bench.PARTS:\n"
            "    assert list(bench.tables_of(part, args, None, None, time.monotonic() + 60)), part\n")
    run(code)


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
    out = run(code)
    assert "measured log" in out and "measured elastic" not in out and "FAILED: elastic: " in out
    assert told in out
