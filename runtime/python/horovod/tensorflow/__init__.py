"""Not here yet: says so in one sentence."""

raise ModuleNotFoundError(
    'horovod.tensorflow is not part of hvdrun yet: TensorFlow is still to come. PyTorch and NumPy are served, by horovod.torch '
    'and horovod.numpy.', name='horovod.tensorflow')
