"""Parameters and Python objects from one rank to all."""

from __future__ import annotations

import types

import mxnet as mx

from horovod.common import objects
from horovod.common.process_sets import global_process_set
from horovod.mxnet.mpi_ops import broadcast_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None) -> Any:
    """Broadcasts a Python object from one rank to all.

    Args:
        obj: Anything that can be pickled; ignored on the other ranks.
        root_rank: The rank whose object is sent.
        name: Matches the calls of the ranks.

    Returns: The object of the root, on other ranks a copy.
    """
    return objects.broadcast_object(obj, root_rank, name, global_process_set)


def allgather_object(obj: Any, name: Optional[str] = None) -> List[Any]:
    """Gathers the Python objects of all ranks on every rank.

    Args:
        obj: Anything that can be pickled.
        name: Matches the calls of the ranks.

    Returns: A list, in order of rank.
    """
    return objects.allgather_object(obj, name, global_process_set)


def _broadcast_parameter(parameter, root_rank, name):
    first, *others = parameter.list_data()
    broadcast_(first, root_rank, name)
    for other in others:
        first.copyto(other)


def _broadcast_when_initialized(parameter, root_rank, name):
    """gluon knows the shape of some parameters at the first batch alone, and calls this then, on all ranks in one order."""
    initialize = parameter._init_impl

    def initialize_and_broadcast(self, *args, **kwargs):
        initialize(*args, **kwargs)
        self._init_impl = initialize
        _broadcast_parameter(self, root_rank, name)

    parameter._init_impl = types.MethodType(initialize_and_broadcast, parameter)


def broadcast_parameters(params: Any, root_rank: int = 0, prefix: Optional[str] = None) -> None:
    """Broadcasts the parameters of one rank to all, in place.

    Parameters of gluon whose shape is not known yet are broadcast as soon as they are initialized.

    Args:
        params: A dict of arrays, or what net.collect_params() returns.
        root_rank: The rank whose parameters are sent.
        prefix: Prefix of the collectives' names, if there are several such dicts.

    Raises:
        ValueError: params is of another type.
        HorovodInternalError: The ranks have different parameters, or a rank left or died.
    """
    if not isinstance(params, (dict, mx.gluon.parameter.ParameterDict)):
        raise ValueError('invalid params of type: {}'.format(type(params)))
    for key, value in sorted(params.items()):
        name = '{}{}'.format(prefix or '', key)
        if isinstance(value, mx.nd.NDArray):
            broadcast_(value, root_rank, name)
            continue
        try:
            value.data()
        except mx.gluon.parameter.DeferredInitializationError:
            _broadcast_when_initialized(value, root_rank, name)
        else:
            _broadcast_parameter(value, root_rank, name)
