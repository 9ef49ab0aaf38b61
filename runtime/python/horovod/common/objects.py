"""Any Python object from one rank to all, and from all to all: pickled, by cloudpickle where that is installed.

Bytes that are unpickled here come from a process of the same job, which had to show the job's secret to join.
"""

import ctypes
import pickle

from horovod.common import _library, _native, registered
from horovod.common.operations import process_set_id

# handle -> memory the runtime works on; memory that a wait ended by Ctrl-C leaves behind stays alive.
_in_use = {}


def _dumps(obj):
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(obj)
    return cloudpickle.dumps(obj)


def _buffer(data):
    return (ctypes.c_char * max(len(data), 1)).from_buffer_copy(data or b'\0')


def _broadcast(buffer, dtype, count, root_rank, name, process_set):
    request = _library.Request(_library.BROADCAST, 'broadcast.' + name, ((dtype, (count,)),), root_rank=root_rank,
                               process_set=process_set_id(process_set))
    address = ctypes.addressof(buffer)
    handle = request.submit(address, address)
    _in_use[handle] = buffer
    error = _library.wait(handle)
    del _in_use[handle]
    if error is not None:
        raise error


def broadcast_object(obj, root_rank, name, process_set):
    """A copy of the root's object on every rank of the set; the root gets its own back."""
    _library.lib()
    # Not the type of obj: callers give None on the other ranks, and names must be the same everywhere.
    name = 'broadcast_object' if name is None else name
    is_root = _native.query('rank') == root_rank
    data = _dumps(obj) if is_root else b''
    length = ctypes.c_int64(len(data))
    _broadcast(length, _library.INT64, 1, root_rank, name + '.sz', process_set)
    buffer = _buffer(data) if is_root else (ctypes.c_char * max(length.value, 1))()
    _broadcast(buffer, _library.UINT8, length.value, root_rank, name + '.t', process_set)
    return obj if is_root else pickle.loads(memoryview(buffer)[:length.value])


def allgather_object(obj, name, process_set):
    """A list of the objects of all ranks of the set, in order of rank."""
    _library.lib()
    name = 'allgather_object' if name is None else name
    data = _dumps(obj)
    buffer, length = _buffer(data), ctypes.c_int64(len(data))
    request = _library.Request(_library.ALLGATHER, 'allgather.' + name,
                               ((_library.UINT8, (len(data),)), (_library.INT64, (1,))),
                               process_set=process_set_id(process_set))
    handle = request.submit(ctypes.addressof(buffer), None, ctypes.addressof(length), None)
    _in_use[handle] = (buffer, length)
    outcome = _library.wait_result(handle, 2)
    del _in_use[handle]
    if outcome.error is not None:
        raise outcome.error
    (data_address, data_rows), (length_address, members) = outcome.outputs
    gathered = memoryview(registered.adopt(data_address, data_rows))
    lengths = registered.adopt(length_address, 8 * members)
    objects = []
    begin = 0
    for count in (ctypes.c_int64 * members).from_buffer(lengths):
        objects.append(pickle.loads(gathered[begin:begin + count]))
        begin += count
    return objects
