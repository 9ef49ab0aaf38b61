"""The elastic callbacks of horovod.keras and horovod.tensorflow.keras, made for a module of Keras."""


def make(keras):
    """The classes.

    Args:
        keras: The module.

    Returns: A dictionary by name.
    """

    class CommitStateCallback(keras.callbacks.Callback):
        """Commits the state after batches and epochs.

        Args:
            state: The state.
            batches_per_commit: After how many batches.
        """

        def __init__(self, state, batches_per_commit=1):
            super().__init__()
            self.state = state
            self.batches_per_commit = batches_per_commit
            self.batches_remaining = batches_per_commit

        def on_train_begin(self, logs=None):
            """Restarts the count.

            Args:
                logs: Ignored.
            """
            self.batches_remaining = self.batches_per_commit

        def on_batch_end(self, batch, logs=None):
            """Commits when it is due.

            Args:
                batch: Ignored.
                logs: Ignored.
            """
            self.batches_remaining -= 1
            if self.batches_remaining == 0:
                self.state.commit()
                self.batches_remaining = self.batches_per_commit

        def on_epoch_end(self, epoch, logs=None):
            """Commits.

            Args:
                epoch: Ignored.
                logs: Ignored.
            """
            self.state.commit()

    class UpdateBatchStateCallback(keras.callbacks.Callback):
        """Keeps state.batch up to date; the first epoch after a restart has the batches that are left.

        Args:
            state: The state, which has `batch`.
        """

        def __init__(self, state):
            super().__init__()
            self.state = state
            self.steps_per_epoch = None

        def on_train_begin(self, logs=None):
            """Notes how many batches an epoch has.

            Args:
                logs: Ignored.
            """
            self.steps_per_epoch = None

        def on_epoch_begin(self, epoch, logs=None):
            """Shortens an epoch that was begun before.

            Args:
                epoch: Ignored.
                logs: Ignored.
            """
            if self.params.get('steps'):
                if self.steps_per_epoch is None:
                    self.steps_per_epoch = self.params['steps']
                self.params['steps'] = self.steps_per_epoch - self.state.batch

        def on_batch_end(self, batch, logs=None):
            """Notes the batch.

            Args:
                batch: The batch.
                logs: Ignored.
            """
            self.state.batch = batch

        def on_epoch_end(self, epoch, logs=None):
            """Restarts the count.

            Args:
                epoch: Ignored.
                logs: Ignored.
            """
            self.state.batch = 0

    class UpdateEpochStateCallback(keras.callbacks.Callback):
        """Keeps state.epoch up to date, also over several calls of fit().

        Args:
            state: The state, which has `epoch`.
        """

        def __init__(self, state):
            super().__init__()
            self.state = state
            self.initial_epoch = state.epoch

        def on_train_begin(self, logs=None):
            """Notes where this fit() begins.

            Args:
                logs: Ignored.
            """
            self.initial_epoch = self.state.epoch

        def on_epoch_end(self, epoch, logs=None):
            """Notes the epoch.

            Args:
                epoch: The epoch.
                logs: Ignored.
            """
            self.state.epoch = self.initial_epoch + epoch + 1

    return {made.__name__: made for made in (CommitStateCallback, UpdateBatchStateCallback, UpdateEpochStateCallback)}
