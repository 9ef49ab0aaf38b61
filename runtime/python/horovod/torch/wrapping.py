"""How DistributedOptimizer() extends a script's optimizer.

It changes the object's class and makes no second object: schedulers, trainers and checkpoints that got the optimizer
before the wrapping hold the one that exchanges gradients, with its state, its groups, its hooks and its attributes. The new
class is derived from the one of the script at run time:

    type(optimizer) -> _DistributedOptimizer -> (_OtherStep ->) _Extended -> SGD
"""

import copyreg
import functools
import inspect
import weakref


def plain_class(optimizer):
    """The class that the script chose, also of an optimizer that is wrapped."""
    return getattr(type(optimizer), '_hvd_base', type(optimizer))


def plain_step(optimizer):
    """The step of that class without the hooks that a script has registered, for steps that the script has not asked for."""
    step = plain_class(optimizer).step
    return getattr(step, '__wrapped__', step) if getattr(step, 'hooked', False) else step


def _without_ours(state, optimizer):
    """What pickle or copy stores of an object, from its __reduce_ex__(), without the attributes that we added."""
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[0], dict):  # the second has the slots
        return _without_ours(state[0], optimizer), state[1]
    if not isinstance(state, dict):
        return state
    ours = vars(optimizer).get('_hvd_attributes', ())
    own_step = vars(optimizer).get('_hvd_front_step')
    return {name: value for name, value in state.items() if name not in ours and (value is not own_step or value is None)}


class _Extended:
    """Makes pickle and copy create an optimizer of the class that the script chose."""

    __slots__ = ()

    def __reduce_ex__(self, protocol):
        reduced = super(_Extended, self).__reduce_ex__(protocol)
        if not isinstance(reduced, tuple):
            return reduced
        ours, plain = type(self), plain_class(self)
        make, arguments = reduced[:2]
        if make in (copyreg.__newobj__, copyreg.__newobj_ex__):  # which pickle uses only for an object's own class
            make, arguments = copyreg._reconstructor, (plain, object, None)
        parts = [plain if make is ours else make, tuple([plain if each is ours else each for each in arguments])]
        if len(reduced) > 2:
            parts.append(_without_ours(reduced[2], self))
        return tuple(parts) + tuple(reduced[3:])


class _OtherStep:
    """Where the optimizer had a step of its own as an attribute, or where its class has one that takes more than a closure:
    hands on to it what the caller of step() gave."""

    __slots__ = ()

    def step(self, *closure):
        args, kwargs, place = self._hvd_arguments
        if closure and 'closure' in kwargs:
            kwargs = dict(kwargs, closure=closure[0])
        elif closure:
            args = args[:place] + closure + args[place + 1:]
        inner = self._hvd_inner_step
        return super(_OtherStep, self).step(*args, **kwargs) if inner is None else inner(*args, **kwargs)


def _parameters_of(step):
    """The names of its parameters besides the optimizer; None if that cannot be known."""
    try:
        parameters = list(inspect.signature(step).parameters.values())
    except (TypeError, ValueError):
        return None
    if not parameters or parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return None
    return [parameter.name for parameter in parameters[1:]]


def _step_of_any_form(mixin, base):
    """step() of a class with _OtherStep: finds the closure among the arguments."""
    names = _parameters_of(base.step) or []
    place = names.index('closure') if 'closure' in names else 0

    @functools.wraps(base.step)
    def step(self, *args, **kwargs):
        closure = args[place] if len(args) > place else kwargs.get('closure')
        self._hvd_arguments = args, kwargs, place
        try:
            return mixin.step(self, closure if callable(closure) else None)
        finally:
            self._hvd_arguments = (), {}, place

    step.hooked = True  # the step of the base runs the hooks, when the gradients are exchanged
    return step


def _step_in_front_of(optimizer, replaced, note_step):
    """Replaces another function as the optimizer's attribute `step`; has its marks, by which schedulers recognise it."""
    this = weakref.ref(optimizer)

    @functools.wraps(replaced)
    def step(*args, **kwargs):
        optimizer = this()
        if note_step:
            _note_step(optimizer)
        return type(optimizer).step(optimizer, *args, **kwargs)

    return step


def _note_step(optimizer):
    """What the step that a scheduler puts in front of an optimizer's does, in old and new releases of PyTorch."""
    if '_step_count' in vars(optimizer):
        optimizer._step_count += 1
    optimizer._opt_called = True


def _is_of_a_scheduler(step):
    return hasattr(step, '_with_counter') or hasattr(step, '_wrapped_by_lr_sched')


def _class_for(mixin, base, other_step):
    attributes = {'__module__': base.__module__, '__qualname__': base.__qualname__, '__doc__': base.__doc__, '_hvd_base': base,
                  '_hvd_mixin': mixin}
    if other_step:
        attributes['step'] = _step_of_any_form(mixin, base)
    return type(base.__name__, (mixin,) + ((_OtherStep,) if other_step else ()) + (_Extended, base), attributes)


def _run_hooks_around_step(optimizer):
    """For a class whose step() does not end in one of the base, which would run them: torch puts them around it."""
    for name in ('_patch_step_function', '_hook_for_profile'):  # of PyTorch 2 and 1
        patch = getattr(optimizer, name, None)
        if patch is not None:
            patch()
            return


def _step_of_the_instance(optimizer):
    """What a scheduler or a profiler has assigned to optimizer.step before the optimizer was wrapped, or None."""
    step = vars(optimizer).get('step')
    if step is None or plain_class(optimizer) is type(optimizer):
        return step
    if step is vars(optimizer).get('_hvd_front_step'):
        return optimizer._hvd_replaced_step
    raise ValueError(
        'DistributedOptimizer cannot change from or to op=hvd.Adasum once a scheduler, or a profiler, has been put in front of '
        'the step of the wrapped optimizer; make a new optimizer, wrap it, and then make its schedulers.')


def extend(optimizer, mixin):
    """Derives the optimizer's class from the mixin. An optimizer that was extended before loses that extension.

    Raises:
        ValueError: That cannot be done; the object is what it was.
    """
    if getattr(type(optimizer), '_hvd_mixin', None) is mixin:
        optimizer._hvd_release()  # its class, and the steps that others have put before it, stay
        return
    base = plain_class(optimizer)
    replaced = _step_of_the_instance(optimizer)
    ends_in_base = getattr(mixin.step, 'hooked', False)  # its step() ends in the base's, which runs hooks
    if replaced is not None and not ends_in_base and not _is_of_a_scheduler(replaced):
        raise ValueError(
            'DistributedOptimizer(op=hvd.Adasum) steps each parameter by itself and cannot call the function that was '
            'assigned to optimizer.step of this {}; wrap the optimizer before optimizer.step is replaced.'.format(base.__name__))
    if base is not type(optimizer):
        optimizer._hvd_release()
    other_step = ends_in_base and (replaced is not None or _parameters_of(base.step) != ['closure'])
    try:
        optimizer.__class__ = _class_for(mixin, base, other_step)
    except TypeError as error:
        raise ValueError('DistributedOptimizer cannot extend the class {} of this optimizer: {}.'.format(
            base.__name__, error)) from None
    if not ends_in_base:
        _run_hooks_around_step(optimizer)
    if other_step:
        optimizer._hvd_inner_step = replaced
    if replaced is not None:
        optimizer._hvd_replaced_step = replaced
        optimizer._hvd_front_step = vars(optimizer)['step'] = _step_in_front_of(optimizer, replaced, not ends_in_base)
