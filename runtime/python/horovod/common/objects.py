"""Any Python object from one rank to all, and from all to all: pickled, with cloudpickle if it is installed.

Bytes that are unpickled here come from a process of the same job, which had to show the job's secret to join.
"""

import ctypes
import pickle

from horovod.common import _library, _native, registered
from horovod.common.operations import process_set_id

# handle -> memory in use by the runtime; memory of a wait ended by Ctrl-C stays alive.
_in_use = {}


class _NotPickled:
    """Sent in place of an object that cannot be pickled, so that all ranks raise."""

    def __init__(self, sentence):
        self.sentence = sentence


def _dumps(obj):
    """(bytes, None), or (bytes of a _NotPickled, the error that this rank met)."""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    try:
        return pickler.dumps(obj), None
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        cure = '' if pickler is not pickle else (
            '; lambdas, local functions and local classes need cloudpickle, which is not installed (pip install cloudpickle)')
        sentence = 'rank {} cannot pickle a {}: {}{}'.format(_native.query('rank'), type(obj).__name__, error, cure)
        return pickle.dumps(_NotPickled(sentence)), error


def _loads(data, operation):
    obj = pickle.loads(data)
    if type(obj) is _NotPickled:
        raise ValueError('hvd.{}: {}.'.format(operation, obj.sentence))
    return obj


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
    # Not by the type of obj: callers pass None on the other ranks, and names must be the same everywhere.
    name = 'broadcast_object' if name is None else name
    is_root = _native.query('rank') == root_rank
    data, failure = _dumps(obj) if is_root else (b'', None)
    length = ctypes.c_int64(len(data))
    _broadcast(length, _library.INT64, 1, root_rank, name + '.sz', process_set)
    buffer = _buffer(data) if is_root else (ctypes.c_char * max(length.value, 1))()
    _broadcast(buffer, _library.UINT8, length.value, root_rank, name + '.t', process_set)
    if is_root and failure is None:
        return obj
    return _loads(memoryview(buffer)[:length.value], 'broadcast_object')


def allgather_object(obj, name, process_set):
    """A list of the objects of all ranks of the set, in order of rank."""
    _library.lib()
    name = 'allgather_object' if name is None else name
    data, _ = _dumps(obj)
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
        objects.append(_loads(gathered[begin:begin + count], 'allgather_object'))
        begin += count
    return objects
