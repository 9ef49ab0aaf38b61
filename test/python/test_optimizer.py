"""DistributedOptimizer and broadcast_optimizer_state in a world of one.

HOROVOD_ELASTIC=1 makes the optimizer exchange gradients also in a world of one, which is how its bookkeeping is
tested here without a job.
"""

import copy
import inspect
import platform
import sys
import threading
import time
import types
import warnings

import pytest

import jobs


@pytest.fixture
def at_home(monkeypatch):
    """Gradients of any size have registered memory."""
    from horovod.torch import gradient_memory
    monkeypatch.setenv('HOROVOD_ELASTIC', '1')
    monkeypatch.setattr(gradient_memory, 'HOME_ABOVE', 0)


@pytest.fixture
def one_by_one(monkeypatch):
    """No gradient is so small that it travels with its neighbours."""
    from horovod.torch import parameters
    monkeypatch.setenv('HOROVOD_ELASTIC', '1')
    monkeypatch.setattr(parameters, 'SMALL_BYTES', -1)


@pytest.fixture(params=['at home', 'where they are', 'one by one'])
def private(request, monkeypatch):
    """Gradients with memory of their own."""
    monkeypatch.setenv('HOROVOD_ELASTIC', '1')
    if request.param != 'where they are':
        request.getfixturevalue(request.param.replace(' ', '_'))


in_buckets = False


@pytest.fixture
def buckets(monkeypatch):
    """The optimizers of wrap() have gradients that are views of buckets."""
    monkeypatch.setenv('HOROVOD_ELASTIC', '1')
    monkeypatch.setattr(sys.modules[__name__], 'in_buckets', True)


@pytest.fixture(params=['at home', 'where they are', 'one by one', 'in buckets'])
def active(request, monkeypatch):
    monkeypatch.setenv('HOROVOD_ELASTIC', '1')
    if request.param == 'in buckets':
        request.getfixturevalue('buckets')
    elif request.param != 'where they are':
        request.getfixturevalue(request.param.replace(' ', '_'))


@pytest.fixture(params=['exchanging', 'alone'])
def either(request, monkeypatch):
    monkeypatch.setenv('HOROVOD_ELASTIC', '1' if request.param == 'exchanging' else '0')
    return request.param


def make_model(torch, seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3))


def batch(torch, seed=2):
    torch.manual_seed(seed)
    return torch.randn(6, 5)


def loss_of(model, x):
    return model(x).pow(2).mean()


def wrap(hvd, torch, model, **kwargs):
    kwargs.setdefault('gradient_as_bucket_view', in_buckets)
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                                    named_parameters=model.named_parameters(), **kwargs)


def values(model):
    return [p.detach().clone() for p in model.parameters()]


def plain_training(torch, steps, **kwargs):
    model = make_model(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = batch(torch)
    for _ in range(steps):
        optimizer.zero_grad(**kwargs)
        loss_of(model, x).backward()
        optimizer.step()
    return values(model)


def equal(torch, these, those):
    return all(torch.equal(a, b) for a, b in zip(these, those))


def test_class_of_the_wrapper(hvd, torch, either):
    model = make_model(torch)
    inner = torch.optim.SGD(model.parameters(), lr=0.25, momentum=0.5, nesterov=True, weight_decay=0.125)
    optimizer = hvd.DistributedOptimizer(inner, named_parameters=model.named_parameters())
    assert type(optimizer).__name__ == 'SGD' and type(optimizer) is not torch.optim.SGD
    assert isinstance(optimizer, torch.optim.SGD)
    group = optimizer.param_groups[0]
    assert (group['lr'], group['momentum'], group['nesterov'], group['weight_decay']) == (0.25, 0.5, True, 0.125)
    assert hvd.DistributedOptimizer(inner) is optimizer is inner
    other = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.25))
    assert type(other) is not type(optimizer)


def test_optimizer_whose_class_insists_on_arguments(hvd, torch, active):
    class Needy(torch.optim.SGD):
        def __init__(self, params, lr):
            super(Needy, self).__init__(params, lr=lr)

    optimizer = hvd.DistributedOptimizer(Needy(make_model(torch).parameters(), lr=0.5))
    assert type(optimizer).__name__ == 'Needy' and optimizer.param_groups[0]['lr'] == 0.5


@pytest.mark.parametrize('set_to_none', [True, False])
def test_same_steps_as_plain(hvd, torch, either, set_to_none):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    x = batch(torch)
    for _ in range(5):
        assert optimizer.zero_grad(set_to_none=set_to_none) is None
        if set_to_none:
            assert all(p.grad is None for p in model.parameters())
        else:
            assert all(p.grad is None or not p.grad.any() for p in model.parameters())
        loss_of(model, x).backward()
        optimizer.step()
    assert equal(torch, values(model), plain_training(torch, 5, set_to_none=set_to_none))


def registered(p):
    from horovod.common import _library
    return _library.lib().hvd_is_registered(p.grad.data_ptr(), p.numel() * 4) == 1


def test_gradients_live_in_registered_memory(hvd, torch, at_home):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    addresses = []
    for _ in range(4):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, batch(torch)).backward()
        assert all(registered(p) for p in model.parameters())
        addresses.append([p.grad.data_ptr() for p in model.parameters()])
        optimizer.step()
    assert all(a == addresses[0] for a in addresses)


def test_gradients_that_meet_the_end_of_the_world_are_computed_anew(hvd, torch, active, monkeypatch):
    """By an optimizer that is no part of the state, whose load_state_dict() nobody calls."""
    from horovod.common import _library
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    with monkeypatch.context() as ended:
        def submit(*unused):
            raise _library.error(_library.ABORTED)

        ended.setattr(_library.Request, 'submit', submit)
        with pytest.raises(hvd.mpi_ops.HorovodInternalError):
            loss_of(model, batch(torch)).backward()
    optimizer.zero_grad()
    loss_of(model, batch(torch)).backward()
    optimizer.step()


def test_names_depend_on_the_order_of_use_in_an_elastic_job(hvd, torch, one_by_one):
    """Ranks that were in the world before have wrapped their models in that one."""
    models = [make_model(torch), make_model(torch)]
    optimizers = [wrap(hvd, torch, model) for model in models]
    names = []
    for k in (1, 0):
        loss_of(models[k], batch(torch)).backward()
        names.append([optimizers[k]._travel_name(gradient) for gradient in optimizers[k]._gradients.values()])
        optimizers[k].step()
    counts = [[int(name.partition('#')[2] or 1) for name in each] for each in names]
    assert [second - first for first, second in zip(*counts)] == [1] * len(counts[0])


def test_only_large_gradients_get_registered_memory(hvd, torch, private, monkeypatch):
    from horovod.torch import gradient_memory
    monkeypatch.setattr(gradient_memory, 'HOME_ABOVE', 60)
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    loss_of(model, batch(torch)).backward()
    for p in model.parameters():
        assert registered(p) == (p.numel() * 4 > 60)
    optimizer.step()


def test_a_gradient_whose_form_changes_travels_in_its_new_one(hvd, torch):
    from horovod.torch import gradient_memory
    gradient = torch.ones(2, 3)
    form = gradient_memory.GradientForm(gradient, 'described')
    assert form.fits(torch.zeros(2, 3)) and form.description == 'described'
    for other in (torch.ones(3, 2), torch.ones(3, 2).t(), torch.ones(2, 3).double(), torch.empty(2, 3, device='meta'),
                  torch.ones(2, 3).to_sparse(), torch.ones(2, 3, requires_grad=True)):
        assert not form.fits(other)


def test_old_gradients_keep_their_values(hvd, torch, private):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    kept = []
    for step in range(5):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, batch(torch, seed=step)).backward()
        optimizer.step()
        grad = model[0].weight.grad
        kept.append((grad, grad.clone()))
    for grad, value in kept:
        assert torch.equal(grad, value)
    assert len({grad.data_ptr() for grad, _ in kept}) == 5


def test_autograd_grad_is_left_alone(hvd, torch, active):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    x = batch(torch)
    grads = torch.autograd.grad(loss_of(model, x), list(model.parameters()))
    saved = [g.clone() for g in grads]
    loss_of(model, 2 * x).backward()
    optimizer.step()
    assert equal(torch, grads, saved)
    assert not equal(torch, grads, [p.grad for p in model.parameters()])


def test_double_backward(hvd, torch, either):
    def penalised(model, x):
        loss = loss_of(model, x)
        loss.backward(create_graph=True)
        grads = [p.grad for p in model.parameters()]
        return sum((g * g).sum() for g in grads)

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # torch warns of the cycle that create_graph makes
        reference = make_model(torch)
        penalised(reference, batch(torch)).backward()
        model = make_model(torch)
        optimizer = wrap(hvd, torch, model, backward_passes_per_step=2)
        penalised(model, batch(torch)).backward()
        optimizer.synchronize()
    for p, q in zip(model.parameters(), reference.parameters()):
        assert torch.allclose(p.grad, q.grad)


def test_gradient_penalty_with_autograd_grad(hvd, torch, either):
    def penalised(model, x):
        loss = loss_of(model, x)
        grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        return loss + sum((g * g).sum() for g in grads)

    reference, model = make_model(torch), make_model(torch)
    penalised(reference, batch(torch)).backward()
    optimizer = wrap(hvd, torch, model)
    penalised(model, batch(torch)).backward()
    optimizer.synchronize()
    for p, q in zip(model.parameters(), reference.parameters()):
        assert torch.allclose(p.grad, q.grad)


def test_retain_graph(hvd, torch, active):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, backward_passes_per_step=2)
    loss = loss_of(model, batch(torch))
    loss.backward(retain_graph=True)
    once = model[0].weight.grad.clone()
    loss.backward()
    optimizer.synchronize()
    assert torch.allclose(model[0].weight.grad, 2 * once)


def test_hooks_of_the_script(hvd, torch, active):
    """Hooks registered before and after ours both see and change gradients."""
    model = make_model(torch)
    plain = make_model(torch)
    loss_of(plain, batch(torch)).backward()
    model[0].weight.register_hook(lambda g: g * 2)
    optimizer = wrap(hvd, torch, model)
    model[0].weight.register_hook(lambda g: g + 1)
    loss_of(model, batch(torch)).backward()
    optimizer.synchronize()
    assert torch.allclose(model[0].weight.grad, plain[0].weight.grad * 2 + 1)
    assert torch.allclose(model[2].weight.grad, plain[2].weight.grad)


def test_channels_last(hvd, torch, active):
    torch.manual_seed(0)
    reference = torch.nn.Conv2d(3, 4, 3)
    model = copy.deepcopy(reference).to(memory_format=torch.channels_last)
    optimizer = wrap(hvd, torch, model)
    x = torch.randn(2, 3, 8, 8)
    reference(x).pow(2).sum().backward()
    model(x.to(memory_format=torch.channels_last)).pow(2).sum().backward()
    optimizer.step()
    assert torch.allclose(model.weight.grad, reference.weight.grad, rtol=1e-4, atol=1e-5)


def test_dropped_optimizer_leaves_the_model_alone(hvd, torch, active):
    model = make_model(torch)
    wrap(hvd, torch, model)
    second = wrap(hvd, torch, model)
    x = batch(torch)
    for _ in range(5):
        second.zero_grad(set_to_none=True)
        loss_of(model, x).backward()
        second.step()
    assert equal(torch, values(model), plain_training(torch, 5, set_to_none=True))


def test_named_parameters_errors(hvd, torch, either):
    model = make_model(torch)

    def make(named_parameters):
        return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                        named_parameters=named_parameters)

    with pytest.raises(ValueError, match='tuples'):
        make(list(model.parameters()))
    with pytest.raises(ValueError, match='once'):
        make([('same', p) for p in model.parameters()])
    with pytest.raises(ValueError, match='every parameter'):
        make(list(model.named_parameters())[:-1])
    make(list(model.named_parameters()) + [('other', torch.nn.Parameter(torch.zeros(1)))])
    optimizer = make(None)
    assert sorted(optimizer._parameter_names.values()) == ['allreduce.noname.0.{}'.format(i) for i in range(4)]


def test_argument_errors(hvd, torch, either):
    model = make_model(torch)
    for kwargs in (dict(backward_passes_per_step=0), dict(gradient_predivide_factor=2.0, op=hvd.Sum),
                   dict(groups='all'), dict(groups=0), dict(groups=[['a']]),
                   dict(groups=[[model[0].weight], [model[0].weight]]), dict(op=99)):
        with pytest.raises(ValueError):
            wrap(hvd, torch, model, **kwargs)
    with pytest.raises((NotImplementedError, ValueError)):
        wrap(hvd, torch, model, op=hvd.Adasum, process_set=hvd.ProcessSet([0]))
    wrap(hvd, torch, model, op=hvd.Adasum)  # in a world of one there is nothing to combine
    with pytest.warns(DeprecationWarning):
        wrap(hvd, torch, model, num_groups=2)
    wrap(hvd, torch, model, groups=[[model[0].weight, model[0].bias]])
    wrap(hvd, torch, model, groups=2)


def test_a_sum_is_not_added_to(hvd, torch, active):
    """A second backward() before step(): the sum over the ranks would be counted once for each of them."""
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, op=hvd.Sum)
    loss_of(model, batch(torch)).backward()
    with pytest.raises(AssertionError, match='backward_passes_per_step.*(weight|bias)'):
        loss_of(model, batch(torch)).backward()
    optimizer.zero_grad()
    loss_of(model, batch(torch)).backward()
    optimizer.step()


def test_names_of_horovod_can_be_read(hvd, torch, active):
    """Scripts look at these attributes of Horovod's optimizer."""
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, backward_passes_per_step=2)
    parameters = set(model.parameters())
    assert optimizer._requires_update == parameters
    loss_of(model, batch(torch)).backward()
    assert optimizer._allreduce_delay == {p: 1 for p in parameters} and optimizer._handles == {}
    loss_of(model, batch(torch)).backward()
    assert optimizer._handles == {} and all(p.grad is not None for p in parameters)  # combined
    assert not optimizer._synchronized
    optimizer.step()
    assert optimizer._handles == {} and optimizer._allreduce_delay == {p: 2 for p in parameters}


def test_a_parameter_that_left_the_groups_is_exchanged_no_more(hvd, torch, active):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    removed = optimizer.param_groups[0]['params'].pop()
    for p in optimizer.param_groups[0]['params']:
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert removed.grad is None
    assert all((p.grad == 1).all() for p in optimizer.param_groups[0]['params'])


def test_registered_memory_is_for_tensors_of_the_processor(hvd, torch):
    from horovod.torch.gradient_memory import GradientHome
    home = GradientHome(torch.nn.Parameter(torch.ones(3)))
    assert home.fits(torch.ones(3)) and not home.fits(torch.empty(3, device='meta'))


def test_zero_grad_after_backward_drops_gradients(hvd, torch, active):
    """As in plain PyTorch: nothing is under way any more. Also an accumulation that has not come to its end."""
    for passes in (1, 2):
        model = make_model(torch)
        optimizer = wrap(hvd, torch, model, backward_passes_per_step=passes)
        loss_of(model, 5 * batch(torch)).backward()
        optimizer.zero_grad()
        for _ in range(passes):
            (loss_of(model, batch(torch)) / passes).backward()
        optimizer.step()
        assert all(torch.allclose(a, b) for a, b in zip(values(model), plain_training(torch, 1)))


def test_step_after_synchronize_warns(hvd, torch, either):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    loss_of(model, batch(torch)).backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        optimizer.step()
    ours = [w for w in caught if str(w.message).startswith(
        'optimizer.step() called without optimizer.skip_synchronize() context')]
    assert len(ours) == 1 and issubclass(ours[0].category, UserWarning)


def test_clipping(hvd, torch, either):
    reference = make_model(torch)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    x = batch(torch)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for _ in range(3):
            plain.zero_grad()
            loss_of(reference, x).backward()
            torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
            plain.step()
            optimizer.zero_grad()
            loss_of(model, x).backward()
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            with optimizer.skip_synchronize():
                optimizer.step()
    assert equal(torch, values(model), values(reference))


@pytest.mark.parametrize('set_to_none', [True, False])
def test_accumulation(hvd, torch, either, set_to_none):
    reference = make_model(torch)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, backward_passes_per_step=3)
    for _ in range(3):
        plain.zero_grad(set_to_none=set_to_none)
        optimizer.zero_grad(set_to_none=set_to_none)
        for i in range(3):
            loss_of(reference, batch(torch, seed=i)).backward()
            loss_of(model, batch(torch, seed=i)).backward()
        plain.step()
        optimizer.step()
    assert equal(torch, values(model), values(reference))
    optimizer.set_backward_passes_per_step(1)
    assert optimizer.backward_passes_per_step == 1
    optimizer.zero_grad()
    loss_of(model, batch(torch)).backward()
    optimizer.step()
    with pytest.raises(ValueError):
        optimizer.set_backward_passes_per_step(0)


def test_step_before_all_passes(hvd, torch, active):
    """The last batches of an epoch may be fewer: those that are there are exchanged."""
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, backward_passes_per_step=3)
    loss_of(model, batch(torch)).backward()
    assert not optimizer._handles
    optimizer.step()
    assert not equal(torch, values(model), values(make_model(torch)))
    for _ in range(3):
        loss_of(model, batch(torch)).backward()
    optimizer.step()


def test_a_gradient_that_another_rank_has_not_computed_yet_is_not_added_to(hvd, torch, active):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    for gradient in optimizer._by_name:
        gradient.delay = 0  # as after the backward() before, where an exchange waits for another rank
    with pytest.raises(AssertionError, match='not all ranks have computed it'):
        loss_of(model, batch(torch)).backward()


def test_predivide(hvd, torch, active):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, gradient_predivide_factor=4.0)
    loss_of(model, batch(torch)).backward()
    optimizer.step()
    assert all(torch.allclose(a, b) for a, b in zip(values(model), plain_training(torch, 1)))


@pytest.mark.parametrize('dtype', ['float16', 'bfloat16'])
def test_compression(hvd, torch, private, dtype):
    model = make_model(torch)
    compression = {'float16': hvd.Compression.fp16, 'bfloat16': hvd.Compression.bf16}[dtype]
    optimizer = wrap(hvd, torch, model, compression=compression)
    loss_of(model, batch(torch)).backward()
    exact = [p.grad.clone() for p in model.parameters()]
    optimizer.synchronize()
    for p, grad in zip(model.parameters(), exact):
        assert p.grad.dtype == torch.float32 and torch.equal(p.grad, grad.to(getattr(torch, dtype)).float())


def test_a_gradient_that_no_rank_has_stays_none(hvd, torch, active):
    """So that weight decay leaves the parameter alone, as in plain PyTorch."""
    model = make_model(torch)
    before = values(model[2])
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.5),
                                         gradient_as_bucket_view=in_buckets)
    for _ in range(2):
        optimizer.zero_grad(set_to_none=True)
        model[0](batch(torch)).sum().backward()
        optimizer.step()
        assert model[2].weight.grad is None and model[0].weight.grad.any()
    assert equal(torch, before, values(model[2]))


def test_dynamic_requires_grad(hvd, torch, active):
    model = make_model(torch)
    model[2].bias.requires_grad = False
    optimizer = wrap(hvd, torch, model)
    for frozen in (False, True, False):
        for p in model[0].parameters():
            p.requires_grad = not frozen
        optimizer.zero_grad()
        loss_of(model, batch(torch)).backward()
        optimizer.step()
    model[2].bias.requires_grad = True  # unfrozen after the wrapping: exchanged all the same
    optimizer.zero_grad(set_to_none=True)
    loss_of(model, batch(torch)).backward()
    optimizer.step()
    assert model[2].bias in optimizer._requires_update


def test_add_param_group(hvd, torch, active):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    extra = torch.nn.Parameter(torch.ones(2))
    optimizer.add_param_group({'params': [extra]})
    for _ in range(2):
        optimizer.zero_grad()
        (loss_of(model, batch(torch)) + extra.sum()).backward()
        optimizer.step()
    assert optimizer._parameter_names[extra] == 'allreduce.noname.1.0'


def test_closure(hvd, torch, either):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    x = batch(torch)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 5
    assert equal(torch, values(model), plain_training(torch, 5))
    assert not optimizer._handles


def test_lr_scheduler(hvd, torch, either):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model, batch(torch)).backward()
            optimizer.step()
            scheduler.step()
    assert optimizer.param_groups[0]['lr'] == 0.0125


def test_step_hooks_run_once(hvd, torch, either):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    if not hasattr(optimizer, 'register_step_post_hook'):
        pytest.skip('this torch has no step hooks')
    calls = []
    optimizer.register_step_pre_hook(lambda *a: calls.append('pre'))
    optimizer.register_step_post_hook(lambda *a: calls.append('post'))
    loss_of(model, batch(torch)).backward()
    optimizer.step()
    assert calls == ['pre', 'post']


def test_load_state_dict(hvd, torch, either):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    loss_of(model, batch(torch)).backward()
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.zero_grad()
    loss_of(model, batch(torch)).backward()  # in flight when the state is loaded
    optimizer.load_state_dict(saved)
    assert not optimizer._handles
    optimizer.zero_grad()
    loss_of(model, batch(torch)).backward()
    optimizer.step()
    fresh = torch.optim.SGD(make_model(torch).parameters(), lr=0.1, momentum=0.9)
    fresh.load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize('as_dense', [False, True])
def test_sparse_gradients(hvd, torch, active, as_dense):
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(5, 2, sparse=True)
    reference = copy.deepcopy(embedding)
    optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(embedding.parameters())), sparse_as_dense=as_dense,
                                         gradient_as_bucket_view=in_buckets)
    plain = torch.optim.SparseAdam(list(reference.parameters()))
    for set_to_none in (True, False, True):
        for o, e in ((optimizer, embedding), (plain, reference)):
            o.zero_grad(set_to_none=set_to_none)
            e(torch.tensor([1, 1, 3])).sum().backward()
            o.step()
    assert embedding.weight.grad.is_sparse
    assert torch.allclose(embedding.weight, reference.weight)


@pytest.mark.parametrize('groups', [1, 2, 9, 'list'])
def test_groups(hvd, torch, active, groups):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model,
                     groups=[[model[0].weight, model[2].weight]] if groups == 'list' else groups)
    for _ in range(5):
        optimizer.zero_grad()
        loss_of(model, batch(torch)).backward()
        if groups == 1:
            group, = {gradient.group for gradient in optimizer._gradients.values()}
            assert len(group) == 4 and group[0].request is not None
        optimizer.step()
    assert equal(torch, values(model), plain_training(torch, 5))


def test_small_gradients_travel_with_their_neighbours(torch, monkeypatch):
    from horovod.torch import parameters
    monkeypatch.setattr(parameters, 'SMALL_BYTES', 16)
    monkeypatch.setattr(parameters, 'TOGETHER_BYTES', 32)
    counts = [4, 4, 1, 5, 4, 4, 1]  # numbers of 4 bytes: one is too large
    made = [torch.zeros(count, requires_grad=True) for count in counts]
    made.insert(1, torch.zeros(1, device='meta', requires_grad=True))  # of a device
    places = {p: place for place, p in enumerate(made)}
    together = parameters.small_together(made)
    assert [[places[p] for p in group] for group in together] == [[6, 7], [3, 5], [0, 2]]
    assert parameters.small_together([]) == parameters.small_together(made[4:5]) == []


def test_a_large_gradient_does_not_wait_for_the_small_ones(hvd, torch, monkeypatch):
    from horovod.torch import parameters
    monkeypatch.setenv('HOROVOD_ELASTIC', '1')
    monkeypatch.setattr(parameters, 'SMALL_BYTES', 28)  # the biases
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    travelling = []
    for p in model.parameters():
        p.register_hook(lambda grad, p=p: travelling.append((p, set(optimizer._handles))))
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model, batch(torch)).backward()
        begun = dict(travelling)
        assert model[2].weight in begun[model[0].weight] | begun[model[0].bias]
        assert not begun[model[0].bias] & {model[0].bias, model[2].bias}
        assert optimizer._gradients[model[0].bias].group is optimizer._gradients[model[2].bias].group
        optimizer.step()
    assert equal(torch, values(model), plain_training(torch, 3))


@pytest.mark.parametrize('groups', [None, 1])
def test_gradients_do_not_wait_for_the_rest_of_their_group_that_no_rank_has(hvd, torch, monkeypatch, groups):
    monkeypatch.setenv('HOROVOD_ELASTIC', '1')
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, groups=groups)
    model[0].weight.sum().backward()
    assert optimizer._gradients[model[0].weight].is_combined and not optimizer._incomplete
    optimizer.zero_grad()
    optimizer.step(lambda: loss_of(model, batch(torch)))
    optimizer.zero_grad()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


# ---- views of buckets


def bucket_of(p, optimizer):
    return optimizer._gradients[p].bucket


def is_in_its_bucket(torch, p, optimizer):
    bucket = bucket_of(p, optimizer)
    view = bucket.views[optimizer._gradients[p].place]
    begin, end = bucket._flats[0].data_ptr(), bucket._flats[-1].data_ptr() + bucket._flats[-1].numel() * 8
    return p.grad is view and begin <= p.grad.data_ptr() < end


@pytest.mark.parametrize('set_to_none', [True, False])
def test_gradients_are_views_of_their_bucket(hvd, torch, buckets, set_to_none):
    from horovod.common import _library
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    addresses = []
    for _ in range(4):
        optimizer.zero_grad(set_to_none=set_to_none)
        loss_of(model, batch(torch)).backward()
        assert all(is_in_its_bucket(torch, p, optimizer) for p in model.parameters())
        addresses.append([p.grad.data_ptr() for p in model.parameters()])
        optimizer.step()
    assert all(a == addresses[0] for a in addresses) and all(address % 64 == 0 for address in addresses[0])
    flat, = bucket_of(model[0].weight, optimizer)._flats
    assert _library.lib().hvd_is_registered(flat.data_ptr(), flat.numel() * 4) == 1
    assert equal(torch, values(model), plain_training(torch, 4, set_to_none=set_to_none))
    model[0].weight.grad.detach_()  # as old scripts do
    model[0].weight.grad.requires_grad_(False)


def test_a_bucket_travels_as_a_whole_once_all_ranks_have_its_layout(hvd, torch, buckets, monkeypatch):
    from horovod.common import _library
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    counts, submit = [], _library.Request.submit

    def counting(request, *addresses):
        counts.append(len(addresses) // 2)
        return submit(request, *addresses)

    monkeypatch.setattr(_library.Request, 'submit', counting)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model, batch(torch)).backward()
        optimizer.step()
    del counts[1::2]  # the agreements
    assert counts == [4, 1, 1]


def test_buckets_have_the_last_parameters_first_and_a_limit(hvd, torch, buckets, monkeypatch):
    from horovod.torch import gradient_buckets
    monkeypatch.setattr(gradient_buckets, 'FIRST_BYTES', 40)
    monkeypatch.setattr(gradient_buckets, 'BUCKET_BYTES', 200)
    model = make_model(torch)  # weights of 140 and 84 bytes, biases of 28 and 12
    optimizer = wrap(hvd, torch, model)
    first, second, third, fourth = model.parameters()
    assert gradient_buckets.plan([first, second, third, fourth]) == [[fourth], [third, second], [first]]
    assert gradient_buckets.plan([]) == []
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model, batch(torch)).backward()
        optimizer.step()
    assert equal(torch, values(model), plain_training(torch, 3))


def test_groups_are_buckets(hvd, torch, buckets):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, groups=[[model[0].weight, model[2].bias]])
    assert bucket_of(model[0].weight, optimizer) is bucket_of(model[2].bias, optimizer)
    assert bucket_of(model[0].bias, optimizer) is None
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        loss_of(model, batch(torch)).backward()
        optimizer.step()
    assert equal(torch, values(model), plain_training(torch, 3))


@pytest.mark.parametrize('convert', ['module', 'data'])
def test_a_bucket_is_made_anew_when_a_parameter_changes(hvd, torch, buckets, convert):
    """The type of a layer, while its gradients are there and while they are not."""
    reference, model = make_model(torch), make_model(torch)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), gradient_as_bucket_view=True)
    for step in range(5):
        for each in (reference, model):
            if step in (2, 4):  # the gradients of the last step are there in the former
                if convert == 'module':
                    each[2].to(torch.float64 if step == 2 else torch.float32)
                else:
                    for p in each[2].parameters():
                        p.grad = None
                        p.data = p.data.to(torch.float64 if step == 2 else torch.float32)
        for each, o in ((reference, plain), (model, optimizer)):
            o.zero_grad(set_to_none=step % 2 == 1)
            hidden = each[1](each[0](batch(torch, seed=step)))
            each[2](hidden.to(each[2].weight.dtype)).pow(2).mean().backward()
            o.step()
        assert equal(torch, values(model), values(reference)), step
        assert all(is_in_its_bucket(torch, p, optimizer) for p in model.parameters())
    assert len(bucket_of(model[0].weight, optimizer)._flats) == 1


def test_a_gradient_of_the_script_is_exchanged_and_kept_up_to_date(hvd, torch, buckets):
    """Set between backward() and step(), of a parameter that took part in neither."""
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    model[0](batch(torch)).sum().backward()
    model[2].weight.grad = torch.full((3, 7), 2.0)
    optimizer.synchronize()
    assert (model[2].weight.grad == 2).all() and model[2].bias.grad is None
    assert is_in_its_bucket(torch, model[2].weight, optimizer)
    with optimizer.skip_synchronize():
        optimizer.step()


def test_buckets_leave_out_what_has_no_dense_gradient(hvd, torch, buckets):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3, sparse=True), torch.nn.Linear(3, 2))
    reference = copy.deepcopy(model)
    optimizer, plain = wrap(hvd, torch, model), torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        for o, m in ((optimizer, model), (plain, reference)):
            o.zero_grad(set_to_none=step != 2)
            m(torch.tensor([1, 1, 3])).pow(2).sum().backward()
            o.step()
        assert model[0].weight.grad.is_sparse and is_in_its_bucket(torch, model[1].weight, optimizer)
    assert all(torch.allclose(p, q) for p, q in zip(values(model), values(reference)))


@pytest.fixture
def streams(torch, monkeypatch):
    """As if tensors were on GPU 0, where the caller works in stream `now`; notes who waits for which stream, with results."""
    from horovod.torch import framework
    noted = types.SimpleNamespace(now=7, followed=[])
    monkeypatch.setattr(framework, 'place_of_work', lambda tensor: (0, noted.now))
    monkeypatch.setattr(framework.Torch, 'follow', lambda self, index, stream, results=():
                        noted.followed.append((noted.now, (index, stream), len(results))))
    return noted


def test_each_stream_that_uses_a_bucket_waits_for_the_one_that_made_it(hvd, torch, buckets, streams):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    for streams.now in (7, 7, 9, 9, 7):
        optimizer.zero_grad()
        loss_of(model, batch(torch)).backward()
        optimizer.step()
    entered = [call for call in streams.followed if call[2]]
    assert entered == [(9, (0, 7), 1)], 'once, and the allocator knows of it by the memory'


@pytest.mark.parametrize('kwargs', [{'groups': 1}, {'gradient_as_bucket_view': True}], ids=str)
def test_a_group_begins_after_the_streams_of_all_its_gradients(hvd, torch, private, streams, kwargs):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model, **kwargs)
    number = iter(range(10, 20))

    def next_stream(gradient):
        streams.now = next(number)

    for p in model.parameters():
        p.register_hook(next_stream)  # before it is ready
    loss_of(model, batch(torch)).backward()
    waited = {place for now, place, results in streams.followed if now == 13 and not results}
    assert waited == {(0, 10), (0, 11), (0, 12), (0, 13)}
    optimizer.step()


def test_results_that_are_used_in_another_stream_stay_until_it_is_done(hvd, torch, monkeypatch):
    from horovod.torch import framework
    waits, recorded = [], []

    class OnGpu(torch.Tensor):
        def record_stream(self, stream):
            recorded.append(stream.cuda_stream)

    current = types.SimpleNamespace(cuda_stream=5, wait_stream=lambda stream: waits.append(stream))
    monkeypatch.setattr(framework, 'current_stream', lambda index: current)
    monkeypatch.setattr(framework, 'cuda_index', lambda tensor: 0 if isinstance(tensor, OnGpu) else None)
    monkeypatch.setattr(torch.cuda, 'ExternalStream', lambda stream, index: ('stream', stream, index), raising=False)
    tensor = torch.ones(2).as_subclass(OnGpu)
    framework.adapter.follow(0, 5, [tensor])
    assert not waits and not recorded, 'the same stream'
    framework.adapter.follow(0, 6, [tensor, torch.ones(2), 'a gradient'])
    assert waits == [('stream', 6, 0)] and recorded == [5]


def test_buckets_are_refused_where_something_else_is_sent(hvd, torch, either):
    model = make_model(torch)
    for kwargs in ({'compression': hvd.Compression.fp16}, {'op': hvd.Adasum}):
        with pytest.raises(ValueError, match='gradient_as_bucket_view'):
            wrap(hvd, torch, model, gradient_as_bucket_view=True, **kwargs)
    with pytest.raises(ValueError, match='complex'):
        p = torch.nn.Parameter(torch.ones(3, dtype=torch.complex64))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p], lr=0.1), gradient_as_bucket_view=True)
        (p * 2).abs().sum().backward()
        optimizer.step()
        assert either == 'alone'
        raise ValueError('complex, and nothing is exchanged')


def test_strides_of_gradients_are_kept(hvd, torch, at_home):
    from horovod.common import _library
    model = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    strides = model.weight.stride()
    assert not model.weight.is_contiguous()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for set_to_none in (True, False):
        optimizer.zero_grad(set_to_none=set_to_none)
        model(torch.randn(2, 3, 8, 8)).sum().backward()
        address = model.weight.grad.data_ptr()
        assert _library.lib().hvd_is_registered(address, model.weight.numel() * 4) == 1
        optimizer.step()
        assert model.weight.grad.stride() == strides and model.weight.grad.data_ptr() == address


def test_a_parameter_with_odd_strides(hvd, torch, active):
    p = torch.nn.Parameter(torch.arange(6.0).view(2, 3).t())
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p], lr=1.0))
    for set_to_none in (True, False):
        optimizer.zero_grad(set_to_none=set_to_none)
        (p * torch.arange(6.0).view(3, 2)).sum().backward()
        optimizer.step()
        assert torch.equal(p.grad, torch.arange(6.0).view(3, 2))


def test_loss_scaling(hvd, torch, active):
    """As automatic mixed precision does it: scale, exchange, unscale, skip a step that overflowed."""
    model, reference = make_model(torch), make_model(torch)
    optimizer = wrap(hvd, torch, model)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        x = batch(torch, step)
        optimizer.zero_grad()
        plain.zero_grad()
        with torch.autocast('cpu', dtype=torch.bfloat16):
            losses = [loss_of(m, x) for m in (model, reference)]
        for loss in losses:
            (loss * 1024.0).backward()
        optimizer.synchronize()
        for m in (model, reference):
            for p in m.parameters():
                p.grad.div_(1024.0)
        if step != 2:
            with optimizer.skip_synchronize():
                optimizer.step()
            plain.step()
    assert equal(torch, values(model), values(reference))


def test_compiled_model(hvd, torch, active):
    if not hasattr(torch, 'compile'):
        pytest.skip('this torch has no torch.compile')
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    compiled = torch.compile(model, backend='aot_eager')
    x = batch(torch)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(compiled, x).backward()
        optimizer.step()
    assert all(torch.allclose(a, b) for a, b in zip(values(model), plain_training(torch, 3)))


def test_model_can_be_copied_and_saved(hvd, torch, active, tmp_path):
    model = make_model(torch)
    optimizer = wrap(hvd, torch, model)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        copied = copy.deepcopy(model)
        torch.save(model.state_dict(), str(tmp_path / 'model'))
    loss_of(copied, batch(torch)).backward()
    assert not optimizer._handles


def optimizer_classes():
    try:
        import torch
    except ImportError:
        return []
    return sorted((c for c in torch.optim.Optimizer.__subclasses__() if c.__module__.startswith('torch.optim')),
                  key=lambda c: c.__name__)


def make_optimizer(torch, cls, seed):
    """A model and an optimizer of the class that has taken two steps."""
    torch.manual_seed(seed)
    if cls.__name__ == 'SparseAdam':
        model = torch.nn.Embedding(5, 3, sparse=True)
        run = lambda: model(torch.tensor([seed, 3])).pow(2).sum()
    elif cls.__name__ == 'Muon':  # takes matrices only
        model = torch.nn.Linear(5, 3, bias=False)
        run = lambda: model(batch(torch, seed)).pow(2).sum()
    else:
        model = make_model(torch, seed)
        run = lambda: loss_of(model, batch(torch, seed))
    kwargs = {'momentum': 0.9} if cls.__name__ == 'SGD' else {}
    optimizer = cls(list(model.parameters()), lr=0.01 * seed, **kwargs)
    return model, optimizer, run


def decaying(torch, cls, seed):
    """A model and a fresh optimizer of the class whose step moves parameters also where gradients are zero."""
    model, optimizer, run = make_optimizer(torch, cls, seed)
    accepted = inspect.signature(cls.__init__).parameters
    kwargs = {name: value for name, value in (('weight_decay', 0.1), ('momentum', 0.9)) if name in accepted}
    return model, cls(list(model.parameters()), lr=0.01, **kwargs), run


@pytest.mark.parametrize('cls', optimizer_classes(), ids=lambda c: c.__name__)
@pytest.mark.parametrize('wrapped', [False, True], ids=['plain', 'wrapped'])
def test_a_fresh_optimizer_gets_the_state_of_a_step_on_zero_gradients(hvd, torch, cls, wrapped, private):
    if cls is torch.optim.LBFGS:
        pytest.skip('hvd.broadcast_optimizer_state refuses LBFGS')
    model, optimizer, run = decaying(torch, cls, seed=1)
    other, reference, _ = decaying(torch, cls, seed=1)
    sparse = cls.__name__ == 'SparseAdam'
    fresh = not optimizer.state  # some make their state at once, and need no step
    for p in other.parameters():
        p.grad = torch.zeros_like(p)
        if sparse:
            p.grad = torch.sparse_coo_tensor([[0]], torch.zeros(1, p.shape[1]), p.shape)
    if fresh:
        reference.step()
    if wrapped:
        optimizer = hvd.DistributedOptimizer(optimizer, sparse_as_dense=True)
    before = values(model)
    first = next(model.parameters())
    first.grad = torch.ones_like(first).to_sparse(1) if sparse else torch.ones_like(first)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert equal(torch, values(model), before)
    assert str(optimizer.state_dict()['state']) == str(reference.state_dict()['state'])
    assert (first.grad.to_dense() if sparse else first.grad).sum() == first.numel(), 'a gradient that was there is gone'
    for p in list(model.parameters())[1:]:
        assert p.grad is None if not fresh else not p.grad.any()
    optimizer.zero_grad()
    run().backward()
    optimizer.step()
    assert not equal(torch, values(model), before)


def test_sparse_embeddings_get_sparse_gradients(hvd, torch):
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3, sparse=True), torch.nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    before = values(model)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0, model=model)
    assert equal(torch, values(model), before)
    assert model[0].weight.grad.layout == torch.sparse_coo and model[1].weight.grad.layout == torch.strided
    assert optimizer.state[model[0].weight]['momentum_buffer'].layout == torch.sparse_coo


@pytest.mark.parametrize('cls', optimizer_classes(), ids=lambda c: c.__name__)
@pytest.mark.parametrize('wrapped', [False, True], ids=['plain', 'wrapped'])
def test_broadcast_optimizer_state(hvd, torch, cls, wrapped, private):
    model, optimizer, run = make_optimizer(torch, cls, seed=1)
    if cls is torch.optim.LBFGS:
        with pytest.raises(ValueError, match='LBFGS'):
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        return
    if wrapped:
        optimizer = hvd.DistributedOptimizer(optimizer, sparse_as_dense=True)
        assert type(optimizer).__name__ == cls.__name__
    before = values(model)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)  # without state yet
    assert equal(torch, values(model), before)
    for _ in range(2):
        optimizer.zero_grad()
        run().backward()
        optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    hvd.broadcast_optimizer_state(optimizer, root_rank=0, model=model)
    assert str(optimizer.state_dict()) == str(saved)
    assert not equal(torch, values(model), before)


def faults_of_a_step(**variables):
    """Page faults per page of the gradients."""
    tuned = dict.fromkeys(('GLIBC_TUNABLES', 'MALLOC_TRIM_THRESHOLD_', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TOP_PAD_',
                           'MALLOC_MMAP_MAX_'))
    tuned.update(variables)
    done = jobs.run_alone(jobs.worker('page_faults.py'), timeout_s=180, HOROVOD_ELASTIC='1', **tuned)
    return float(done.output.split()[-1])


def test_memory_of_gradients_stays_with_the_process(hvd, torch):
    if platform.libc_ver()[0] != 'glibc':
        pytest.skip('only of glibc\'s malloc is it known how to keep memory')
    assert faults_of_a_step() < 0.1


@pytest.mark.parametrize('variable, value', [('MALLOC_MMAP_THRESHOLD_', '1048576'),
                                             ('GLIBC_TUNABLES', 'glibc.malloc.mmap_threshold=1048576')])
def test_malloc_that_the_user_tuned_is_left_alone(hvd, torch, variable, value):
    if platform.libc_ver()[0] != 'glibc':
        pytest.skip('only glibc\'s malloc reads these variables')
    assert faults_of_a_step(**{variable: value}) > 0.9
