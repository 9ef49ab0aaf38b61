"""The callbacks of horovod.keras and horovod.tensorflow.keras, made for a module of Keras."""

import numpy as np

from horovod import _keras
from horovod.numpy import size


def _set(optimizer, name, value):
    held = getattr(optimizer, name)
    if hasattr(held, 'assign'):
        held.assign(value)
    else:
        setattr(optimizer, name, value)


def _get(optimizer, name):
    return float(np.asarray(_keras.array_of(getattr(optimizer, name))))


def _inner(optimizer):
    """The optimizer whose learning rate counts."""
    return getattr(optimizer, 'inner_optimizer', optimizer)


def make(keras):
    """The classes.

    Args:
        keras: The module.

    Returns: A dictionary by name.
    """

    class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
        """Gives all ranks the variables of one after the first batch, when those of the optimizer exist as well.

        Args:
            root_rank: The rank whose values are sent.
            device: Ignored.
            local_variables: Variables that are left alone.
        """

        def __init__(self, root_rank, device='', local_variables=None):
            super().__init__()
            self.root_rank = root_rank
            self.device = device
            self._local = {id(variable) for variable in local_variables or ()}
            self.broadcast_done = False
            self._compares = False

        def _compare(self):
            weights = [weight for weight in self.model.trainable_weights if id(weight) not in self._local]
            sums = _keras.allgather([[float(np.sum(_keras.array_of(weight), dtype=np.float64)) for weight in weights]],
                                    'keras.checksum')
            if (sums != sums[0]).any() and np.isfinite(sums).all():
                import warnings
                warnings.warn('The weights of the ranks differ after the second batch, so gradients are not combined; wrap the '
                              'optimizer of model.compile() in hvd.DistributedOptimizer().', RuntimeWarning, stacklevel=2)

        def set_model(self, model):
            """Keeps the model. A step that is compiled by XLA could not contain a collective, nor should one be in a branch that
            not all ranks take.

            Args:
                model: The model.
            """
            super().set_model(model)
            _keras.reduce_outside(keras, getattr(model, 'optimizer', None))
            if _keras.is_keras_3(keras) and _keras.backend_of(keras) == 'tensorflow' and getattr(model, 'jit_compile', False):
                model.jit_compile = False

        def register_local_var(self, var):
            """Leaves a variable alone.

            Args:
                var: The variable.
            """
            self._local.add(id(var))

        def on_batch_end(self, batch, logs=None):
            """Broadcasts, once.

            Args:
                batch: Ignored.
                logs: Ignored.
            """
            if self.broadcast_done:
                if self._compares:
                    self._compares = False
                    self._compare()
                return
            self.broadcast_done = True
            # A custom train_step may reduce gradients, too.
            self._compares = size() > 1 and not hasattr(getattr(self.model, 'optimizer', None), '_hvd')
            # Neither the metrics nor this rank's seeds, which make its dropout differ from that of other ranks.
            variables = list(self.model.weights)
            held = getattr(getattr(self.model, 'optimizer', None), 'variables', ())
            known = {id(variable) for variable in variables}
            variables += [variable for variable in (held() if callable(held) else held) if id(variable) not in known]
            _keras.broadcast_variables([variable for variable in variables if id(variable) not in self._local],
                                       self.root_rank)

    class MetricAverageCallback(keras.callbacks.Callback):
        """Replaces the logs of an epoch by their averages over the ranks; to be placed before callbacks that read them.

        Args:
            device: Ignored.
        """

        def __init__(self, device=''):
            super().__init__()
            self.device = device

        def on_epoch_end(self, epoch, logs=None):
            """Averages.

            Args:
                epoch: Ignored.
                logs: The values by name; they are replaced.
            """
            for name, value in sorted((logs or {}).items()):
                if np.isscalar(value) or np.ndim(value) == 0:
                    logs[name] = float(_keras.allreduce(np.float64(value), 'metric.' + name, _keras.Average))

    class LearningRateScheduleCallback(keras.callbacks.Callback):
        """Multiplies the initial learning rate by a factor that depends on the epoch.

        Args:
            initial_lr: The learning rate that the factor is of.
            multiplier: A number, or a function of the epoch.
            start_epoch: The first epoch in which it acts.
            end_epoch: The first in which it does not act any more; None: it acts to the end.
            staircase: Whether the factor changes with epochs only, not with batches.
            momentum_correction: Whether the momentum is scaled for the batch after a change.
            steps_per_epoch: Number of batches; by default that of fit().
        """

        def __init__(self, initial_lr, multiplier, start_epoch=0, end_epoch=None, staircase=True, momentum_correction=True,
                     steps_per_epoch=None):
            super().__init__()
            if initial_lr is None:
                raise ValueError('Parameter `initial_lr` is required')
            self.initial_lr = initial_lr
            self.start_epoch = start_epoch
            self.end_epoch = end_epoch
            self.staircase = staircase if callable(multiplier) else True
            self.momentum_correction = momentum_correction
            self.steps_per_epoch = steps_per_epoch
            self.multiplier = multiplier if callable(multiplier) else (lambda epoch: multiplier)
            self.current_epoch = None
            self.restore_momentum = None

        @property
        def _optimizer(self):
            return _inner(self.model.optimizer)

        def _adjust(self, epoch):
            optimizer = self._optimizer
            old, new = _get(optimizer, 'learning_rate'), self.initial_lr * self.multiplier(epoch)
            _set(optimizer, 'learning_rate', new)
            momentum = getattr(optimizer, 'momentum', None)
            if self.momentum_correction and momentum is not None and old > 0 and not callable(momentum):
                self.restore_momentum = _get(optimizer, 'momentum')
                _set(optimizer, 'momentum', self.restore_momentum * new / old)

        def on_train_begin(self, logs=None):
            """Finds out how many batches an epoch has.

            Args:
                logs: Ignored.
            """
            if not self.staircase and not self.steps_per_epoch:
                steps = (self.params or {}).get('steps')
                if not steps:
                    raise ValueError('Could not autodetect the number of steps per epoch. Please specify the steps_per_epoch '
                                     'parameter to the {}().'.format(type(self).__name__))
                self.steps_per_epoch = steps

        def on_epoch_begin(self, epoch, logs=None):
            """Notes the epoch.

            Args:
                epoch: The epoch.
                logs: Ignored.
            """
            self.current_epoch = epoch

        def on_batch_begin(self, batch, logs=None):
            """Changes the learning rate when it is due.

            Args:
                batch: The batch.
                logs: Ignored.
            """
            epoch = self.current_epoch
            if epoch is None or epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
                return
            if self.staircase and batch == 0:
                self._adjust(epoch)
            elif not self.staircase:
                self._adjust(epoch + float(batch) / self.steps_per_epoch)

        def on_batch_end(self, batch, logs=None):
            """Gives the momentum its value back.

            Args:
                batch: Ignored.
                logs: Ignored.
            """
            if self.restore_momentum is not None:
                _set(self._optimizer, 'momentum', self.restore_momentum)
                self.restore_momentum = None

        def on_epoch_end(self, epoch, logs=None):
            """Adds the learning rate to the logs.

            Args:
                epoch: Ignored.
                logs: The values by name.
            """
            if logs is not None:
                logs['lr'] = _get(self._optimizer, 'learning_rate')

    class LearningRateWarmupCallback(LearningRateScheduleCallback):
        """Raises the learning rate from initial_lr / size() to initial_lr during the first epochs.

        Args:
            initial_lr: The learning rate at the end.
            warmup_epochs: How many epochs it takes.
            momentum_correction: See LearningRateScheduleCallback.
            steps_per_epoch: See LearningRateScheduleCallback.
            verbose: Whether to print a line at the end.
        """

        def __init__(self, initial_lr, warmup_epochs=5, momentum_correction=True, steps_per_epoch=None, verbose=0):
            def multiplier(epoch):
                # Reaches the final rate with the last batch, not after it.
                epoch += 1.0 / self.steps_per_epoch
                return 1.0 / size() * (epoch * (size() - 1) / warmup_epochs + 1)
            super().__init__(initial_lr, multiplier, start_epoch=0, end_epoch=warmup_epochs, staircase=False,
                             momentum_correction=momentum_correction, steps_per_epoch=steps_per_epoch)
            self.verbose = verbose

        def on_epoch_end(self, epoch, logs=None):
            """Says at the last epoch that it is done.

            Args:
                epoch: The epoch.
                logs: The values by name.
            """
            super().on_epoch_end(epoch, logs)
            if epoch == self.end_epoch - 1 and self.verbose > 0:
                print('\nEpoch {}: finished gradual learning rate warmup to {:g}.'.format(
                    epoch + 1, _get(self._optimizer, 'learning_rate')))

    return {made.__name__: made for made in (BroadcastGlobalVariablesCallback, MetricAverageCallback,
                                             LearningRateScheduleCallback, LearningRateWarmupCallback)}


def make_best_checkpoint(keras, takes_weights_only):
    """The class BestModelCheckpoint.

    Args:
        keras: The module.
        takes_weights_only: Whether it has the argument save_weights_only.

    Returns: The class.
    """

    class _Checkpoint(keras.callbacks.ModelCheckpoint):
        def __init__(self, monitor, verbose, save_weights_only, mode, save_freq):
            super().__init__(filepath='unset.weights.h5' if save_weights_only else 'unset.keras', monitor=monitor, verbose=verbose,
                             save_best_only=True, save_weights_only=save_weights_only, mode=mode, save_freq=save_freq)
            self.filepath = None  # assigned later

    if takes_weights_only:
        class BestModelCheckpoint(_Checkpoint):
            """Saves the best model so far at `filepath`, which is to be assigned.

            Args:
                monitor: The name of the value by which models are compared.
                verbose: Whether to print.
                save_weights_only: Whether only weights are saved.
                mode: 'min', 'max' or 'auto'.
                save_freq: 'epoch', or a number of batches.
            """

            def __init__(self, monitor='val_loss', verbose=0, save_weights_only=False, mode='auto', save_freq='epoch'):
                super().__init__(monitor, verbose, save_weights_only, mode, save_freq)
    else:
        class BestModelCheckpoint(_Checkpoint):
            """Saves the best model so far at `filepath`, which is to be assigned.

            Args:
                monitor: The name of the value by which models are compared.
                verbose: Whether to print.
                mode: 'min', 'max' or 'auto'.
                save_freq: 'epoch', or a number of batches.
            """

            def __init__(self, monitor='val_loss', verbose=0, mode='auto', save_freq='epoch'):
                super().__init__(monitor, verbose, False, mode, save_freq)
    return BestModelCheckpoint
