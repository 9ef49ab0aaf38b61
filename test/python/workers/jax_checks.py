"""Checks of horovod.jax on two ranks, one after the other in one job: each says `pass NAME`, and a failure ends the job.

    jax_checks.py            all of them
    jax_checks.py NAME       that one
"""

import os
import signal
import sys
import threading
import traceback

import horovod.jax as hvd
import horovod.numpy as hvd_numpy
import jax
import jax.numpy as jnp
import numpy as np

from horovod.common.exceptions import HorovodInternalError

CHECKS = {}
RANKS = np.arange(2)


def check(function):
    CHECKS[function.__name__] = function
    return function


def same(actual, expected, **tolerance):
    np.testing.assert_allclose(np.asarray(actual, np.float64), np.asarray(expected, np.float64), **tolerance)


def fails(kinds, text, function, *arguments):
    try:
        jax.block_until_ready(function(*arguments))
    except kinds as error:
        assert text in str(error), error
        return
    raise AssertionError('no error')


def in_both(function):
    """The function outside of jit and inside."""
    return (function, jax.jit(function))


def mine(shape=(3,), dtype=np.float32):
    return jnp.asarray(np.arange(np.prod(shape)).reshape(shape) + 10 * hvd.rank(), dtype)


def of(rank, shape=(3,)):
    return np.arange(np.prod(shape)).reshape(shape) + 10.0 * rank


@check
def operations():
    x = mine()
    for f, expected in ((lambda x: hvd.allreduce(x), of(0.5)), (lambda x: hvd.allreduce(x, op=hvd.Sum), of(0) + of(1)),
                        (lambda x: hvd.allreduce(x, op=hvd.Min), of(0)), (lambda x: hvd.allreduce(x, op=hvd.Max), of(1)),
                        (lambda x: hvd.allreduce(x, op=hvd.Product), of(0) * of(1)),
                        (lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4), 2 * (of(0) + of(1))),
                        (lambda x: hvd.allgather(x), np.concatenate([of(0), of(1)])),
                        (lambda x: hvd.broadcast(x, 1), of(1)),
                        (lambda x: hvd.reducescatter(x, op=hvd.Sum), (of(0) + of(1))[[slice(0, 2), slice(2, 3)][hvd.rank()]]),
                        (lambda x: hvd.alltoall(jnp.tile(x, 2)), np.concatenate([of(0), of(1)])),
                        (lambda x: hvd.allreduce(x, name='named'), of(0.5))):
        for each in in_both(f):
            same(each(x), expected)


@check
def scalars_and_many_dimensions():
    for each in in_both(lambda x: hvd.allreduce(x, op=hvd.Sum)):
        same(each(jnp.float32(hvd.rank() + 1)), 3)
        same(each(jnp.ones((2,) * 10)), 2 * np.ones((2,) * 10))
        same(each(jnp.ones((0, 3))), np.ones((0, 3)))


@check
def types():
    for name in ('uint8', 'int8', 'uint16', 'int16', 'int32', 'uint32', 'float16', 'bfloat16', 'float32'):
        for each in in_both(lambda x: hvd.allreduce(x, op=hvd.Sum)):
            result = each(mine(dtype=name))
            assert result.dtype == jnp.dtype(name), result.dtype
            same(result, of(0) + of(1))
    for each in in_both(lambda x: hvd.broadcast(x, 1)):
        assert each(jnp.array([hvd.rank() == 1, False])).tolist() == [True, False]
        assert each(jnp.array([2**32 - 1], jnp.uint32)).tolist() == [2**32 - 1]
    fails(ValueError, 'complex64 are not supported', hvd.allreduce, jnp.ones(2, jnp.complex64))
    fails(ValueError, 'uint32 are not supported', hvd.allreduce, jnp.ones(2, jnp.uint32))
    fails(ValueError, 'key_data', lambda x: hvd.broadcast(x, 0), jax.random.key(0))


@check
def pytrees():
    tree = {'a': mine(), 'b': [mine((2, 2)), (mine(dtype=jnp.bfloat16), None)]}
    for each in in_both(lambda t: hvd.allreduce(t)):
        result = each(tree)
        assert jax.tree_util.tree_structure(result) == jax.tree_util.tree_structure(tree)
        same(result['a'], of(0.5))
        same(result['b'][0], of(0.5, (2, 2)))
    for each in in_both(lambda t: (hvd.allgather(t), hvd.broadcast(t, 1), hvd.reducescatter(t, op=hvd.Sum))):
        gathered, sent, scattered = each(tree)
        same(gathered['b'][0], np.concatenate([of(0, (2, 2)), of(1, (2, 2))]))
        same(sent['b'][0], of(1, (2, 2)))
        same(scattered['b'][0], (of(0, (2, 2)) + of(1, (2, 2)))[hvd.rank():hvd.rank() + 1])
    assert hvd.allreduce({}) == {}


@check
def rows_that_differ_outside_of_jit():
    same(hvd.allgather(mine()[:1 + hvd.rank()]), np.concatenate([of(0)[:1], of(1)[:2]]))
    received, splits = hvd.alltoall(jnp.arange(3.) + 10 * hvd.rank(), splits=[1, 2])
    same(received, [[0, 10], [1, 2, 11, 12]][hvd.rank()])
    assert splits.tolist() == [1 + hvd.rank()] * 2


@check
def gradients():
    weights = jnp.arange(1., 7.)

    def loss(function, x):
        y = function(x)
        return (y * weights[:y.size].reshape(y.shape) * (1. + hvd.rank())).sum()

    x = mine()
    cases = ((lambda x: hvd.allreduce(x, op=hvd.Sum), 3 * np.arange(1., 4)), (lambda x: hvd.allreduce(x), 1.5 * np.arange(1., 4)),
             (hvd.allgather, 1.5 * np.arange(1., 7)[3 * hvd.rank():][:3]),
             (lambda x: hvd.broadcast(x, 1), hvd.rank() * 1.5 * np.arange(1., 4)),
             (lambda x: hvd.reducescatter(x, op=hvd.Sum), [2, 4, 4]), (lambda x: hvd.reducescatter(x), [1, 2, 2]))
    for function, expected in cases:
        for gradient in in_both(jax.grad(lambda x: loss(function, x))):
            same(gradient(x), expected)
    for gradient in in_both(jax.grad(lambda x: loss(hvd.alltoall, x))):
        same(gradient(mine((4,))), [[1, 2, 2, 4], [3, 4, 6, 8]][hvd.rank()])
    fails(NotImplementedError, 'hvd.Min', jax.grad(lambda x: hvd.allreduce(x, op=hvd.Max).sum()), x)
    if jax.__version__.startswith('0.4.'):  # its callbacks have no second derivative
        return
    second = jax.jit(jax.grad(lambda x: jax.grad(lambda x: (hvd.allreduce(x) ** 3).sum())(x).sum()))
    same(second(x), 6 * of(0.5))


@check
def transformations():
    x = mine((2, 3))
    same(jax.vmap(lambda x: hvd.allreduce(x))(x), of(0.5, (2, 3)))
    same(jax.jit(jax.vmap(lambda a, b: hvd.allreduce([a, b])[1], in_axes=(1, None)))(x, x[0]), np.tile(of(0.5), (3, 1)))
    same(jax.vmap(hvd.allgather, in_axes=1)(x), np.concatenate([of(0, (2, 3)), of(1, (2, 3))]).T)
    same(jax.jit(lambda x: jax.lax.scan(lambda c, v: (c, hvd.allreduce(v)), 0., x, unroll=2)[1])(x), of(0.5, (2, 3)))
    same(jax.jit(lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, hvd.allreduce(c[1], op=hvd.Sum)),
                                              (0, x))[1])(x), 4 * (of(0, (2, 3)) + of(1, (2, 3))))
    same(jax.jit(lambda x: jax.lax.cond(x.sum() >= 0, hvd.allreduce, lambda x: x, x))(x), of(0.5, (2, 3)))
    remat = jax.checkpoint(lambda x: jnp.sin(hvd.allreduce(jnp.sin(x), op=hvd.Sum)))
    plain = jax.jit(jax.grad(lambda x: jnp.sin(hvd.allreduce(jnp.sin(x), op=hvd.Sum)).sum()))(x)
    same(jax.jit(jax.grad(lambda x: remat(x).sum()))(x), plain, rtol=1e-5)
    scan = jax.grad(lambda w: jax.lax.scan(lambda c, v: (c * hvd.allreduce(v * w), None), 1., jnp.arange(1., 4))[0])
    same(jax.jit(scan)(2.), 72)
    same(jax.jit(hvd.allreduce, donate_argnums=0)(mine()), of(0.5))
    y = mine()
    kept = jax.jit(lambda y: (hvd.allreduce(y), y + 1))(y)  # reduced where it is, but needed afterwards
    same(kept[1], of(hvd.rank()) + 1)
    same(y, of(hvd.rank()))


@check
def equal_functions_in_one_program():
    """A function that is compiled once and called twice has two collectives of one name, which must not meet crosswise."""
    total = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum))
    step = jax.jit(lambda a, b: (total(jnp.sin(a) * 0 + a), total(b)))
    for _ in range(100):
        a, b = step(jnp.full(3, 1. + hvd.rank()), jnp.full(3, 10. + hvd.rank()))
        assert a[0] == 3 and b[0] == 21, (a, b)


@check
def many_collectives_in_one_program():
    """More than XLA has threads."""
    step = jax.jit(lambda xs: [hvd.allreduce(x, op=hvd.Sum) for x in xs])
    for _ in range(3):
        results = step([jnp.full(100 + i, float(i)) for i in range(161)])
    for i, result in enumerate(results):
        same(result, np.full(100 + i, 2. * i))


@check
def programs_run_beside_the_script():
    big = jax.jit(lambda x: hvd.allreduce(x @ x, op=hvd.Sum))
    pending = [big(jnp.eye(256) * (i + 1)) for i in range(10)]
    same(hvd.allreduce(mine()), of(0.5))
    for i, result in enumerate(pending):
        same(result, 2 * (i + 1) ** 2 * np.eye(256))


@check
def several_frameworks_share_the_world():
    same(hvd_numpy.allreduce(np.asarray(mine())), of(0.5))
    same(jax.jit(hvd.allreduce)(mine()), of(0.5))
    assert hvd_numpy.rank() == hvd.rank()
    try:
        import torch
    except ImportError:
        return
    import horovod.torch as hvd_torch
    same(hvd_torch.allreduce(torch.tensor(np.asarray(mine()))).numpy(), of(0.5))


@check
def threads_with_names():
    failures = []

    def run(number):
        try:
            step = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum, name='thread.{}'.format(number)))
            for i in range(20):
                same(step(jnp.full(10, float(number * i))), np.full(10, 2. * number * i))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@check
def threads_without_names_are_refused():
    failures = []

    def run():
        try:
            jax.jit(lambda x: hvd.allreduce(x + 1))(mine())
        except ValueError as error:
            failures.append(str(error))

    jax.jit(lambda x: hvd.allreduce(x - 1))(mine())
    thread = threading.Thread(target=run, name='other')
    thread.start()
    thread.join()
    assert len(failures) == 1 and 'give those of other names' in failures[0], failures
    gradient = jax.jit(jax.grad(lambda x: hvd.allreduce(x, name='with').sum()))
    thread = threading.Thread(target=lambda: same(gradient(mine()), np.ones(3)))
    thread.start()
    thread.join()


@check
def a_second_world():
    step = jax.jit(hvd.allgather)
    same(step(mine()), np.concatenate([of(0), of(1)]))
    hvd.shutdown()
    hvd.init()
    same(step(mine()), np.concatenate([of(0), of(1)]))


@check
def process_sets():
    own = hvd.add_process_set([0])
    for each in in_both(lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=own)):
        if hvd.rank() == 0:
            same(each(mine()), of(0))
        else:
            fails(ValueError, 'not in the process set', each, mine())
    same(hvd.allreduce(mine(), process_set=hvd.global_process_set), of(0.5))
    assert hvd.remove_process_set(own)


@check
def optimizers():
    import optax
    for compression in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.bf16):
        optimizer = hvd.DistributedOptimizer(optax.sgd(1.), compression=compression, gradient_predivide_factor=2.)
        params = {'w': jnp.zeros(2), 'b': jnp.zeros(())}
        state = optimizer.init(params)

        @jax.jit
        def step(params, state):
            updates, state = optimizer.update(jax.tree_util.tree_map(lambda p: p + 1. + hvd.rank(), params), state, params)
            return optax.apply_updates(params, updates), state

        params, state = step(params, state)
        same(params['w'], [-1.5, -1.5])
        assert params['w'].dtype == jnp.float32
    assert isinstance(optimizer, optax.GradientTransformation)
    several = optax.MultiSteps(hvd.DistributedOptimizer(optax.sgd(1.)), 2)
    state = several.init(params)
    update = jax.jit(several.update)
    for i in range(4):
        updates, state = update({'w': jnp.full(2, float(hvd.rank() + i)), 'b': jnp.zeros(())}, state, params)
        same(updates['w'], np.full(2, [0, -1, 0, -3][i]))
    fails(ValueError, 'gradient_predivide_factor', lambda: hvd.DistributedOptimizer(
        optax.sgd(1.), op=hvd.Sum, gradient_predivide_factor=2.))


@check
def objects_and_parameters():
    assert hvd.broadcast_object({'rank': hvd.rank()}, 1) == {'rank': 1}
    assert hvd.allgather_object('x' * hvd.rank()) == ['', 'x']
    sent = hvd.broadcast_parameters({'a': mine(), 'key': jax.random.key(hvd.rank()), 'text': 'x{}'.format(hvd.rank()),
                                     'wide': np.full(2, 2**40 + hvd.rank()), 'count': 7 * hvd.rank()}, root_rank=1)
    same(sent['a'], of(1))
    assert sent['text'] == 'x1' and sent['count'] == 7
    assert sent['wide'].tolist() == [2**40 + 1] * 2
    same(jax.random.uniform(sent['key']), jax.random.uniform(jax.random.key(1)))


@check
def barriers():
    hvd.barrier()
    jax.jit(lambda x: (hvd.barrier(), x)[1])(mine())


@check
def state_survives_donation():
    state = hvd.elastic.JaxState(params={'w': mine()}, key=jax.random.key(hvd.rank()), epoch=hvd.rank())
    state.sync()
    same(state.params['w'], of(0))
    assert state.epoch == 0
    state.params = jax.jit(lambda p: jax.tree_util.tree_map(lambda w: w + 1, p), donate_argnums=0)(state.params)
    state.restore()
    same(state.params['w'], of(0))
    jax.jit(lambda p: jax.tree_util.tree_map(lambda w: w + 1, p), donate_argnums=0)(state.params)
    state.restore()
    same(state.params['w'], of(0))


@check
def a_disagreement_is_an_error_with_the_sentence():
    x = jnp.ones(3 + hvd.rank())
    sentence = 'ranks disagree about its shape: rank 0 has [3], rank 1 has [4]'
    fails(HorovodInternalError, sentence, hvd.allreduce, x)
    fails(RuntimeError, sentence, jax.jit(hvd.allreduce), x)
    fails(RuntimeError, 'different sizes', jax.jit(hvd.allgather), x)
    same(jax.jit(hvd.allreduce)(mine()), of(0.5))

    @hvd.elastic.run
    def train(state):
        jax.block_until_ready(jax.jit(hvd.allreduce)(x))

    fails(HorovodInternalError, sentence, train, hvd.elastic.JaxState(epoch=0))


@check
def wrong_arguments():
    fails(ValueError, 'op must be', lambda: hvd.allreduce(mine(), op=17))
    fails(ValueError, 'without dimensions', lambda: hvd.allgather(jnp.float32(1)))
    fails(ValueError, 'known when a program is traced', jax.jit(lambda x, s: hvd.allreduce(x, prescale_factor=s)), mine(), 2.)
    fails(ValueError, 'splits outside of jit', jax.jit(lambda x: hvd.alltoall(x, splits=[1, 2])), mine())
    fails(ValueError, 'at least one array', lambda: hvd.grouped_allreduce([]))


@check
def a_forked_child_has_the_places_only():
    child = os.fork()
    if child == 0:
        try:
            assert hvd.rank() in (0, 1)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    same(jax.jit(hvd.allreduce)(mine()), of(0.5))


def peer_dies():
    """Alone, since it ends the job."""
    step = jax.jit(hvd.allreduce)
    step(mine()).block_until_ready()
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    step(mine()).block_until_ready()


def unfinished_at_the_end():
    """The script ends while its last program runs."""
    step = jax.jit(lambda x: hvd.allreduce(x @ x, op=hvd.Sum))
    for _ in range(5):
        step(jnp.ones((300, 300)))


def coordinator():
    jax.distributed.initialize()
    assert jax.process_count() == hvd.size() and jax.process_index() == hvd.rank()
    jax.distributed.shutdown()


def main():
    if sys.argv[1:] == ['coordinator']:
        coordinator()
        print('pass coordinator', flush=True)
        return
    hvd.init()
    for name in sys.argv[1:]:
        globals()[name]()
        print('pass', name, flush=True)
    for name, function in CHECKS.items() if not sys.argv[1:] else ():
        try:
            function()
        except BaseException:
            print('fail {}\n{}'.format(name, traceback.format_exc()), flush=True)
            os._exit(1)
        print('pass', name, flush=True)


main()
