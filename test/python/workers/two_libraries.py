"""torch and NumPy in one process: one world, one count of names, one set of handles."""

import numpy as np
import torch

import horovod.numpy as hvd_numpy
import horovod.torch as hvd

hvd.init()
hvd_numpy.init()
size, rank = hvd.size(), hvd.rank()
assert (hvd_numpy.rank(), hvd_numpy.size()) == (rank, size)
assert hvd_numpy.global_process_set is hvd.global_process_set

# Unnamed calls of both, in flight together, in the same order on all ranks.
handles = []
for i in range(50):
    if i % 3:
        handles.append((hvd, hvd.allreduce_async(torch.full((4,), float(i + rank)), op=hvd.Sum)))
    else:
        handles.append((hvd_numpy, hvd_numpy.allreduce_async(np.full(4, float(i + rank)), op=hvd_numpy.Sum)))
assert len({handle for _, handle in handles}) == 50
for i, (library, handle) in reversed(list(enumerate(handles))):
    assert library.synchronize(handle)[0] == size * i + size * (size - 1) / 2

# One name is in flight once, whoever uses it.
if rank == 0:
    first = hvd.allreduce_async(torch.ones(2), op=hvd.Sum, name='shared')
    try:
        hvd_numpy.allreduce_async(np.ones(2), op=hvd_numpy.Sum, name='shared')
        raise SystemExit('a name was accepted twice')
    except ValueError as error:
        assert 'shared' in str(error)
    hvd.broadcast_object('go')  # from here on the others bring theirs
    assert (hvd.synchronize(first) == size).all()
else:  # and the others may bring it from the other library
    hvd.broadcast_object(None)
    assert (hvd_numpy.allreduce(np.ones(2, np.float32), op=hvd_numpy.Sum, name='shared') == size).all()

# NumPy's own forms.
value = np.arange(6, dtype=np.int32).reshape(2, 3)
assert np.array_equal(hvd_numpy.allreduce(value.T, op=hvd_numpy.Sum), value.T * size)
own = value.copy()
assert hvd_numpy.allreduce_(own, op=hvd_numpy.Sum) is own and np.array_equal(own, value * size)
assert hvd_numpy.allreduce(float(rank), op=hvd_numpy.Max) == size - 1
assert hvd_numpy.broadcast([rank, 7], size - 1).tolist() == [size - 1, 7]
own = np.full(3, rank)
assert hvd_numpy.broadcast_(own, 1) is own and own.tolist() == [1, 1, 1]
assert hvd_numpy.allgather(np.full((rank, 2), rank)).tolist() == [[r, r] for r in range(size) for _ in range(r)]
one, two = hvd_numpy.grouped_allgather([[rank], [[True, False]]])
assert one.tolist() == list(range(size)) and two.shape == (size, 2) and two.dtype == np.bool_
got, splits = hvd_numpy.alltoall(np.arange(size * (size + 1) // 2), splits=np.arange(1, size + 1))
assert splits.tolist() == [rank + 1] * size and got.tolist() == list(range(rank * (rank + 1) // 2, (rank + 1) * (
    rank + 2) // 2)) * size
assert hvd_numpy.alltoall([rank] * size).tolist() == list(range(size))
assert hvd_numpy.reducescatter(np.arange(float(size)), op=hvd_numpy.Sum).tolist() == [rank * size]
results = hvd_numpy.grouped_reducescatter([np.ones(size + 1), np.ones((size, 2))])
assert results[0].shape == (2 if rank == 0 else 1,) and results[1].shape == (1, 2)
tensors = [np.ones(2), np.ones(3, np.float16)]
assert hvd_numpy.grouped_allreduce_(tensors, op=hvd_numpy.Sum)[1] is tensors[1] and (tensors[1] == size).all()
assert [t.tolist() for t in hvd_numpy.grouped_allreduce([[1.0], [2.0]])] == [[1.0], [2.0]]
assert hvd_numpy.broadcast_object({'rank': rank}, root_rank=1) == {'rank': 1}
assert hvd_numpy.allgather_object('x' * rank) == ['x' * r for r in range(size)]
for bad in (lambda: hvd_numpy.allreduce_(value.T), lambda: hvd_numpy.allreduce_([1.0]),
            lambda: hvd_numpy.allreduce(np.array(['a'])), lambda: hvd_numpy.allreduce(np.ones(2, '>f8')),
            lambda: hvd_numpy.allreduce(np.ones(2), op=9), lambda: hvd_numpy.alltoall(np.ones(size), splits=['a']),
            lambda: hvd_numpy.alltoall(np.ones(size), splits=np.ones(size))):
    try:
        bad()
        raise SystemExit('this was accepted')
    except ValueError as error:
        assert '\n' not in str(error)
assert hvd_numpy.join() in range(size)
assert not hvd_numpy.mpi_ops._handle_map and not hvd.mpi_ops._handle_map
print('ok', flush=True)
