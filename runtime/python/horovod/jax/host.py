"""A collective on arrays in the memory of the host, at once: outside of compiled programs, and where those call Python."""

import collections

from horovod.common import _library
from horovod.numpy import mpi_ops as _numpy_ops

_operations = _numpy_ops._operations

# One collective, for JAX a static argument. name None: unnamed.
Call = collections.namedtuple('Call', 'collective name op root_rank process_set prescale postscale is_group')

NAMES = {_library.ALLREDUCE: 'allreduce', _library.ALLGATHER: 'allgather', _library.BROADCAST: 'broadcast',
         _library.ALLTOALL: 'alltoall', _library.REDUCESCATTER: 'reducescatter', _library.BARRIER: 'barrier'}

_SIGNED = {'uint32': 'int32', 'uint64': 'int64'}


class _Set:
    """A process set as operations want it."""

    def __init__(self, number):
        self.process_set_id = number


def full_name(call):
    """The name of a call inside of a program. There all have one, since programs run beside the script, and what has no name is
    counted in the order of the calls; they run one after the other, so they may all have the same."""
    return '{}{}.{}'.format('grouped_' if call.is_group else '', NAMES[call.collective], _name(call, True))


def _name(call, is_in_program):
    return 'jit' if call.name is None and is_in_program else call.name


def run(call, arrays, is_in_program=False, splits=None):
    """The results, a list of numpy arrays; with splits the pair of alltoall."""
    dtypes = [array.dtype for array in arrays]
    arrays = [array.view(_SIGNED[array.dtype.name]) if array.dtype.name in _SIGNED else array for array in arrays]
    name, process_set, operations = _name(call, is_in_program), _Set(call.process_set), _operations
    if call.collective == _library.BARRIER:
        _barrier(None if name is None else full_name(call), call.process_set)
        return []
    if call.collective == _library.ALLREDUCE:
        arguments = (name, call.op, call.prescale, call.postscale, process_set)
        results = (operations.synchronize(operations.grouped_allreduce_async(arrays, False, *arguments)) if call.is_group
                   else [operations.allreduce(arrays[0], False, *arguments)])
    elif call.collective == _library.BROADCAST:
        results = [operations.broadcast(arrays[0], False, call.root_rank, name, process_set)]
    elif call.collective == _library.ALLGATHER:
        results = _wait(call, operations.grouped_allgather_async(arrays, name, process_set) if call.is_group
                        else operations.allgather_async(arrays[0], name, process_set))
    elif call.collective == _library.REDUCESCATTER:
        arguments = (name, call.op, call.prescale, call.postscale, process_set)
        results = _wait(call, operations.grouped_reducescatter_async(arrays, *arguments) if call.is_group
                        else operations.reducescatter_async(arrays[0], *arguments))
    else:
        received, received_splits = operations.synchronize(
            operations.alltoall_async(arrays[0], splits, name, process_set))
        received = received.view(dtypes[0])
        return [received] if splits is None else [received, received_splits]
    return [result.view(dtype) for result, dtype in zip(results, dtypes)]


def _wait(call, handle):
    results = _operations.synchronize(handle)
    return results if call.is_group else [results]


def _barrier(name, process_set):
    error = _library.wait(_library.Request(_library.BARRIER, name, (), process_set=process_set).submit())
    if error is not None:
        raise error
