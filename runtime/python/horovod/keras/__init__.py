"""Not here yet: says so in one sentence."""

raise ModuleNotFoundError(
    'horovod.keras is not part of hvdrun yet: Keras is still to come. PyTorch and NumPy are served, by horovod.torch '
    'and horovod.numpy.', name='horovod.keras')
