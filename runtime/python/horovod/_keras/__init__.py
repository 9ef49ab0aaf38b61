"""What horovod.keras and horovod.tensorflow.keras have in common, for Keras 2 (tf-keras) and Keras 3 on any backend."""

import numpy as np

from horovod import numpy as hvd
from horovod.common.process_sets import global_process_set

Average, Sum, Adasum = hvd.Average, hvd.Sum, hvd.Adasum


def is_keras_3(keras):
    """Whether this module is Keras 3.

    Args:
        keras: The module.

    Returns: True or False.
    """
    return getattr(keras, '__version__', '2').startswith('3') or hasattr(keras, 'ops')


def backend_of(keras):
    """The name of the backend.

    Args:
        keras: The module.

    Returns: 'tensorflow', 'torch' or 'jax'.
    """
    return keras.backend.backend() if is_keras_3(keras) else 'tensorflow'


# ---- reducing the gradients of a step, by backend


def _tensorflow_reduction(name, options):
    from horovod.tensorflow.reduction import GradientReduction
    return GradientReduction(name, options['device_dense'], options['device_sparse'], options['compression'],
                             options['sparse_as_dense'], options['op'], options['gradient_predivide_factor'], options['groups'],
                             options['process_set'])


def _torch_reduction(name, options):
    from horovod import torch as hvd_torch
    process_set, factor, compression = options['process_set'], options['gradient_predivide_factor'], options['compression']

    def reduce(grads, variables=None):
        present = [index for index, grad in enumerate(grads) if grad is not None]
        if not present or not process_set.included() or process_set.size() == 1:
            return grads
        reduced = list(grads)
        pairs = [compression.compress(grads[index].contiguous()) for index in present]
        for index, grad, (_, context) in zip(present, hvd_torch.grouped_allreduce(
                [sent for sent, _ in pairs], op=options['op'], process_set=process_set, prescale_factor=1.0 / factor,
                postscale_factor=factor), pairs):
            reduced[index] = compression.decompress(grad, context)
        return reduced
    return reduce


def _jax_reduction(name, options):
    try:
        from horovod import jax as hvd_jax
    except ImportError as error:
        raise NotImplementedError('hvd.DistributedOptimizer needs horovod.jax for Keras on JAX: {}'.format(error)) from error
    process_set, factor, compression = options['process_set'], options['gradient_predivide_factor'], options['compression']

    def reduce(grads, variables=None):
        present = [index for index, grad in enumerate(grads) if grad is not None]
        if not present or not process_set.included() or process_set.size() == 1:
            return grads
        reduced = list(grads)
        pairs = [(grads[index], None) if compression is None else compression.compress(grads[index]) for index in present]
        for index, grad, (_, context) in zip(present, hvd_jax.grouped_allreduce(
                [sent for sent, _ in pairs], op=options['op'], prescale_factor=1.0 / factor, postscale_factor=factor,
                process_set=process_set), pairs):
            reduced[index] = grad if compression is None else compression.decompress(grad, context)
        return reduced
    return reduce


_REDUCTIONS = {'tensorflow': _tensorflow_reduction, 'torch': _torch_reduction, 'jax': _jax_reduction}


# ---- the optimizer


def _key(variable):
    value = getattr(variable, 'value', None)
    if value is not None and not callable(value):
        return id(variable)
    return variable.ref() if hasattr(variable, 'ref') else id(variable)


class _Distributed:
    """Methods of every distributed optimizer; they are mixed into a subclass of the class of the wrapped one."""

    _HAS_AGGREGATE_GRAD = True

    def register_local_var(self, var):
        """Excludes a variable from the reduction.

        Args:
            var: The variable.
        """
        self._hvd['local'].add(_key(var))
        if self._hvd['aggregation'] is not None:
            self._hvd['aggregation'].register_local_var(var)

    def _hvd_reduced(self, grads, variables):
        grads, variables = list(grads), list(variables)
        state = self._hvd
        if state['aggregation'] is not None:
            return state['aggregation'].compute_gradients(grads, variables)
        local = {index for index, variable in enumerate(variables) if _key(variable) in state['local']}
        others = [index for index in range(len(grads)) if index not in local]
        reduced = list(grads)
        for index, grad in zip(others, state['reduction']([grads[index] for index in others],
                                                          [variables[index] for index in others])):
            reduced[index] = grad
        if state['options']['scale_local_gradients']:
            for index in local:
                grad, process_set = reduced[index], state['options']['process_set']
                if hasattr(grad, 'indices') and hasattr(grad, 'dense_shape'):  # tf.IndexedSlices cannot be divided
                    from horovod.tensorflow.gradient_aggregation import scaled_local
                    reduced[index] = scaled_local(grad, process_set)
                elif grad is not None:
                    reduced[index] = grad / process_set.size()
        return reduced


def _keras_3_class(base):
    """Overrides apply() alone: every other entry of Keras 3 comes through it, before it clips and unscales."""
    class Distributed(base):
        def apply(self, grads, trainable_variables=None):
            """Combines the gradients over the ranks and applies them.

            Args:
                grads: A list of gradients.
                trainable_variables: Their variables.
            """
            if getattr(self, '_hvd_inside', False):
                return super().apply(grads, trainable_variables)
            grads = list(grads)
            if trainable_variables is not None:
                trainable_variables = list(trainable_variables)
                if not self.built:
                    self.build(trainable_variables)
            variables = trainable_variables if trainable_variables is not None else self._trainable_variables
            reduced = self._hvd_reduced(grads, variables)
            aggregation = self._hvd['aggregation']
            if aggregation is None:
                return self._hvd_apply(base.apply, reduced, trainable_variables)

            def apply():
                self._hvd_apply(base.apply, reduced, trainable_variables)
            return aggregation.apply_gradients(apply, self, list(zip(reduced, variables)))

        def _hvd_apply(self, apply, grads, variables):
            self._hvd_inside = True  # LossScaleOptimizer and similar classes call this again
            try:
                return apply(self, grads, variables)
            finally:
                self._hvd_inside = False
    return Distributed


def _keras_2_class(base):
    """Gradients are combined by the first of these that a step calls: an older or newer entry that computes them, one that aggregates
    them, which LossScaleOptimizer does before it looks at them, and apply_gradients()."""
    class Distributed(base):
        def apply_gradients(self, grads_and_vars, *args, **kwargs):
            """Combines the gradients over the ranks, unless they are combined already, and applies them.

            Args:
                grads_and_vars: Pairs of a gradient and its variable.
                args: See the wrapped optimizer.
                kwargs: See the wrapped optimizer.

            Returns: What the wrapped optimizer returns.
            """
            if self._hvd_inside:
                return super().apply_gradients(grads_and_vars, *args, **kwargs)
            pairs = list(grads_and_vars)
            is_reduced = self._hvd_has_reduced([variable for _, variable in pairs])
            if not (is_reduced or kwargs.get('skip_gradients_aggregation') or not kwargs.get('experimental_aggregate_gradients', True)):
                pairs = self._hvd_reduced_pairs(pairs)
            aggregation = self._hvd['aggregation']

            def apply():
                return self._hvd_within(base.apply_gradients, pairs, *args, **kwargs)
            return apply() if aggregation is None else aggregation.apply_gradients(apply, self, pairs)

        def _hvd_within(self, method, *args, **kwargs):
            self._hvd_inside, before = True, self._hvd_inside
            try:
                return method(self, *args, **kwargs)
            finally:
                self._hvd_inside = before

        def _hvd_reduced_pairs(self, pairs):
            pairs = list(pairs)
            variables = [variable for _, variable in pairs]
            if hasattr(self, 'build') and not getattr(self, '_built', True) and hasattr(self, '_build'):
                import tensorflow as tf
                with tf.init_scope():
                    self.build(variables)
            return list(zip(self._hvd_reduced([grad for grad, _ in pairs], variables), variables))

        def _hvd_note_reduced(self, variables):
            self._hvd['reduced'] = _place_of_step(), {_key(variable) for variable in variables}

        def _hvd_has_reduced(self, variables):
            """Whether the gradients of these variables were combined in this step; forgets it."""
            place, keys = self._hvd.pop('reduced', (None, None))
            return keys is not None and place is _place_of_step() and keys.issuperset(_key(variable) for variable in variables)

    def computing(method):
        def compute(self, *args, **kwargs):
            if self._hvd_inside:
                return method(self, *args, **kwargs)
            pairs = self._hvd_reduced_pairs(self._hvd_within(method, *args, **kwargs))
            self._hvd_note_reduced([variable for _, variable in pairs])
            return pairs
        return compute

    def get_gradients(self, loss, params):
        grads = self._hvd_within(base.get_gradients, loss, params)
        pairs = self._hvd_reduced_pairs(zip(grads, params))
        self._hvd_note_reduced(params)
        return [grad for grad, _ in pairs]

    def aggregating(method):
        def aggregate(self, grads_and_vars):
            if self._hvd_inside:
                return method(self, grads_and_vars)
            pairs = list(grads_and_vars)
            if not self._hvd_has_reduced([variable for _, variable in pairs]):
                pairs = self._hvd_reduced_pairs(pairs)
            self._hvd_note_reduced([variable for _, variable in pairs])
            return pairs
        return aggregate

    for name in ('compute_gradients', '_compute_gradients'):
        if hasattr(base, name):
            setattr(Distributed, name, computing(getattr(base, name)))
    for name in ('aggregate_gradients', '_aggregate_gradients'):
        if hasattr(base, name):
            setattr(Distributed, name, aggregating(getattr(base, name)))
    if hasattr(base, 'get_gradients'):
        Distributed.get_gradients = get_gradients
    return Distributed


def _place_of_step():
    """The graph that is being made, or None in eager mode."""
    import tensorflow as tf
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def _present_as(keras, made, base):
    """Has a class saved by the public name of the one that it is derived from, so that a model can be loaded without this package."""
    try:
        if is_keras_3(keras):
            from keras.src import api_export
            if base in api_export.REGISTERED_OBJS_TO_NAMES:
                api_export.REGISTERED_OBJS_TO_NAMES[made] = api_export.REGISTERED_OBJS_TO_NAMES[base]
                return
        elif '_keras_api_names' in vars(base):
            made._keras_api_names = base._keras_api_names
            return
    except (ImportError, AttributeError):  # of another release
        pass
    if '<locals>' not in base.__qualname__:  # it can be imported
        made.__module__ = base.__module__


def distributed_class(keras, base):
    """A class whose optimizers combine gradients, with the name of the given one: what is saved can be loaded without us.

    Args:
        keras: The module.
        base: The class of an optimizer.

    Returns: A subclass.
    """
    made = (_keras_3_class if is_keras_3(keras) else _keras_2_class)(base)
    for name, value in vars(_Distributed).items():
        if not name.startswith('__'):
            setattr(made, name, value)
    made.__name__, made.__qualname__, made.__module__ = base.__name__, base.__qualname__, __name__
    _present_as(keras, made, base)
    return made


def make_distributed(keras, optimizer, name, options):
    """Gives an optimizer such a class, in place: it keeps its variables.

    Args:
        keras: The module.
        optimizer: The optimizer.
        name: The name scope of its operations.
        options: The arguments of DistributedOptimizer().

    Returns: The optimizer.
    """
    backend = backend_of(keras)
    if backend not in _REDUCTIONS:
        raise NotImplementedError('hvd.DistributedOptimizer does not know the backend {} of Keras.'.format(backend))
    reduction = _REDUCTIONS[backend](name or 'Distributed{}'.format(type(optimizer).__name__), options)
    aggregation = None
    if options['backward_passes_per_step'] > 1:
        if backend != 'tensorflow':
            raise NotImplementedError('backward_passes_per_step > 1 needs the backend tensorflow of Keras, but it is {}; use '
                                      'the argument gradient_accumulation_steps of the optimizer.'.format(backend))
        from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelperEager
        aggregation = LocalGradientAggregationHelperEager(
            options['backward_passes_per_step'], reduction, options['sparse_as_dense'],
            options['average_aggregated_gradients'], options['process_set'], options['scale_local_gradients'])
    base = type(optimizer)
    made = distributed_class(keras, base)

    def from_config(cls, config, *args, **kwargs):
        return make_distributed(keras, base.from_config(config, *args, **kwargs), name, options)
    made.from_config = classmethod(from_config)
    state = {'reduction': reduction, 'aggregation': aggregation, 'options': options, 'local': set()}
    object.__setattr__(optimizer, '__class__', made)
    object.__setattr__(optimizer, '_hvd', state)
    object.__setattr__(optimizer, '_hvd_inside', False)
    return optimizer


def create_distributed_optimizer(keras, optimizer, name, **options):
    """DistributedOptimizer() of both packages.

    Args:
        keras: The module.
        optimizer: The optimizer; it is not changed.
        name: The name scope of its operations.
        options: The other arguments.

    Returns: An optimizer of a subclass of its class.

    Raises:
        ValueError: op is neither Average nor Sum, or another argument is wrong.
    """
    if options['op'] not in (Average, Sum):
        raise ValueError('op should be either Average or Sum')
    if options['backward_passes_per_step'] <= 0:
        raise ValueError('backward_passes_per_step must be > 0')
    if options['gradient_predivide_factor'] != 1.0 and options['op'] != Average:
        raise ValueError('gradient_predivide_factor not supported with op != Average')
    options['groups'] = _checked_groups(options.pop('num_groups', 0), options['groups'])
    if not isinstance(optimizer, _optimizer_classes(keras)):
        raise ValueError('hvd.DistributedOptimizer takes an optimizer of {}, but {} was given.'.format(
            keras.__name__, type(optimizer).__name__))
    copy = type(optimizer).from_config(optimizer.get_config())
    if not _scales_losses(copy) and _is_float16(keras):
        # Keras would wrap ours in one that examines only this rank's gradients before it calls ours.
        copy = keras.mixed_precision.LossScaleOptimizer(copy)
    return make_distributed(keras, copy, name, options)


def _is_float16(keras):
    policies = keras.mixed_precision
    policy = policies.dtype_policy() if hasattr(policies, 'dtype_policy') else policies.global_policy()
    return getattr(policy, 'name', '') == 'mixed_float16'


def _scales_losses(optimizer):
    return hasattr(optimizer, 'inner_optimizer')


def reduce_outside(keras, optimizer):
    """Where Keras has put an optimizer that scales losses around a distributed one, the outer one is made the distributed one: it
    decides by the gradients whether there is a step, and all ranks have to decide alike.

    Args:
        keras: The module.
        optimizer: The optimizer of a model.
    """
    inner = getattr(optimizer, 'inner_optimizer', None)
    state = getattr(inner, '_hvd', None)
    if state is None or hasattr(optimizer, '_hvd'):
        return
    object.__setattr__(inner, '__class__', type(inner).__mro__[1])
    object.__delattr__(inner, '_hvd')
    make_distributed(keras, optimizer, None, state['options'])
    optimizer._hvd['local'].update(state['local'])


def _optimizer_classes(keras):
    classes = [keras.optimizers.Optimizer]
    legacy = getattr(keras.optimizers, 'legacy', None)
    if legacy is not None and not is_keras_3(keras):
        classes.append(legacy.Optimizer)
    return tuple(classes)


def _checked_groups(num_groups, groups):
    if num_groups:
        import warnings
        warnings.warn('Parameter `num_groups` has been replaced by `groups` and will be removed.', DeprecationWarning,
                      stacklevel=4)
        groups = num_groups if groups is None else groups
    if groups is None or isinstance(groups, int) and not isinstance(groups, bool) and groups > 0:
        return groups
    if isinstance(groups, list) and all(isinstance(group, (list, tuple)) for group in groups):
        return groups
    raise ValueError('groups should be a non-negative integer or a list of list of tf.Variable.')


# ---- values


def allreduce(value, name, op, prescale_factor=1.0, postscale_factor=1.0):
    """Combines a number or an array over the ranks.

    Args:
        value: Anything numpy.asarray takes.
        name: Matches the calls of the ranks.
        op: Average, Sum, Min, Max or Product.
        prescale_factor: The input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A number or an array.
    """
    return _plain(hvd.allreduce(np.asarray(value), name=name, op=op, prescale_factor=prescale_factor,
                                postscale_factor=postscale_factor))


def _plain(array):
    return array[()] if array.ndim == 0 else array


def allgather(value, name=None):
    """Concatenates arrays of all ranks.

    Args:
        value: Anything numpy.asarray takes.
        name: Matches the calls of the ranks.

    Returns: An array.
    """
    return hvd.allgather(np.asarray(value), name=name)


def broadcast(value, root_rank, name=None):
    """Broadcasts the value of one rank to all.

    Args:
        value: Anything numpy.asarray takes.
        root_rank: The rank.
        name: Matches the calls of the ranks.

    Returns: A number or an array.
    """
    return _plain(hvd.broadcast(np.asarray(value), root_rank, name=name))


def reducescatter(value, name=None, op=hvd.Average):
    """Combines arrays over the ranks and scatters the rows of the result.

    Args:
        value: Anything numpy.asarray takes.
        name: Matches the calls of the ranks.
        op: Average or Sum.

    Returns: An array.
    """
    return hvd.reducescatter(np.asarray(value), name=name, op=op)


def broadcast_global_variables(root_rank):
    """Gives all variables of a graph the values of one rank. For graphs with sessions.

    Args:
        root_rank: The rank whose values are sent.

    Returns: None.

    Raises:
        RuntimeError: TensorFlow executes eagerly.
    """
    import tensorflow as tf
    from horovod.tensorflow import functions
    operation = functions.broadcast_global_variables(root_rank)
    session = tf.compat.v1.keras.backend.get_session() if hasattr(tf.compat.v1, 'keras') else None
    return operation if session is None else session.run(operation)


def array_of(variable):
    """The value of a variable of any backend.

    Args:
        variable: The variable.

    Returns: An array.
    """
    value = getattr(variable, 'value', variable)
    value = value if not callable(value) else variable
    if hasattr(value, 'detach'):
        value = value.detach().cpu()
    return np.array(value.numpy() if hasattr(value, 'numpy') else value)


def broadcast_variables(variables, root_rank, process_set=global_process_set):
    """Gives variables of any backend the values of one rank.

    Args:
        variables: A list of variables, the same on every rank.
        root_rank: The rank.
        process_set: The ranks that take part.
    """
    arrays = [np.array(array_of(variable), order='C') for variable in variables]  # ascontiguousarray adds a dimension to scalars
    handles = []
    for index, array in enumerate(arrays):
        if array.dtype.kind in 'USO':
            continue  # the seed generator of a layer of strings, for example
        # Bytes: this also supports types that NumPy knows only by name.
        handles.append((index, hvd.broadcast_async_(array.reshape(-1).view(np.uint8), root_rank, process_set=process_set)))
    for index, handle in handles:
        hvd.synchronize(handle)
        variables[index].assign(arrays[index])


def load_model(keras, filepath, custom_optimizers, custom_objects, compression):
    """Loads a model and makes its optimizer distributed.

    Args:
        keras: The module.
        filepath: The file.
        custom_optimizers: Classes of optimizers that are not those of Keras.
        custom_objects: See keras.models.load_model.
        compression: How gradients are sent.

    Returns: The model.
    """
    objects = {made.__name__: made for made in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=objects or None)
    optimizer = getattr(model, 'optimizer', None)
    if optimizer is not None:
        make_distributed(keras, optimizer, None, dict(
            device_dense='', device_sparse='', compression=compression, sparse_as_dense=False, gradient_predivide_factor=1.0,
            op=Average, backward_passes_per_step=1, average_aggregated_gradients=False, groups=None,
            process_set=global_process_set, scale_local_gradients=True))
    return model
