"""The collectives on arrays and pytrees of JAX, outside of jit and inside, with gradients."""

from __future__ import annotations

import functools
import threading

import jax
import numpy
from jax import numpy as jnp

from horovod.common import _library, _native, objects
from horovod.common import operations as _common_operations
from horovod.common.process_sets import global_process_set
from horovod.jax import host, primitive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence
    from horovod.common.process_sets import ProcessSet

Average = _library.AVERAGE
Sum = _library.SUM
Adasum = _library.ADASUM
Min = _library.MIN
Max = _library.MAX
Product = _library.PRODUCT

_TYPES = frozenset(('bool', 'uint8', 'int8', 'uint16', 'int16', 'int32', 'int64', 'float16', 'float32', 'float64', 'bfloat16',
                    'float8_e4m3fn', 'float8_e5m2'))
_UNSIGNED = frozenset(('uint32', 'uint64'))


# ---- leaves


def _leaf(value, operation, op, scales):
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        raise ValueError('hvd.{} does not take keys of random numbers; give it jax.random.key_data(key), and make a key of the '
                         'result by jax.random.wrap_key_data().'.format(operation))
    leaf = jnp.asarray(value)
    name = leaf.dtype.name
    if name in _UNSIGNED and (op is None or (op in (Sum, Product) and scales == (1.0, 1.0))):
        return leaf  # a signed number with the same bits has the same result
    if name not in _TYPES:
        raise ValueError('Arrays of {} are not supported by hvd.{}.'.format(leaf.dtype, operation))
    return leaf


def _scale(value, what):
    try:
        return float(value)
    except Exception:  # a tracer: its exception differs between versions
        raise ValueError('{} is a number that is known when a program is traced; multiply the array by the other kind.'
                         .format(what)) from None


class _Tree:
    """The arrays of an argument, and how to put results in their places."""

    def __init__(self, tree, operation, op=None, scales=(1.0, 1.0)):
        leaves, self._structure = jax.tree_util.tree_flatten(tree)
        self.leaves = [_leaf(leaf, operation, op, scales) for leaf in leaves]

    def of(self, leaves):
        return jax.tree_util.tree_unflatten(self._structure, leaves)


def _members(number):
    """(size, rank) of this process in a set; ValueError outside of it."""
    _native.query('rank')
    library = _library.lib()
    size, rank = library.hvd_process_set_size(number), library.hvd_process_set_rank(number)
    if rank < 0:
        raise ValueError('This rank is not in the process set {}.'.format(number) if size >= 0 else
                         'There is no process set {}.'.format(number))
    return size, rank


def _execute(call, leaves, rows=None):
    """The results of one call, in a program or at once."""
    if primitive.is_traced(leaves):
        from horovod.jax import ending
        ending.expect_programs()
        if call.name is None:
            _check_thread()
        return primitive.bind(call, leaves, rows)
    return [jnp.asarray(result) for result in host.run(call, [numpy.asarray(leaf) for leaf in leaves])]


_thread = None  # the one whose programs have collectives without names


def _check_thread():
    """Programs of two threads run in any order, where collectives of one name would meet crosswise."""
    global _thread
    current = threading.current_thread()
    if _thread is None or not _thread.is_alive():
        _thread = current
    if _thread is not current:
        raise ValueError('Collectives without names inside of jit belong to one thread, which is {}; give those of {} names, as in '
                         "hvd.allreduce(x, name='loss').".format(_thread.name, current.name))


def _gradient_of(call, **changes):
    return call._replace(name=None if call.name is None else call.name + '.gradient', **changes)


def _is_differentiable(cotangent):
    return cotangent.dtype != jax.dtypes.float0


def _through(call, cotangents, function):
    """Gradients by a function of the list of those cotangents that are numbers; the others stay as they are."""
    present = [index for index, cotangent in enumerate(cotangents) if _is_differentiable(cotangent)]
    gradients = list(cotangents)
    if present:
        for index, gradient in zip(present, function([cotangents[index] for index in present])):
            gradients[index] = gradient
    return tuple(gradients)


def _average_of(call):
    return _gradient_of(call, collective=_library.ALLREDUCE, op=Average, prescale=1.0, postscale=1.0)


def _apply(call, leaves):
    """A call with gradients."""
    if not leaves:
        return []
    if not primitive.is_traced(leaves):
        return _execute(call, leaves)
    if call.collective == _library.ALLREDUCE:
        return list(_allreduce(call, *leaves))
    if call.collective == _library.BROADCAST:
        return list(_broadcast(call, *leaves))
    if call.collective == _library.ALLGATHER:
        return list(_allgather(call, *leaves))
    if call.collective == _library.ALLTOALL:
        return list(_alltoall(call, *leaves))
    return list(_reducescatter(call, *leaves))


# ---- each with its gradient


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _allreduce(call, *leaves):
    return tuple(_execute(call, leaves))


def _allreduce_forward(call, *leaves):
    return _allreduce(call, *leaves), None


def _allreduce_backward(call, unused, cotangents):
    if call.op in (Min, Max, Product):
        raise NotImplementedError('The gradient of hvd.allreduce with op=hvd.Min, hvd.Max or hvd.Product is not available; use '
                                  'hvd.allgather and a reduction of jax.numpy.')
    return _through(call, cotangents, lambda present: _allreduce(_gradient_of(call), *present))


_allreduce.defvjp(_allreduce_forward, _allreduce_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _broadcast(call, *leaves):
    return tuple(_execute(call, leaves))


def _broadcast_forward(call, *leaves):
    return _broadcast(call, *leaves), None


def _broadcast_backward(call, unused, cotangents):
    average = _through(call, cotangents, lambda present: _allreduce(_average_of(call), *present))
    if _native.query('rank') == call.root_rank:
        return average
    return tuple(jnp.zeros_like(gradient) if _is_differentiable(gradient) else gradient for gradient in average)


_broadcast.defvjp(_broadcast_forward, _broadcast_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _allgather(call, *leaves):
    size, _ = _members(call.process_set)
    return tuple(_execute(call, leaves, tuple(leaf.shape[0] * size for leaf in leaves)))


def _allgather_forward(call, *leaves):
    _, rank = _members(call.process_set)
    rows = [leaf.shape[0] for leaf in leaves]
    return _allgather(call, *leaves), [(rank * count, (rank + 1) * count) for count in rows]


def _allgather_backward(call, own, cotangents):
    average = _through(call, cotangents, lambda present: _allreduce(_average_of(call), *present))
    return tuple(gradient[begin:end] for gradient, (begin, end) in zip(average, own))


_allgather.defvjp(_allgather_forward, _allgather_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _alltoall(call, leaf):
    return tuple(_execute(call, [leaf], (leaf.shape[0],)))


def _alltoall_forward(call, leaf):
    return _alltoall(call, leaf), None


def _alltoall_backward(call, unused, cotangents):
    return _through(call, cotangents, lambda present: _alltoall(_gradient_of(call), *present))


_alltoall.defvjp(_alltoall_forward, _alltoall_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _reducescatter(call, *leaves):
    size, rank = _members(call.process_set)
    return tuple(_execute(call, leaves, tuple(leaf.shape[0] // size + (rank < leaf.shape[0] % size) for leaf in leaves)))


def _reducescatter_forward(call, *leaves):
    return _reducescatter(call, *leaves), [leaf.shape[0] for leaf in leaves]


def _reducescatter_backward(call, rows, cotangents):
    size, _ = _members(call.process_set)
    scale = (size if call.op == Sum else 1) * call.prescale * call.postscale
    gather = _gradient_of(call, collective=_library.ALLGATHER, op=Sum, prescale=1.0, postscale=1.0)
    present_rows = tuple(count for count, cotangent in zip(rows, cotangents) if _is_differentiable(cotangent))

    def gathered(present):
        scaled = [cotangent * numpy.array(scale, cotangent.dtype) for cotangent in present]
        if any(count % size for count in present_rows):  # without a second derivative
            return _execute(gather, scaled, present_rows)
        return _allgather(gather, *scaled)

    return _through(call, cotangents, gathered)


_reducescatter.defvjp(_reducescatter_forward, _reducescatter_backward)


# ---- the public functions


def _reduction(collective, operation, tensor, name, op, prescale_factor, postscale_factor, process_set, is_group=None):
    _common_operations.check_op(op)
    scales = _scale(prescale_factor, 'prescale_factor'), _scale(postscale_factor, 'postscale_factor')
    number = _common_operations.process_set_id(process_set)
    _members(number)
    tree = _Tree(tensor, operation, op, scales)
    if collective == _library.REDUCESCATTER:
        _check_rows(tree.leaves, operation)
    call = host.Call(collective, name, op, 0, number, *scales, is_group=len(tree.leaves) > 1 if is_group is None else is_group)
    return tree.of(_apply(call, tree.leaves))


def _check_rows(leaves, operation):
    for leaf in leaves:
        if leaf.ndim == 0:
            raise ValueError('hvd.{} works along the first dimension, but was given an array without dimensions.'.format(operation))


def _plain(collective, name, number, root_rank=0, is_group=False):
    return host.Call(collective, name, Sum, root_rank, number, 1.0, 1.0, is_group)


def allreduce(tensor: Any, name: Optional[str] = None, op: int = Average, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> Any:
    """Combines the arrays of all ranks; the result is the same on every rank.

    The gradient of a sum is the sum of the gradients, of an average their average.

    Args:
        tensor: An array, or a pytree of arrays, which travel together. The same shapes and types on every rank.
        name: Matches the calls of the ranks, and shows in messages and timelines. None: calls are matched in
            their order, those inside of jit among themselves.
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: An array, or a pytree, as `tensor`.

    Raises:
        ValueError: An argument is wrong, hvd.init() has not been called, or this rank is not in the process
            set.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died. Inside of jit it is
            a jax.errors.JaxRuntimeError with the same sentence.

    Example:

        @jax.jit
        def step(params, batch):
            loss, gradients = jax.value_and_grad(loss_of)(params, batch)
            return hvd.allreduce(loss), hvd.allreduce(gradients)
    """
    return _reduction(_library.ALLREDUCE, 'allreduce', tensor, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce(tensors: Sequence[Any], name: Optional[str] = None, op: int = Average, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> List[Any]:
    """allreduce() of a list of arrays, which succeed or fail together.

    Args:
        tensors: A list of arrays, or of pytrees, with at least one array.
        name: As in allreduce().
        op: hvd.Average, Sum, Min, Max, Product or Adasum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list like `tensors`.
    """
    if not jax.tree_util.tree_leaves(tensors):
        raise ValueError('hvd.grouped_allreduce takes at least one array, but was given none.')
    return _reduction(_library.ALLREDUCE, 'grouped_allreduce', list(tensors), name, op, prescale_factor, postscale_factor,
                      process_set, is_group=True)


def allgather(tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Any:
    """Concatenates the arrays of all ranks along the first dimension, in order of rank.

    Outside of jit the first dimension may differ from rank to rank; inside it has to be the same, since a
    compiled program has fixed shapes. The gradient is this rank's rows of the average of the gradients.

    Args:
        tensor: An array with at least one dimension, or a pytree of them.
        name: As in allreduce().
        process_set: The ranks that take part; this rank must be one of them.

    Returns: An array, or a pytree, as `tensor`.
    """
    number = _common_operations.process_set_id(process_set)
    _members(number)
    tree = _Tree(tensor, 'allgather')
    _check_rows(tree.leaves, 'allgather')
    return tree.of(_apply(_plain(_library.ALLGATHER, name, number, is_group=len(tree.leaves) > 1), tree.leaves))


def broadcast(tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Any:
    """Broadcasts the arrays of one rank to all.

    The gradient is the average of the gradients on the root, and zero elsewhere.

    Args:
        tensor: An array, or a pytree of arrays; the same shapes and types on every rank.
        root_rank: The rank whose arrays are sent, as a rank of the world.
        name: As in allreduce(); the arrays of a pytree get a number more.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: An array, or a pytree, as `tensor`.
    """
    number = _common_operations.process_set_id(process_set)
    _members(number)
    tree = _Tree(tensor, 'broadcast')
    return tree.of([_apply(_plain(_library.BROADCAST, _name_of(name, index, tree), number, int(root_rank)), [leaf])[0]
                    for index, leaf in enumerate(tree.leaves)])


def _name_of(name, index, tree):
    return name if name is None or len(tree.leaves) == 1 else '{}.{}'.format(name, index)


def alltoall(tensor: Any, splits: Optional[Sequence[int]] = None, name: Optional[str] = None,
             process_set: ProcessSet = global_process_set) -> Any:
    """Sends each rank its share of the rows of every rank.

    Args:
        tensor: An array with at least one dimension, or a pytree of them.
        splits: How many rows each rank gets; only outside of jit, with one array, and without a gradient. None: equal
            shares.
        name: As in allreduce().
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The rows that came from each rank, in order of rank; with splits a pair: those, and how many came from
        each rank.
    """
    number = _common_operations.process_set_id(process_set)
    size, _ = _members(number)
    tree = _Tree(tensor, 'alltoall')
    _check_rows(tree.leaves, 'alltoall')
    if splits is not None:
        if len(tree.leaves) != 1 or primitive.is_traced(tree.leaves):
            raise ValueError('hvd.alltoall takes splits outside of jit and jax.grad alone, and with one array: a compiled program has '
                             'fixed shapes.')
        results = host.run(_plain(_library.ALLTOALL, name, number), [numpy.asarray(tree.leaves[0])],
                           splits=numpy.asarray(splits).tolist())
        return tree.of([jnp.asarray(results[0])]), jnp.asarray(results[1])
    for leaf in tree.leaves:
        if leaf.shape[0] % size:
            raise ValueError('hvd.alltoall without splits needs a first dimension that {} ranks can share, but it is {}.'.format(
                size, leaf.shape[0]))
    return tree.of([_apply(_plain(_library.ALLTOALL, _name_of(name, index, tree), number), [leaf])[0]
                    for index, leaf in enumerate(tree.leaves)])


def reducescatter(tensor: Any, name: Optional[str] = None, op: int = Average, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> Any:
    """Combines the arrays of all ranks and scatters the rows of the result.

    The gradient is the allgather of the gradients, times the size of the set for a sum.

    Args:
        tensor: An array with at least one dimension, or a pytree of them. The same shapes and types on every rank.
        name: As in allreduce().
        op: hvd.Average or hvd.Sum.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: An array, or a pytree, as `tensor`, with this rank's rows.
    """
    return _reduction(_library.REDUCESCATTER, 'reducescatter', tensor, name, op, prescale_factor, postscale_factor, process_set)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until every rank has called it. Inside of jit it is a point of the program.

    Args:
        process_set: The ranks that take part; this rank must be one of them.
    """
    number = _common_operations.process_set_id(process_set)
    _members(number)
    _execute(_plain(_library.BARRIER, None, number), [])


def join() -> int:
    """Announces that this rank has no more data; the others continue without it until all have called it.

    Outside of jit only, and only for collectives outside of jit.

    Returns: The rank that came last.
    """
    return host._operations.join()


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """Broadcasts a Python object from one rank to all.

    Args:
        obj: Anything that can be pickled; ignored on the other ranks.
        root_rank: The rank whose object is sent.
        name: Matches the calls of the ranks.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The object of the root, on other ranks a copy.
    """
    return objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """Gathers the Python objects of all ranks on every rank.

    Args:
        obj: Anything that can be pickled.
        name: Matches the calls of the ranks.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list, in order of rank.
    """
    return objects.allgather_object(obj, name, process_set)
