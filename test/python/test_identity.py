"""Gradients and optimizer state belong to parameters by name, in whatever order a rank has them."""

import pytest


@pytest.mark.deadline(150)
@pytest.mark.parametrize('ranks, hosts', [(2, 1), (3, 1), (2, 2)])
def test_parameters_in_another_order_on_one_rank_or_host(in_world, ranks, hosts):
    in_world('identity.py', timeout_s=120)


def test_names_are_sorted_as_people_count(torch):
    from horovod.torch.parameters import in_name_order
    names = ['b', 'layers.10.a', 'layers.2.b', 'layers.2.a', '10', '9', 'layers', 'a1b', 'a1']
    assert in_name_order(names, {name: name for name in names}) == [
        '9', '10', 'a1', 'a1b', 'b', 'layers', 'layers.2.a', 'layers.2.b', 'layers.10.a']
