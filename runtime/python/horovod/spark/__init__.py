"""Not here yet: says so in one sentence."""

raise ModuleNotFoundError(
    'horovod.spark is not part of hvdrun yet: Spark is still to come. PyTorch, TensorFlow, Keras, JAX, MXNet and NumPy '
    'are served.', name='horovod.spark')
