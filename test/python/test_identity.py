"""Gradients and optimizer state belong to parameters by name, in whatever order a rank has them."""

import pytest

import jobs


@pytest.mark.deadline(150)
@pytest.mark.parametrize('processes', [2, 3])
def test_parameters_in_another_order_on_one_rank(hvdrun, torch, processes):
    done = jobs.run_job(processes, jobs.worker('identity.py'), timeout_s=120)
    assert done.output.count('ok') == processes


@pytest.mark.deadline(150)
def test_parameters_in_another_order_on_one_host(hvdrun, torch):
    jobs.run_job(2, jobs.worker('identity.py'), timeout_s=120, hosts=2)


def test_names_are_sorted_as_people_count(torch):
    from horovod.torch.parameters import in_name_order
    names = ['b', 'layers.10.a', 'layers.2.b', 'layers.2.a', '10', '9', 'layers', 'a1b', 'a1']
    assert in_name_order(names, {name: name for name in names}) == [
        '9', '10', 'a1', 'a1b', 'b', 'layers', 'layers.2.a', 'layers.2.b', 'layers.10.a']
