"""The parts of test/bench that start ranks of their own are alive: a round of the smallest sizes of each, and wrong results fail."""

import importlib.util
import json
import pathlib
import re
import shutil
import sys
import time
import types

import pytest

from conftest import REPO, hvdrun_path

sys.path.append(str(REPO / "test" / "bench"))

import collectives  # noqa: E402
import openmpi  # noqa: E402
import page  # noqa: E402
import processes  # noqa: E402
import python_calls  # noqa: E402
import torch_backends  # noqa: E402
import torch_step  # noqa: E402
import tuning  # noqa: E402
import tuning_jobs  # noqa: E402

BUILD = pathlib.Path(hvdrun_path()).resolve().parents[1]
HAS_MPI = shutil.which("mpirun") and (BUILD / "bench" / "mpi_perf").exists()
needs_numpy = pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="the ranks need NumPy")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the ranks need PyTorch")


@pytest.fixture(name="args")
def args_fixture(monkeypatch):
    monkeypatch.setattr(openmpi, "SETTINGS", openmpi.SETTINGS[:1])
    monkeypatch.setattr(openmpi, "SETTINGS_OF", {name: known[:1] for name, known in openmpi.SETTINGS_OF.items()})
    return types.SimpleNamespace(bin_dir=str(BUILD / "bin"), bench_dir=str(BUILD / "bench"), rounds=1, python=sys.executable, peer=bool(HAS_MPI))


def measured(part, args):
    table = part(args, processes.Progress(), time.monotonic() + 120)
    table.measure()
    return table.report()


def in_page(name, result):
    """The lines of the page for figures as --json keeps them."""
    return "\n".join(page.PARTS[name](json.loads(json.dumps([result]))))


@needs_torch
def test_a_step_of_pytorch_is_measured_beside_its_peers(args, monkeypatch):
    monkeypatch.setattr(torch_step, "SHARE", {"small": 1.0})
    monkeypatch.setitem(torch_step.STEPS, "small", 2)
    result = measured(torch_step.TorchStep, args)
    assert [row["set_to_none"] for row in result["rows"]] == [True, False]
    assert all(row["seconds"][way]["median"] > 0 for row in result["rows"] for way in ("alone", "ours", "ddp"))
    assert in_page("torch_step", result).count("| small |") == 2


def test_the_backends_of_torch_distributed_are_compared_by_their_exchange(args, capsys):
    part = torch_backends.TorchBackends(args, None, 0)
    part.found = {"DDP, ResNet-50": {"torch": "2.15", "threads": 1, "seconds": {"alone": [1.0, 1.0], "hvd": [1.1, 1.2], "gloo": [1.5, 2.0]}},
                  "all_reduce, 4 B": {"torch": "2.15", "threads": 1, "seconds": {"hvd": [3e-5, 3e-5], "gloo": [1e-4, 1e-4]}}}
    part.watched = [{"watched": 1.0 + 0.01 * turn, "alone": 1.0} for turn in range(-3, 4)]
    result = part.report()
    assert [(row["what"], round(row["ratio"]["median"], 3), row["is_met"]) for row in result["rows"]] == [
        ("DDP, ResNet-50", 0.2, True), ("all_reduce, 4 B", 0.3, False), ("watching, a step over gloo", 1.0, True)]
    assert in_page("torch_backends", result).count("| DDP, ResNet-50 | exchange |") == 1 and "missed" in capsys.readouterr().out
    part.watched = [{"watched": 1.01, "alone": 1.0}] * 20
    assert not list(part.rows())[-1]["is_met"]


@needs_torch
def test_a_pytorch_without_the_backend_leaves_it_out(args):
    """That of Debian. With a newer one --only torch_backends measures."""
    result = measured(torch_backends.TorchBackends, args)
    assert "rows" in result or "older than 2.14" in result["left_out"], result


@needs_torch
def test_a_wrong_gradient_fails_the_step(run):
    code = ("import sys, torch; import torch_step_rank as rank; rank.hvd.init(); side = rank.Side('alone', [16], torch.ones(16)); "
            "side.step(True); side.check(); print('right'); side.model.tensors[0].grad[3] = 9; side.check()")
    job = run("-np", 1, "-x", f"PYTHONPATH={REPO / 'test' / 'bench'}:{REPO / 'runtime' / 'python'}", sys.executable, "-c", code)
    assert "right" in job.out and job.code == 1 and "WRONG: alone, gradient 0" in job.err, job.out + job.err


def test_a_python_without_pytorch_leaves_the_step_out_in_one_line(args, capsys):
    args.python = "false"
    assert measured(torch_step.TorchStep, args) == {"left_out": "false has no PyTorch; name one that has by --python"}
    assert "PyTorch step: left out, false has no PyTorch" in capsys.readouterr().out


@needs_numpy
@pytest.mark.long
def test_calls_through_python_are_measured_beside_their_peers(args, monkeypatch):
    monkeypatch.setattr(python_calls, "SIZES", (4, 8192))
    monkeypatch.setattr(python_calls, "MOST_ROUNDS", 20)
    result = measured(python_calls.PythonCalls, args)
    assert [row["bytes"] for row in result["rows"]] == [4, 8192] and all(row["us"] > 0 for row in result["rows"])
    peers = {peer for row in result["rows"] for peer in row["peers"]}
    left_out = {words.partition(":")[0] for words in result["left_out"]}
    assert peers | left_out == {"mpi4py", "torch.distributed", "ours by ctypes"} and not peers & left_out
    assert "| 8 KiB |" in in_page("python_calls", result)


@needs_numpy
@pytest.mark.parametrize("rank_adds, right", [(3.0, True), (2.0, False)])
def test_a_wrong_sum_fails_a_call_through_python(rank_adds, right):
    import python_calls_rank

    class Fake:
        """A library of two ranks whose second one has `rank_adds` times what this one has at its first call."""
        rank, size, name = 0, 2, "fake"

        def barrier(self):
            pass

        def call_on(self, array):
            def call():
                array[:] += array[0] + rank_adds - 2
            return call

    if right:
        assert python_calls_rank.measure(Fake(), 1 << 20, 1) > 0
    else:
        with pytest.raises(SystemExit, match="WRONG: fake of 1048576 B"):
            python_calls_rank.measure(Fake(), 1 << 20, 1)


def test_the_other_collectives_are_measured_in_private_memory_too(args, monkeypatch):
    monkeypatch.setattr(collectives, "NAMES", ("allgather", "alltoall"))
    monkeypatch.setattr(collectives, "SIZES", (64, 8192))
    monkeypatch.setattr(collectives, "MOST_ROUNDS", 50)
    rows = measured(collectives.Collectives, args)
    assert {(row["collective"], row["bytes"], row["registered"]) for row in rows} == {
        (name, size, registered) for name in ("allgather", "alltoall") for size in (64, 8192) for registered in (True, False)}
    assert all(("ratio" in row) == bool(HAS_MPI) for row in rows)
    assert in_page("collectives", rows).count("| private |") == 4


def test_a_wrong_result_fails_a_collective():
    line = json.dumps({"correct": False, "bytes": 64, "registered": False, "read_back": True, "us": 1})
    with pytest.raises(processes.Failed, match="wrong result"):
        collectives.figures_of("echo", ["echo", line], (64,))


def test_settings_of_the_peer_go_on_where_they_are_near_the_best():
    found = {"default": {8: 10.0, 64: 10.0}, "good": {8: 1.0, 64: 9.0}, "bad": {8: 1.6, 64: 100.0}}
    assert openmpi.worth_all_rounds(found, margin=1.5) == {"default": [8, 64], "good": [8, 64], "bad": []}
    assert openmpi.worth_all_rounds({}) == {}


@pytest.mark.parametrize("size", [4, 65536, 65540, 1 << 20])
def test_raw_sockets_add_up_right(run, size, tmp_path):
    told = [f"RAW_PERF_FOLDER={tmp_path}", "RAW_PERF_INTERFACE=lo"]
    job = run("-np", 3, "env", *told, BUILD / "bench" / "raw_perf", "--private", "--json", "--loops", 1, "--most-rounds", 3, "--verify", "--sizes", size)
    assert job.code == 0, job.err
    rows = [json.loads(line[line.index("{"):]) for line in job.out.splitlines() if "{" in line]
    assert len(rows) == 2 and all(row["correct"] and row["bytes"] == size for row in rows)


class PlayedJob:
    """Steps of a known time, by the stripes: 8 are the best of the grid."""
    steps = 5

    def __init__(self):
        self.order = []

    def step(self, flags):
        self.order.append(" ".join(flags))
        return {"": 100, "--stripes 1": 101, "--stripes 2": 80, "--stripes 4": 70, "--stripes 8": 60}[" ".join(flags)] * 1e3


def contest_of(choice, steps=80):
    """A whole contest about a search that chose this, and its verdict."""
    job = PlayedJob()
    contest = tuning_jobs.Contest(job, [["--stripes", number] for number in "1248"], lambda text: None)
    rows = [{"kind": "warm-up", "steps": "5"}, *[{"kind": "candidate", "steps": "5"}] * (steps // 5), {"kind": "best", "steps": "5"}]
    found = contest.explore(2, lambda: job.order.append("search") or tuning.Search(choice.split(), "found", rows))
    ratios = contest.final(found.flags, time.monotonic())
    return job, contest, tuning_jobs.verdict(ratios, found.steps())


def test_the_grid_and_the_search_take_turns_in_one_run():
    job, contest, found = contest_of("--stripes 8")
    searched = job.order.index("search")
    assert set(job.order[:searched]) == {"", "--stripes 1", "--stripes 2", "--stripes 4"} and "--stripes 8" in job.order[searched:]
    assert [" ".join(point) for point in contest.best()] == ["--stripes 8", "--stripes 4", "--stripes 2", "--stripes 1"]
    assert all(len(ratios) == 2 for ratios in contest.ratios.values())
    assert found["holds"] and found["best"] == "--stripes 8" and found["of_best"]["median"] == 0.6 and found["steps"] == 80


@pytest.mark.parametrize("choice, steps, word", [("--stripes 2", 80, "WORSE"), ("--stripes 8", 85, "TOO LATE")])
def test_a_search_that_misses_the_best_or_its_steps_fails(choice, steps, word):
    _, _, found = contest_of(choice, steps)
    assert not found["holds"] and word in found["words"], found


def test_a_choice_that_is_slower_in_every_round_fails_though_wide_intervals_overlap():
    ratios = {tuning_jobs.CHOICE: [0.55, 0.7, 0.8], "--stripes 8": [0.45, 0.57, 0.66]}
    found = tuning_jobs.verdict(ratios, 80)
    assert found["choice"]["low"] < found["of_best"]["high"] and not found["holds"] and "SLOWER" in found["words"], found
    undecided = tuning_jobs.verdict({**ratios, tuning_jobs.CHOICE: [0.44, 0.58, 0.8]}, 80)
    assert undecided["holds"], undecided


def test_the_cost_of_a_search_is_that_of_its_own_windows():
    """A slow warm-up is none of it, and windows that have the defaults again in the end are."""
    rows = [{"kind": kind, "steps": "5", "step_ms": ms, "chunk_kib": chunk, "score": "1", "predicted_ms": "0"} for kind, ms, chunk in (
        ("warm-up", "90", "128"), ("default", "10", "128"), ("candidate", "13", "64"), ("best", "10", "128"), ("candidate", "9", "512"))]
    assert tuning_jobs.cost_by_windows(rows, 15) == pytest.approx(1 + 0.3 / 3)
    assert tuning_jobs.cost_by_windows(rows, 20) == pytest.approx(1 + 0.3 / 4)
    assert tuning_jobs.cost_by_windows(rows, 25) == pytest.approx(1 + 0.2 / 5) and tuning_jobs.cost_by_windows(rows, 9) is None


@needs_numpy
@pytest.mark.long
def test_a_job_has_a_grid_a_search_a_verdict_and_a_cost(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(tuning_jobs, "FINAL_ROUNDS", (1, 1))
    monkeypatch.setattr(tuning_jobs, "COST_ROUNDS", (1, 1))
    monkeypatch.setattr(tuning_jobs, "COST_STEPS", 20)
    monkeypatch.setattr(tuning_jobs, "WINDOWS", ("--autotune-bayes-opt-max-samples", "5", "--autotune-warmup-samples", "1"))
    monkeypatch.setattr(tuning_jobs, "ONE_HOST_GRID", {"--chunk-kib": (64,)})
    monkeypatch.setattr(tuning_jobs, "BUSY_HOST_GRID", tuning_jobs.ONE_HOST_GRID)
    figures = tmp_path / "figures.json"
    code = tuning_jobs.main(["--bin-dir", str(BUILD / "bin"), "--python", sys.executable, "--minutes", "0", "--rounds", "1", "--steps", "2",
                             "--search-steps", "60", "--json", str(figures)], [tuning_jobs.Work("GPT-2, scaled", 2)])
    out = capsys.readouterr().out
    assert code == 0 and "VERDICT: " in out and "COST of the first 20 steps" in out and "tuning found" in out, out
    (job,) = json.loads(figures.read_text())["jobs"]
    assert [row["flags"] for row in job["grid"]] == ["--chunk-kib 64"]
    assert job["verdict"]["choice"]["runs"] == 1 and job["cost"]["beside"]["runs"] == 1 and job["verdict"]["steps"] > 0


@pytest.mark.parametrize("framework, lines", [("tensorflow", 2), ("keras", 1), ("jax", 2), ("mxnet", 1)])
def test_calls_of_frameworks_are_measured_beside_their_own(run, framework, lines):
    python = pathlib.Path.home() / ".cache" / "hvdrun" / {"keras": "tf", "tensorflow": "tf"}.get(framework, framework)
    python = python.with_name(python.name + "-venv") / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is not there: scripts/install_deps.sh makes it")
    job = run("-np", 2, "--prefix", "", python, REPO / "test" / "bench" / "framework_calls.py", framework, 1, 2)
    assert job.code == 0, job.err
    found = re.findall(rf"^{framework}: .*beside .*: ([\d.]+) us beside ([\d.]+) us, ([\d.]+) times$", job.out, re.M)
    assert len(found) == lines, job.out
    for ours, own, ratio in found:  # one round: the ratio is that of the two
        assert float(ratio) == pytest.approx(float(ours) / float(own), rel=0.02, abs=0.02), job.out
