from typing import Any, Sequence, Union
from numpy import ndarray
ArrayLike = Union[ndarray, Sequence[Any], float]
DTypeLike = Any
