"""Not here yet: says so in one sentence."""

raise ModuleNotFoundError(
    'horovod.mxnet is not part of hvdrun yet: MXNet is still to come. PyTorch and NumPy are served, by horovod.torch '
    'and horovod.numpy.', name='horovod.mxnet')
