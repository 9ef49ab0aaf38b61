"""test/tiers.py: the same choice on every day, each value of each parameter in CI, everything in --soak."""

import collections
import os
import subprocess

import pytest
import slowness
import tiers
from conftest import DEADLINE, REPO

Call = collections.namedtuple("Call", "params")


class Item:
    def __init__(self, nodeid, params=None, marks=(), fixtures=()):
        self.nodeid, self.path, self.marks, self.fixturenames = nodeid, nodeid.partition("::")[0], marks, fixtures
        if params is not None:
            self.callspec = Call(params)

    def get_closest_marker(self, name):
        return name if name in self.marks else None


def variants(file, count, other=1, **kwargs):
    return [Item(f"test/system/{file}.py::test_x[{a}-{b}]", {"a": a, "b": b}, **kwargs) for a in range(count) for b in range(other)]


def kept(items, tier, quarantine=()):
    return [item.nodeid.partition("::")[0].rpartition("/")[2] for item in tiers.chosen(items, tier, quarantine)]


@pytest.mark.parametrize("first, second", [(1, 1), (4, 1), (4, 3), (2, 7)])
def test_ci_meets_each_value_of_each_parameter(first, second):
    found = [tiers.parameters_of(item) for item in tiers.chosen(variants("test_x", first, second), "ci", ())]
    assert {p["a"] for p in found} == set(range(first)) and {p["b"] for p in found} == set(range(second))
    assert len(found) <= first + second


def test_the_choice_is_always_the_same_and_not_the_same_for_all_tests():
    assert len({tuple(tiers.covering([{"a": a, "b": b} for a in range(4) for b in range(4)], "x")) for _ in range(5)}) == 1
    assert len({tuple(tiers.covering([{"a": a, "b": b} for a in range(4) for b in range(4)], name)) for name in "uvwxyz"}) > 1


def test_the_core_has_two_variants_of_some_files():
    assert kept(variants("test_run", 5), "core") == ["test_run.py"] * 2
    assert kept(variants("test_relay", 5), "core") == []
    assert kept([Item("test/python/test_x.py::test_y")], "core") == ["test_x.py"]


def test_variants_that_cost_nothing_are_all_run():
    assert len(kept(variants("test_world_of_one", 5, 3), "ci")) == 15


def test_long_tests_run_once_in_ci_and_not_in_the_core():
    items = variants("test_run", 5, marks=("long",))
    assert [len(kept(items, tier)) for tier in ("core", "ci", "soak")] == [0, 1, 5]


def test_tests_of_soak_run_nowhere_else():
    items = variants("test_run", 5, marks=("soak",))
    assert [len(kept(items, tier)) for tier in ("core", "newest", "ci", "soak")] == [0, 0, 0, 5]


def test_what_is_below_pytorch_runs_with_one_of_them():
    items = [Item("test/python/test_jobs.py::test_x", marks=("below_torch",)), *variants("test_run", 5)]
    assert [len(kept(items, tier)) for tier in ("core", "newest", "ci", "soak")] == [3, 2, 6, 6]


def test_storms_and_quarantined_tests_run_in_soak_alone():
    items = variants("test_elastic_storm", 1) + variants("test_run", 3) + variants("test_output", 2)
    for tier in ("core", "ci"):
        assert set(kept(items, tier, {"test_run.py::test_x": "flaky"})) == {"test_output.py"}
    assert len(kept(items, "soak", {"test_run.py::test_x": "flaky"})) == 6


def test_the_list_of_quarantined_tests_has_a_date_and_a_reason(tmp_path):
    (tmp_path / "list").write_text("# comment\n\n2026-01-31 test_run.py::test_x misses its output on one core\n")
    assert tiers.quarantined(tmp_path / "list") == {"test_run.py::test_x": "since 2026-01-31: misses its output on one core"}
    (tmp_path / "list").write_text("2026-01-31 test_run.py::test_x\n")
    with pytest.raises(ValueError):
        tiers.quarantined(tmp_path / "list")
    tiers.quarantined()


def test_files_that_are_named_exist(pytestconfig):
    names = {path.stem for folder in ("system", "python", "chaos") for path in (pytestconfig.rootpath / "test" / folder).glob("test_*.py")}
    assert {*tiers.CORE, *tiers.SOAK, *tiers.CHEAP, *tiers.SPINNING} <= names


def test_tests_that_share_hosts_run_in_one_process():
    assert tiers.group_of(Item("test/system/test_a.py::test_x", fixtures=("rig", "run"))) == "test_a"
    assert tiers.group_of(Item("test/system/test_a.py::test_x", fixtures=("run",))) is None


def test_groups_begin_first_and_then_the_long_tests():
    items = [Item("test/system/test_a.py::test_x"), Item("test/system/test_z.py::test_x", marks=("long",)),
             Item("test/system/test_b.py::test_y", fixtures=("rig",)), Item("test/system/test_b.py::test_x", fixtures=("rig",))]
    names = [item.nodeid.rpartition("/")[2] for item in sorted(items, key=tiers.turn_of)]
    assert names == ["test_b.py::test_y", "test_b.py::test_x", "test_z.py::test_x", "test_a.py::test_x"]


def test_an_isolated_command_sees_none_of_the_others(tmp_path):
    script = REPO / "test" / "isolated.sh"
    if subprocess.run([script, "--check"]).returncode != 0:
        pytest.skip("namespaces are not allowed here")
    (tmp_path / "file").touch()
    code = f"ls /tmp; ls {tmp_path}/file || echo hidden; ls -d /proc/[0-9]* | wc -l; ip -o link | wc -l; exit 7"
    done = subprocess.run([script, "sh", "-c", code], capture_output=True, text=True, timeout=DEADLINE,
                          env={**os.environ, "HVD_TEST_SCRATCH": str(tmp_path)})
    lines = done.stdout.splitlines()
    assert done.returncode == 7 and lines[0] == "pytest" and lines[-1] == "1" and int(lines[-2]) < 8, done.stdout + done.stderr
    assert ("hidden" in lines) == str(tmp_path).startswith("/tmp/")


def test_limits_grow_with_the_machine_and_with_the_tests_at_a_time(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for machine, workers, factor in ((None, None, 1), ("1.5", None, 1.5), ("1.5", "6", 4.5), ("2", "1", 2)):
        for name, value in (("HVD_TEST_SLOWNESS", machine), ("PYTEST_XDIST_WORKER_COUNT", workers)):
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
        assert slowness.scaled(10) == 10 * factor
