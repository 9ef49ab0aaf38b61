"""Whose gradient is whose: optimizers that have their parameters in another order on a rank, and names or groups that differ."""

import itertools
import traceback

import torch

import horovod.torch as hvd

hvd.init(process_sets='dynamic')
torch.set_num_threads(1)
size, rank = hvd.size(), hvd.rank()
last = rank == size - 1  # which has another order than the others
NAMES = ['layer.1', 'layer.2', 'layer.10', 'head']
failed = []


def case(function):
    try:
        function()
    except BaseException:
        failed.append(function.__name__)
        print('FAILED {} on rank {}:\n{}'.format(function.__name__, rank, traceback.format_exc()), flush=True)
    hvd.barrier()


def make(shape=(60, 60)):
    return {name: torch.nn.Parameter(torch.zeros(shape)) for name in NAMES}


numbers = itertools.count()


def named(parameters):
    """Under names that no other case has, since ranks whose parameters had other names count equal ones differently."""
    number = next(numbers)
    return [('case{}.{}'.format(number, name), p) for name, p in parameters.items()]


def other_order(items):
    items = list(items)
    return [items[2], items[0], items[3], items[1]] if last else items


def backward(parameters, ranks=None):
    """The gradient of the parameter number k becomes k + 1 times the mean of 1 .. size."""
    sum((p * (k + 1) * (rank + 1)).sum() for k, p in enumerate(parameters.values())).backward()


def check(parameters, ranks=range(size)):
    mean = sum(r + 1 for r in ranks) / len(ranks)
    means = [float(p.grad.min()) for p in parameters.values()] + [float(p.grad.max()) for p in parameters.values()]
    assert means == [(k + 1) * mean for k in range(len(parameters))] * 2, means


KINDS = {
    'together': lambda p: {}, 'bucket view': lambda p: {'gradient_as_bucket_view': True}, 'two groups': lambda p: {'groups': 2},
    'three groups': lambda p: {'groups': 3}, 'one group': lambda p: {'groups': 1},
    'lists': lambda p: {'groups': [[p['layer.1'], p['head']], [p['layer.2'], p['layer.10']]]},
    'lists as buckets': lambda p: {'groups': [[p['layer.1'], p['head']], [p['layer.2']]], 'gradient_as_bucket_view': True},
    'Sum': lambda p: {'op': hvd.Sum, 'gradient_predivide_factor': 1.0}}


@case
def right_names_in_another_order():
    for kind, arguments in KINDS.items():
        for shape in ((3,), (60, 60), (100, 100)):
            for names_too in (False, True):
                parameters = make(shape)
                optimizer = torch.optim.SGD(other_order(parameters.values()), lr=1.0)
                pairs = named(parameters)
                kwargs = arguments(parameters)
                if 'groups' in kwargs and isinstance(kwargs['groups'], list) and last:
                    kwargs['groups'] = [group[::-1] for group in kwargs['groups']][::-1]
                hvd.DistributedOptimizer(optimizer, named_parameters=other_order(pairs) if names_too else pairs, **kwargs)
                for step in range(3):
                    optimizer.zero_grad(set_to_none=step != 1)
                    backward(parameters)
                    optimizer.synchronize()
                    if kind == 'Sum':
                        for p in parameters.values():
                            p.grad /= size
                    check(parameters)
                    with optimizer.skip_synchronize():
                        optimizer.step()


@case
def parameters_of_several_groups_in_another_order():
    parameters = make()
    groups = [{'params': [p], 'lr': float(k)} for k, p in enumerate(parameters.values())]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(other_order(groups)), named(parameters))
    backward(parameters)
    optimizer.synchronize()
    check(parameters)


@case
def in_a_process_set():
    if size < 3:
        return
    ranks = [0, size - 1]
    process_set = hvd.add_process_set(ranks)
    parameters = make()
    optimizer = torch.optim.SGD(other_order(parameters.values()), lr=1.0)
    hvd.DistributedOptimizer(optimizer, named(parameters), process_set=process_set, groups=2)
    backward(parameters)
    optimizer.synchronize()
    check(parameters, ranks if rank in ranks else [rank])
    hvd.remove_process_set(process_set)


@case
def without_names_by_place():
    parameters = make()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters.values(), lr=1.0), groups=2)
    backward(parameters)
    optimizer.synchronize()
    check(parameters)


def refused(parameters, pairs, *expected, **kwargs):
    """An error on all ranks, which has all of this, before any value changes."""
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters.values(), lr=1.0), named_parameters=pairs, **kwargs)
    error = None
    try:
        backward(parameters)
        optimizer.step()
    except hvd.HorovodInternalError as caught:
        error = caught
    assert error is not None, 'ranks disagree, and no error says so'
    assert error.is_disagreement, error
    for text in expected + ('rank 0 has', 'rank {} has'.format(size - 1)):
        assert text in str(error), (text, error)
    assert not any(p.detach().any() for p in parameters.values())
    assert len(str(error)) < 2000
    sentences = hvd.allgather_object(str(error))
    assert sentences == [sentences[0]] * size, sentences


@case
def other_names():
    for shape in ((3,), (60, 60), (100, 100)):
        for kwargs in ({}, {'groups': 2}, {'gradient_as_bucket_view': True}):
            parameters = make(shape)
            pairs = [(name.replace('head', 'tail') if last else name, p) for name, p in named(parameters)]
            refused(parameters, pairs, 'head', 'tail', **kwargs)


@case
def other_parameters():
    parameters = make()
    if last:
        del parameters['layer.2']
    refused(parameters, named(parameters), 'layer.2')


@case
def other_groups():
    def lists(a, b):
        return [[parameters[name] for name in group] for group in (b if last else a)]

    one, two, ten, head = NAMES
    for a, b in (([[one, two], [ten, head]], [[one, ten], [two, head]]), ([[one, two]], [[ten, head]]),
                 ([[one, two, ten, head]], []), ([[one], [two]], [[one, two]]), ([[one, two]], [[one, two], [ten, head]])):
        for kwargs in ({}, {'gradient_as_bucket_view': True}):
            for shape in ((3,), (100, 100)):
                parameters = make(shape)
                refused(parameters, named(parameters), one, groups=lists(a, b), **kwargs)
    parameters = make()
    refused(parameters, named(parameters), one, groups=3 if last else 2)
    parameters = make((100, 100))
    refused(parameters, named(parameters), one, groups=2 if last else None)
    parameters = make((100, 100))
    refused(parameters, None, 'noname', groups=2 if last else None)


@case
def many_names():
    """The sentence stays short and shows the difference."""
    parameters = {'a.long.name.of.a.parameter.{}'.format(k): torch.nn.Parameter(torch.zeros(3)) for k in range(500)}
    pairs = [(name.replace('.250', '.other') if last else name, p) for name, p in named(parameters)]
    refused(parameters, pairs, 'parameter.250', 'parameter.249')


@case
def user_groups_by_place():
    """Nothing is known about the tensors of a user but their types and shapes."""
    outputs = hvd.grouped_allreduce([torch.ones(3), torch.ones(3) * 2], name='pair')
    assert [float(o[0]) for o in outputs] == [1, 2]
    try:
        hvd.grouped_allreduce([torch.ones(3), torch.ones(4)][::-1 if last else 1], name='pair')
        raise SystemExit('shapes differ')
    except hvd.HorovodInternalError as error:
        assert 'shape' in str(error)


# ---- broadcast_optimizer_state


def trained(order, by_rank=True, groups=False):
    """An Adam whose state tells the parameters and, if so, the ranks apart."""
    parameters = make((3,))
    values = order(parameters.items())
    if groups:
        optimizer = torch.optim.Adam([{'params': [p], 'lr': 0.1 * (NAMES.index(name) + 1) + rank * by_rank} for name, p in values])
    else:
        optimizer = torch.optim.Adam([p for _, p in values])
    for k, p in enumerate(parameters.values()):
        p.grad = torch.full((3,), float(k + 1 + 10 * rank * by_rank))
    optimizer.step()
    return parameters, optimizer


class Holder(torch.nn.Module):
    def __init__(self, parameters):
        super(Holder, self).__init__()
        for name, p in parameters.items():
            self.register_parameter(name.replace('.', '_'), p)


def first_moments(parameters, optimizer):
    return [round(float(optimizer.state[p]['exp_avg'][0]), 4) for p in parameters.values()]


@case
def state_follows_the_names():
    for by in ('wrapped', 'model'):
        for groups in (False, True):
            parameters, optimizer = trained(other_order, groups=groups)
            if by == 'wrapped':
                hvd.DistributedOptimizer(optimizer, named(parameters))
            hvd.broadcast_optimizer_state(optimizer, 0, model=Holder(parameters) if by == 'model' else None)
            assert first_moments(parameters, optimizer) == [0.1, 0.2, 0.3, 0.4]
            if groups:
                rates = {id(group['params'][0]): round(group['lr'], 4) for group in optimizer.param_groups}
                assert [rates[id(p)] for p in parameters.values()] == [0.1, 0.2, 0.3, 0.4], rates
            assert [p for group in optimizer.param_groups for p in group['params']][0] is (
                parameters['layer.10'] if last else parameters['layer.1'])


@case
def state_follows_the_place_without_names():
    parameters, optimizer = trained(list)
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert first_moments(parameters, optimizer) == [0.1, 0.2, 0.3, 0.4]


@case
def state_of_other_parameters_is_refused():
    a, b = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))
    unlike = [b, a] if last else [a, b]
    one_group = torch.optim.SGD([a, b], lr=0.1, momentum=0.9)
    two_groups = [{'params': [a]}, {'params': [b]}]
    c = torch.nn.Parameter(torch.zeros(3))
    split = torch.optim.SGD([{'params': [a, b] if last else [a]}, {'params': [c] if last else [b, c]}], lr=0.1)
    renamed = {'a': a, 'other' if last else 'b': b}
    for optimizer, model in ((torch.optim.SGD(unlike, lr=0.1), None),
                             (one_group if last else torch.optim.SGD(two_groups, lr=0.1), None),
                             (split, Holder({'a': a, 'b': b, 'c': c})), (one_group, Holder(renamed))):
        try:
            hvd.broadcast_optimizer_state(optimizer, 0, model=model)
            raise SystemExit('the parameters are not the same')
        except ValueError as error:
            assert ('needs the same parameters' if last else 'other parameters') in str(error), error


if failed:
    raise SystemExit('failed: {}'.format(', '.join(failed)))
print('ok', flush=True)
