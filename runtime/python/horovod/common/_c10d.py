"""What a version of torch.distributed can do, and how torch.compile leaves a backend alone; imports nothing of it."""

import inspect


def is_extensible(c10d):
    """Whether Python can extend the class Backend of this module of torch._C: since PyTorch 2.14."""
    if not hasattr(c10d, 'Backend'):
        return False
    try:
        type('Probe', (c10d.Backend,), {})(0, 1)
    except TypeError:  # no constructor
        return False
    return True


def hide_from_dynamo(torch_c, modules):
    """torch.compile takes each Python function that runs within a compiled module for a part of it, also those of a backend that
    DistributedDataParallel calls from C++. Not the functions of these modules."""
    skip_code = getattr(getattr(getattr(torch_c, '_dynamo', None), 'eval_frame', None), 'skip_code', None)
    if skip_code is None:  # it does not compile
        return
    for module in modules:
        for thing in list(vars(module).values()):
            if getattr(thing, '__module__', None) != module.__name__:
                continue
            for each in vars(thing).values() if inspect.isclass(thing) else (thing,):
                function = getattr(each, '__func__', getattr(each, 'fget', each))  # of a method of the class, a property
                if inspect.isfunction(function):
                    _skip(function.__code__, skip_code)


def _skip(code, skip_code):
    skip_code(code)
    for inner in code.co_consts:
        if inspect.iscode(inner):
            _skip(inner, skip_code)
