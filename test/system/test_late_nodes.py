"""Nodes that dial (test_node_groups.py), as pods come: each at its own time, in any order, and one of them perhaps never. HVD_SOAK=1: up to half
a minute apart, in five orders."""

import os
import random
import sys
import time

import pytest
from conftest import wait_until
from elastic_job import SCRIPT
from host_rig import WHY_NOT, rig_of
from test_node_groups import WORLD, group, lines_of  # noqa: F401

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
rig = rig_of(3)
SOAK = os.environ.get("HVD_SOAK") == "1"
LATEST_S = 30 if SOAK else 1.5
FOUR = {"HVD_NODES": "4", "HVD_LEADER": "head:29777", "HVD_NODE_SLOTS": "1"}


@pytest.mark.parametrize("seed", range(5 if SOAK else 1))
def test_nodes_that_come_at_any_time_and_in_any_order_are_one_job(group, seed):  # noqa: F811
    late = random.Random(seed)
    delays = sorted((late.uniform(0, LATEST_S), node) for node in range(4))
    print("seed", seed, "delays", delays)
    job = group("--prefix", "", sys.executable, "-c", WORLD, **FOUR)
    begin = time.monotonic()
    for delay, node in delays:
        time.sleep(max(0, begin + delay - time.monotonic()))
        job.start(node)
    ends = job.finish()
    assert all(code == 0 for code, _, _ in ends.values()), ends
    assert lines_of(ends[0][1]) == sorted(f"rank {rank} of 4 on {host}" for rank, host in enumerate(("head", "hvd1", "hvd2", "hvd3"))), ends
    assert all(ends[node][1] == "" for node in (1, 2, 3)), ends


def test_an_elastic_job_starts_without_a_node_that_has_not_come_and_takes_it_when_it_does(group, tmp_path):  # noqa: F811
    job = group("--min-np", 3, sys.executable, SCRIPT, tmp_path, **FOUR)
    output = tmp_path / "output"
    with output.open("w") as file:
        for node in (3, 0, 1):
            job.start(node, stdout=file)

        def worlds(size):
            return output.read_text().count(f" of {size} from step ")

        wait_until("a world of three", lambda: worlds(3) >= 3, told=output.read_text)
        assert worlds(4) == 0
        job.start(2, stdout=file)
        wait_until("a world of four", lambda: worlds(4) >= 4, told=output.read_text)
        (tmp_path / "finish").write_text("")
        ends = job.finish()
    assert {end[0] for end in ends.values()} == {0} and "AssertionError" not in output.read_text(), output.read_text()
