"""Gradients between backward() and step(), in jobs of several processes: see workers/gradients_after_backward.py."""

import pytest


@pytest.mark.deadline(240)
@pytest.mark.parametrize('ranks, hosts', [(2, 1), (3, 1), (2, 2)])
def test_gradients_are_combined_when_backward_returns(in_world, ranks, hosts):
    """Each case against one process. Another number of ranks and hosts for some of them."""
    some = () if (ranks, hosts) == (2, 1) else (
        'clip_by_norm', 'amp', 'heads_that_depend_on_the_rank', 'no_batch', 'two_backwards', 'joined', 'a_batch_that_all_skip',
        'other_models_on_other_ranks', 'line_search', 'no_gradient_on_any_rank')
    in_world('gradients_after_backward.py', *some, timeout_s=200)
