"""torch.compile beside collectives, which are not part of a graph: a compiled function is split where it calls one.

Left alone, the compiler looks into the functions of this package, and warns of each call of the runtime that it finds.
"""

import sys
import types

import torch

_WHY = ('a collective of horovod waits for other ranks and cannot be part of a graph; leave out fullgraph=True, or call it outside '
        'of the compiled function')


def _functions_of(module):
    for value in list(vars(module).values()):
        if getattr(value, '__module__', None) != module.__name__:
            continue
        if isinstance(value, types.FunctionType):
            yield value
        elif isinstance(value, type):
            for member in list(vars(value).values()):
                member = getattr(member, '__func__', getattr(member, 'fget', member))
                if isinstance(member, types.FunctionType):
                    yield member


def _skipper():
    """The function that makes the compiler skip a code object; None in a release without torch.compile."""
    frames = getattr(getattr(torch._C, '_dynamo', None), 'eval_frame', None)
    if hasattr(frames, 'set_code_exec_strategy'):
        strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        return lambda code: frames.set_code_exec_strategy(code, strategy)
    return getattr(frames, 'skip_code', None)


def leave_to_the_interpreter():
    """Marks the functions of this package, as torch.compiler.disable would, but without its compiler, which takes seconds to
    import: a graph ends before them, and they are not compiled themselves."""
    try:
        skip = _skipper()
    except AttributeError:  # a release that does it differently
        return
    if skip is None:
        return
    for name in [name for name in sys.modules if name.startswith(('horovod.common.', 'horovod.torch.'))]:
        for function in _functions_of(sys.modules[name]):
            skip(function.__code__)
            function._torchdynamo_disable = True
            function._torchdynamo_disable_msg = _WHY
