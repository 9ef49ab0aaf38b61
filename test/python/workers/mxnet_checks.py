"""Checks of horovod.mxnet on two ranks, one after the other in one job: each says `pass NAME`, and a failure ends the job."""

import os
import traceback

import horovod.mxnet as hvd
import horovod.numpy as hvd_numpy
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from horovod.common.exceptions import HorovodInternalError

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def same(actual, expected):
    np.testing.assert_allclose(actual.asnumpy() if isinstance(actual, mx.nd.NDArray) else actual, expected, rtol=1e-6)


def fails(kind, text, function, *arguments, **more):
    try:
        function(*arguments, **more)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError('no error')


def mine(dtype='float32', rows=3):
    return mx.nd.array(np.arange(rows * 2).reshape(rows, 2) + 10 * hvd.rank(), dtype=dtype)


def of(rank, rows=3):
    return np.arange(rows * 2).reshape(rows, 2) + 10.0 * rank


@check
def reductions():
    for dtype in ('uint8', 'int8', 'int32', 'int64', 'float16', 'float32', 'float64'):
        result = hvd.allreduce(mine(dtype), op=hvd.Sum, name='of.' + dtype)
        assert result.dtype == np.dtype(dtype).type
        same(result, of(0) + of(1))
    same(hvd.allreduce(mine()), of(0.5))
    same(hvd.allreduce(mine(), average=False), of(0) + of(1))
    same(hvd.allreduce(mine(), op=hvd.Max), of(1))
    same(hvd.allreduce(mine(), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.), 2 * (of(0) + of(1)))
    x = mine()
    y = x * 1  # still being computed
    assert hvd.allreduce_(y, name='in.place') is y
    same(y, of(0.5))
    same(y + 1, of(0.5) + 1)
    a, b = hvd.grouped_allreduce([mine(), mine('float64')])
    same(a, of(0.5)), same(b, of(0.5))
    c, d = mine(), mine()
    hvd.grouped_allreduce_([c, d], op=hvd.Sum)
    same(c, of(0) + of(1)), same(d, of(0) + of(1))
    fails(AssertionError, 'Adasum', hvd.allreduce, x, op=hvd.Adasum)


@check
def the_others():
    same(hvd.allgather(mine(rows=1 + hvd.rank())), np.concatenate([of(0, 1), of(1, 2)]))
    a, b = hvd.grouped_allgather([mine(), mine('int32')])
    same(a, np.concatenate([of(0), of(1)])), same(b, np.concatenate([of(0), of(1)]))
    same(hvd.broadcast(mine(), 1), of(1))
    x = mine()
    assert hvd.broadcast_(x, root_rank=0) is x
    same(x, of(0))
    same(hvd.reducescatter(mine(), op=hvd.Sum), (of(0) + of(1))[[slice(0, 2), slice(2, 3)][hvd.rank()]])
    same(hvd.grouped_reducescatter([mine()])[0], of(0.5)[[slice(0, 2), slice(2, 3)][hvd.rank()]])
    same(hvd.alltoall(mine(rows=2)), np.stack([of(0, 2)[hvd.rank()], of(1, 2)[hvd.rank()]]))
    received, splits = hvd.alltoall(mine(), splits=mx.nd.array([1, 2], dtype='int32'))
    same(received, np.concatenate([of(0)[:1], of(1)[:1]] if hvd.rank() == 0 else [of(0)[1:], of(1)[1:]]))
    same(splits, [1 + hvd.rank()] * 2)
    assert hvd.broadcast_object({'rank': hvd.rank()}, root_rank=1) == {'rank': 1}
    assert hvd.allgather_object('x' * hvd.rank()) == ['', 'x']
    numbers = mx.np.array([1., 2.]) * (hvd.rank() + 1)
    result = hvd.allreduce(numbers, op=hvd.Sum)
    assert isinstance(result, mx.np.ndarray)
    same(result.asnumpy(), [3, 6])


@check
def errors():
    x = mx.nd.ones((3 + hvd.rank(), 2))
    fails(HorovodInternalError, 'ranks disagree about its shape', hvd.allreduce, x)
    fails(ValueError, 'NDArray', hvd.allreduce, np.ones(3))
    fails(ValueError, 'row_sparse', hvd.allreduce, mx.nd.ones((2, 2)).tostype('row_sparse'))
    fails(ValueError, 'invalid params', hvd.broadcast_parameters, [x])
    same(hvd.allreduce(mine()), of(0.5))


@check
def one_world_with_numpy():
    same(hvd_numpy.allreduce(mine().asnumpy()), of(0.5))
    assert hvd_numpy.size() == hvd.size() == 2


@check
def optimizer():
    for groups in (0, 1, 3):
        wrapped = hvd.DistributedOptimizer(mx.optimizer.create('sgd', learning_rate=1., wd=0.), gradient_predivide_factor=2.,
                                           num_groups=groups)
        wrapped.rescale_grad = 0.5
        weight = mx.nd.zeros((3, 2))
        wrapped.update_multi_precision(0, weight, mine(), wrapped.create_state_multi_precision(0, weight))
        same(weight, -0.5 * of(0.5))
        weights = [mx.nd.zeros((3, 2)), mx.nd.zeros((3, 2))]
        for index in range(2):
            wrapped.update(index + 1, weights[index], mine(), wrapped.create_state(index + 1, weights[index]))
        same(weights[1], -0.5 * of(0.5))
        several = [mine(), mine(), mine(), mine()]
        wrapped._average([5, 6, 7, 8], several)
        for gradient in several:
            same(gradient, of(0.5))
        assert isinstance(wrapped, mx.optimizer.Optimizer) and wrapped.learning_rate == 1.


@check
def trainer():
    for compression, groups in ((hvd.Compression.none, 0), (hvd.Compression.fp16, 2)):
        mx.random.seed(hvd.rank())
        net = gluon.nn.Dense(2, in_units=2)
        net.initialize(mx.init.Normal())
        hvd.broadcast_parameters(net.collect_params(), root_rank=1, prefix='net{}.'.format(groups))
        begin = net.weight.data().asnumpy()
        assert len({w.tobytes() for w in hvd.allgather_object(begin)}) == 1
        trainer = hvd.DistributedTrainer(net.collect_params(), 'sgd', {'learning_rate': 1.}, compression=compression,
                                         num_groups=groups, gradient_predivide_factor=2., prefix='t{}.'.format(groups))
        x = mine(rows=1)
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)
        same(net.weight.data(), begin - np.tile(of(0.5, 1), (2, 1)))
    fails(ValueError, 'inside of the', hvd.DistributedTrainer, net.collect_params(),
          hvd.DistributedOptimizer(mx.optimizer.create('sgd')))


@check
def parameters_of_unknown_shape():
    mx.random.seed(10 + hvd.rank())
    net = gluon.nn.Dense(3)
    net.initialize(mx.init.Normal())
    hvd.broadcast_parameters(net.collect_params(), root_rank=0, prefix='deferred.')
    net(mine(rows=1))
    assert len({w.tobytes() for w in hvd.allgather_object(net.weight.data().asnumpy())}) == 1
    arrays = {'a': mine(), 'b': mine()}
    hvd.broadcast_parameters(arrays, root_rank=1)
    same(arrays['b'], of(1))


def main():
    hvd.init()
    for function in CHECKS:
        try:
            function()
        except BaseException:
            print('fail {}\n{}'.format(function.__name__, traceback.format_exc()), flush=True)
            os._exit(1)
        print('pass', function.__name__, flush=True)


main()
