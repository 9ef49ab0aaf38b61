from typing import Any
class ndarray:
    dtype: Any
