"""The Keras that a script means by `import keras`: Keras 3, or Keras 2 where TF_USE_LEGACY_KERAS=1 says so."""

import os

try:
    if os.environ.get('TF_USE_LEGACY_KERAS', '').lower() in ('1', 'true'):
        import tf_keras as keras
    else:
        import keras
except ImportError as _error:
    raise ImportError('horovod.keras needs Keras, which cannot be imported: {}'.format(_error)) from _error

__all__ = ['keras']
