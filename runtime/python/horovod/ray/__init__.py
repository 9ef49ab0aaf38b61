"""Not here yet: says so in one sentence."""

raise ModuleNotFoundError(
    'horovod.ray is not part of hvdrun yet: Ray is still to come. PyTorch and NumPy are served, by horovod.torch '
    'and horovod.numpy.', name='horovod.ray')
