"""The part of test/bench over namespaced hosts is alive: a round of the smallest layout with several ranks on a host."""

import pathlib
import shutil
import sys
import time
import types

import pytest

from conftest import REPO, hvdrun_path
from host_rig import WHY_NOT

sys.path.append(str(REPO / "test" / "bench"))

import hosts  # noqa: E402
import processes  # noqa: E402

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaced hosts: {WHY_NOT}")
BUILD = pathlib.Path(hvdrun_path()).resolve().parents[1]


def test_allreduce_over_hosts_is_measured_beside_its_peers(monkeypatch):
    monkeypatch.setattr(hosts, "LAYOUTS", [(2, 2)])
    monkeypatch.setattr(hosts, "SIZES", [4, 1 << 20])
    monkeypatch.setattr(hosts, "MOST_ROUNDS", 5)
    has_mpi = shutil.which("mpirun") and (BUILD / "bench" / "mpi_perf").exists()
    args = types.SimpleNamespace(bin_dir=str(BUILD / "bin"), rounds=1, peer=bool(has_mpi))
    part = hosts.Hosts(args, processes.Progress(), time.monotonic())
    part.measure()
    rows = part.report()["rows"]
    assert [(row["hosts"], row["ranks_of_a_host"], row["bytes"]) for row in rows] == [(2, 2, 4), (2, 2, 1 << 20)]
    expected = {hosts.RAW} | ({"Open MPI"} if has_mpi else set()) | ({"stock Gloo"} if (BUILD / "bench" / "gloo_perf").exists() else set())
    assert all(row["us"] > 0 and set(row["peers"]) == expected for row in rows)


def test_no_rights_leave_the_hosts_out(monkeypatch, capsys):
    def cannot(*_):
        raise OSError("Operation not permitted")

    monkeypatch.setattr(hosts, "HostRig", cannot)
    part = hosts.Hosts(types.SimpleNamespace(bin_dir=str(BUILD / "bin"), rounds=1, peer=False), processes.Progress(), time.monotonic())
    part.measure()
    assert part.report() == {"left_out": "namespaces could not be made: Operation not permitted"}
    assert "left out" in capsys.readouterr().out
