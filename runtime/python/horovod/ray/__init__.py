"""Not here yet: says so in one sentence."""

raise ModuleNotFoundError(
    'horovod.ray is not part of hvdrun yet: Ray is still to come. PyTorch, TensorFlow, Keras, JAX, MXNet and NumPy '
    'are served.', name='horovod.ray')
