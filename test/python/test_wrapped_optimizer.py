"""DistributedOptimizer() and TorchState with the objects that a script holds: one object, whatever else holds it."""

import pytest

import jobs


@pytest.mark.deadline(180)
def test_an_optimizer_stays_the_object_that_the_script_holds(hvdrun, torch):
    done = jobs.run_job(2, jobs.worker('wrapped_optimizer.py'), timeout_s=150)
    assert done.output.count('ok ') == 2
