"""Process sets that come and go while others run."""

import torch

import horovod.torch as hvd

hvd.init(process_sets='dynamic')
size, rank = hvd.size(), hvd.rank()
x = torch.full((2,), float(rank))


def expect(kind, call, *words):
    try:
        call()
    except kind as error:
        assert '\n' not in str(error), error
        for word in words:
            assert word in str(error), (word, error)
    else:
        raise SystemExit('rank {}: this was accepted'.format(rank))


for round_ in range(5):
    head = hvd.add_process_set([0, 1] if size > 2 else [0])
    single = hvd.add_process_set(hvd.ProcessSet([size - 1]))
    if size > 2:
        assert (head.process_set_id, single.process_set_id) == (1, 2), (head, single)
        expect(ValueError, lambda: hvd.add_process_set([1, 0]))
        if head.included():
            assert (hvd.allreduce(x, op=hvd.Sum, process_set=head) == 1.0).all()
    if single.included():
        assert (hvd.allreduce(x, op=hvd.Sum, process_set=single) == rank).all()
    if size > 2:
        # Ids are used again, while something is in flight elsewhere.
        handle = hvd.allreduce_async(x, op=hvd.Sum, name='beside')
        assert hvd.remove_process_set(head) is True
        assert head.process_set_id is None and hvd.remove_process_set(head) is False
        tail = hvd.add_process_set([0, size - 1])  # rank 0 has used the id for other unnamed ones already
        if tail.included():
            assert (hvd.allreduce(x, op=hvd.Sum, process_set=tail) == size - 1).all()
        assert tail.process_set_id == 1, tail
        assert (hvd.synchronize(handle) == size * (size - 1) / 2).all()
        assert hvd.remove_process_set(tail) is True
    else:
        assert hvd.remove_process_set(head) is True
    assert hvd.remove_process_set(single) is True
    assert hvd.mpi_ops._basics._get_process_set_ids_and_ranks() == {0: list(range(size))}

# Bad sets: an exception, and the world goes on.
expect(ValueError, lambda: hvd.add_process_set([0, 0]), 'twice')
expect(ValueError, lambda: hvd.add_process_set([0, size + 90]), str(size + 90))
expect(ValueError, lambda: hvd.add_process_set([-1]), '-1')
expect(ValueError, lambda: hvd.add_process_set(list(range(size))))
expect(ValueError, lambda: hvd.allreduce(x, process_set=hvd.ProcessSet([0])), 'not registered')
gone = hvd.add_process_set([0]) if size > 1 else None
if gone is not None:
    stale = hvd.mpi_ops._basics, gone.process_set_id
    hvd.remove_process_set(gone)
    expect(ValueError, lambda: stale[0]._process_set_size(stale[1]))
    expect(ValueError, lambda: stale[0]._process_set_rank(stale[1]))
if size > 2:
    # Ranks that ask for different sets: all hear of it.
    expect(hvd.HorovodInternalError, lambda: hvd.add_process_set([0, 1] if rank else [0, 2]))
assert (hvd.allreduce(torch.ones(1), op=hvd.Sum) == size).all()
print('ok', flush=True)
