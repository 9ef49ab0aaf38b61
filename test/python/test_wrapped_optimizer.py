"""DistributedOptimizer() and TorchState with the objects that a script holds: one object, whatever else holds it."""

import pytest


@pytest.mark.deadline(180)
@pytest.mark.world(2)
def test_an_optimizer_stays_the_object_that_the_script_holds(in_world):
    in_world('wrapped_optimizer.py', timeout_s=150)
