"""Not here yet: says so in one sentence."""

raise ModuleNotFoundError(
    'horovod.spark is not part of hvdrun yet: Spark is still to come. PyTorch and NumPy are served, by horovod.torch '
    'and horovod.numpy.', name='horovod.spark')
