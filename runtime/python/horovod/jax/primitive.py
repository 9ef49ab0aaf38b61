"""A collective as a primitive of JAX, for traced functions: a call of libhvd_jax.so, or of Python if that is unavailable.

All of a process have one ordered effect, so that those of a program run one after the other in the order of the script, in
loops and branches, and those of two programs of a thread in the order of the calls. XLA runs independent operations of a
program in an order that differs from rank to rank, and a function that is compiled once may stand in a program twice: without the
order, two collectives of one name could meet crosswise.
"""

import numpy

import jax
from jax import numpy as jnp
from jax._src import core, effects
from jax._src.interpreters import ad, batching, mlir

from horovod.common.exceptions import HorovodInternalError
from horovod.jax import host, native

try:
    from jax._src.lib.mlir import ir
except ImportError:
    from jaxlib.mlir import ir


class _Order(effects.Effect):
    def __str__(self):
        return 'Horovod'


_order = _Order()
for _allowed in ('ordered_effects', 'lowerable_effects', 'control_flow_allowed_effects', 'custom_derivatives_allowed_effects',
                 'remat_allowed_effects', 'partial_eval_kept_effects'):
    if hasattr(effects, _allowed):
        getattr(effects, _allowed).add_type(_Order)

_collective = core.Primitive('hvd_collective')
_collective.multiple_results = True


def is_traced(leaves):
    """Whether a call with these is part of a program that is being made, or runs now."""
    return not core.trace_state_clean() or any(isinstance(leaf, core.Tracer) for leaf in leaves)


def bind(call, leaves, rows=None):
    """The results of a call, as a part of the program that is being traced. rows: those of each result, if they differ from
    those of its argument."""
    return list(_collective.bind(*leaves, call=call, rows=rows))


# ---- what JAX requires of a primitive


def _shape(shape, index, rows):
    return tuple(shape) if rows is None else (rows[index],) + tuple(shape[1:])


@_collective.def_effectful_abstract_eval
def _abstract(*avals, call, rows):
    return [core.ShapedArray(_shape(aval.shape, index, rows), aval.dtype) for index, aval in enumerate(avals)], {_order}


@_collective.def_impl
def _run(*arguments, call, rows):
    from jax._src import dispatch
    return dispatch.apply_primitive(_collective, *arguments, call=call, rows=rows)


def _batch(arguments, axes, *, call, rows):
    """Each collective works along the first dimension, or on each element: a dimension more at the end changes nothing."""
    size = next(argument.shape[axis] for argument, axis in zip(arguments, axes) if isinstance(axis, int))
    moved = []
    for argument, axis in zip(arguments, axes):
        if isinstance(axis, int):
            moved.append(jnp.moveaxis(argument, axis, -1))
        else:  # the same for all
            moved.append(jnp.broadcast_to(argument[..., None], argument.shape + (size,)))
    results = _collective.bind(*moved, call=call, rows=rows)
    return results, [result.ndim - 1 for result in results]


batching.primitive_batchers[_collective] = _batch


def _no_derivative(*unused, **unused_too):
    raise NotImplementedError('hvd collectives have gradients (jax.grad, jax.vjp), but no forward-mode derivatives (jax.jvp).')


ad.primitive_jvps[_collective] = _no_derivative


def _attributes(call):
    def integer(value):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)

    def number(value):
        return ir.FloatAttr.get(ir.F64Type.get(), value)

    return {
        'collective': integer(call.collective),
        'name': ir.StringAttr.get(host.full_name(call)),
        'op': integer(call.op),
        'postscale': number(call.postscale),
        'prescale': number(call.prescale),
        'process_set': integer(call.process_set),
        'root_rank': integer(call.root_rank),
    }


def _lower(ctx, *arguments, call, rows):
    token = ctx.tokens_in.get(_order)
    is_tuple = isinstance(token, (tuple, list))  # in some versions of JAX
    lower = _lower_to_handler if native.has_handlers() else _lower_to_python
    token, results = lower(ctx, token[0] if is_tuple else token, arguments, call, rows)
    ctx.set_tokens_out(mlir.TokenSet({_order: (token,) if is_tuple else token}))
    return results


mlir.register_lowering(_collective, _lower)


def _lower_to_python(ctx, token, arguments, call, rows):
    try:
        from jax._src.callback import emit_python_callback
    except ImportError:
        emit_python_callback = mlir.emit_python_callback

    def run(*arrays):
        try:
            results = host.run(call, [numpy.asarray(array) for array in arrays], is_in_program=True)
        except HorovodInternalError as error:
            native.note_failure(error)
            raise
        for result, aval in zip(results, ctx.avals_out):
            if result.shape != aval.shape:
                raise HorovodInternalError(
                    'The ranks gave {} tensors of different sizes, which a compiled program cannot take: its results have '
                    'fixed shapes; call it outside of jit, or make the sizes equal.'.format(host.full_name(call)))
        return tuple(results)

    results, token, _ = emit_python_callback(ctx, run, token, list(arguments), ctx.avals_in, ctx.avals_out,
                                             has_side_effect=True)
    return token, results


def _lower_to_handler(ctx, token, arguments, call, rows):
    is_made = rows is not None
    types = [ir.RankedTensorType.get(aval.shape, argument.type.element_type) for aval, argument in zip(ctx.avals_out, arguments)]
    custom_call = mlir.custom_call(
        native.TARGET,
        result_types=[token.type] + types,
        operands=[token] + list(arguments),
        backend_config=_attributes(call),
        api_version=4,
        has_side_effect=True,
        # A reduction is done in place; XLA copies an argument that is needed later.
        operand_output_aliases=None if is_made else {index + 1: index + 1 for index in range(len(arguments))},
        operand_layouts=[()] + [tuple(reversed(range(len(aval.shape)))) for aval in ctx.avals_in],
        result_layouts=[()] + [tuple(reversed(range(len(aval.shape)))) for aval in ctx.avals_out])
    token, *results = custom_call.results
    return token, results
