from . import batchnorm as batchnorm
