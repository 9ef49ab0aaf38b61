"""Healthy scripts of torch.distributed with long silent steps, at a warning time of 10 s: hvdrun may say who waits for whom, and never that the
job hangs. Half a minute each, so in --soak."""

import pytest
from conftest import DEADLINE, WORKERS, has_modules
from test_played_hosts import PYTHON
from test_script_hangs import VENV, needs_py_spy, path_with_py_spy

pytestmark = [pytest.mark.skipif(not has_modules("torch"), reason="the workers need PyTorch"), needs_py_spy]
WARNING, SILENT = 10, 25  # seconds
ONE_RANK = ("compile", "checkpoint", "loader", "compute", "poll")
ALL_RANKS = ("all compute", "all compile", "all save", "all poll")


@pytest.mark.parametrize("what", [*ONE_RANK, *ALL_RANKS, "epoch"])
@pytest.mark.parametrize("pytorch, ranks", [("of this Python", 3), ("of this Python", 2), ("newest", 3)])
def test_a_long_silent_step_is_no_hang(run, tmp_path, monkeypatch, what, pytorch, ranks):
    python = PYTHON if pytorch != "newest" else VENV / "python"
    if pytorch == "newest" and not python.exists():
        pytest.skip("no newest PyTorch here")
    path_with_py_spy(tmp_path, monkeypatch)
    monkeypatch.setenv("SILENT_FOLDER", str(tmp_path))
    job = run("-np", ranks, "--stall-check-warning-time-seconds", WARNING, python, WORKERS / "silent_worker.py", what, SILENT, limit=4 * DEADLINE)
    assert job.code == 0 and job.out.count("through") == ranks, job.err
    assert "hang" not in job.err, job.err
    if what in ("compile", "checkpoint", "compute"):  # the watch was at work
        assert "for rank 0, which " in job.err, job.err
