"""A rank of a world on several hosts. Its task is the first argument; needs NumPy."""

import os
import sys
import time

import numpy as np

import horovod.numpy as hvd


def floats(value, count=4):
    return np.full(count, value, dtype=np.float32)


def everything():
    """Each operation once, on the world and on a set across hosts; prints one line of results."""
    rank, size = hvd.rank(), hvd.size()
    total = size * (size + 1) / 2
    assert (hvd.allreduce(floats(rank + 1, 300_000), op=hvd.Sum) == total).all()
    assert (hvd.allreduce(floats(rank + 1), op=hvd.Average) == total / size).all()
    assert hvd.allgather(np.full((rank + 1, 2), rank)).shape == (total, 2)
    for root in range(size):
        assert (hvd.broadcast(floats(rank), root_rank=root) == root).all()
    assert list(hvd.alltoall(np.arange(size) + 10 * rank)) == [10 * r + rank for r in range(size)]
    assert hvd.reducescatter(np.ones((2 * size, 3), dtype=np.float32), op=hvd.Sum).tolist() == [[size] * 3] * 2
    hvd.barrier()
    if size > 2:
        outer, inner = hvd.add_process_set([0, size - 1]), hvd.add_process_set([0, 1])
        if rank in (0, size - 1):
            assert (hvd.allreduce(floats(rank), op=hvd.Sum, process_set=outer) == size - 1).all()
        if rank in (0, 1):
            assert (hvd.allreduce(floats(rank), op=hvd.Sum, process_set=inner) == 1).all()
        assert hvd.remove_process_set(outer)
    sentence = ''
    try:
        hvd.allreduce(floats(1, 4 + rank), name='uneven')
    except hvd.HorovodInternalError as error:
        sentence = str(error)
    assert "rank 0 has [4], rank 1 has [5]" in sentence, sentence
    if rank == 0:
        alone = hvd.allreduce(floats(3), name='without the others', op=hvd.Average)
        assert np.allclose(alone, 3 / size), alone  # ranks that have joined count as zeros
    last = hvd.join()
    assert (hvd.allreduce(floats(1), op=hvd.Sum) == size).all()
    print('everything', last, hvd.gloo_enabled(), flush=True)


def once(collective, wish=0.0):
    """One collective of the world; true when somebody had a wish, where the collective can tell."""
    size = hvd.size()
    if collective == 'allreduce':
        return hvd.allreduce(floats(wish, 200_000), name='gradient', op=hvd.Sum)[0] > 0
    if collective == 'small':
        return hvd.allreduce(floats(wish), name='gradient', op=hvd.Sum)[0] > 0
    if collective == 'allgather':
        return hvd.allgather(floats(wish, 50_000), name='gradient').any()
    if collective == 'broadcast':
        return hvd.broadcast(floats(wish, 200_000), 0, name='gradient')[0] > 0
    if collective == 'alltoall':
        return hvd.alltoall(floats(wish, 50_000 * size), name='gradient').any()
    if collective == 'reducescatter':
        return hvd.reducescatter(floats(wish, 50_000 * size), name='gradient', op=hvd.Sum)[0] > 0
    hvd.barrier()


def until_it_breaks(collective):
    """The same collective again and again; every rank says where it is, and how it came to know of the end."""
    step, last = 0, time.monotonic()
    try:
        while True:
            if step == 20:
                print('busy', hvd.rank(), os.getpid(), flush=True)
            once(collective)
            step, last = step + 1, time.monotonic()
    except hvd.HorovodInternalError as error:
        print('told after {:.1f} s: {}'.format(time.monotonic() - last, error), flush=True)
        sys.exit(3)


def until_the_file_is_there(collective, path):
    """The same collective again and again until rank 0 sees the file."""
    step = 0
    while not once(collective, 1.0 if hvd.rank() == 0 and os.path.exists(path) else 0.0):
        step += 1
        if step == 20:
            print('busy', hvd.rank(), os.getpid(), flush=True)
    print('through', flush=True)


def leave_early():
    """The last rank shuts down while the others reduce."""
    hvd.allreduce(floats(1), name='all')
    if hvd.rank() == hvd.size() - 1:
        return
    try:
        hvd.allreduce(floats(1), name='without the last')
    except hvd.HorovodInternalError as error:
        print('told:', error, flush=True)


def go_on_without_rank_0(met):
    """Rank 0 shuts down; a set of rank 1 (there) and rank 2 (elsewhere) cannot go on."""
    pair = hvd.ProcessSet([1, 2])
    hvd.shutdown()
    hvd.init(process_sets=[pair])
    if met:
        hvd.allreduce(floats(1), name='all')
    if hvd.rank() == 0:
        return
    time.sleep(0.5)  # rank 0 goes first; the other order is as good, and another test
    if pair.included():
        try:
            hvd.allreduce(floats(1), name='pair', process_set=pair)
        except hvd.HorovodInternalError as error:
            print('told:', error, flush=True)


def stay_away(absent, path):
    """One rank does not submit what all the others do. They are told; it is told at its next collective."""
    hvd.allreduce(floats(1), name='all')
    while hvd.rank() == absent and not os.path.exists(path):
        time.sleep(0.02)
    try:
        hvd.allreduce(floats(1), name='later' if hvd.rank() == absent else 'without one')
    except hvd.HorovodInternalError as error:
        print('told:', error, flush=True)
        open(path, 'w').close()


def cross_slowly(collective, megabytes):
    """One large collective, checked to the last element."""
    rank, size, count = hvd.rank(), hvd.size(), int(float(megabytes) * 1e6) // 4
    mine = np.arange(count, dtype=np.float32) % 1000 + rank
    hvd.allreduce(floats(1), name='connect')
    print('busy', rank, os.getpid(), flush=True)
    begin = time.monotonic()
    if collective == 'allreduce':
        result = hvd.allreduce(mine, name='gradient', op=hvd.Sum)
        expected = (np.arange(count, dtype=np.float32) % 1000) * size + size * (size - 1) / 2
    else:
        result = hvd.broadcast(mine, 0, name='gradient')
        expected = np.arange(count, dtype=np.float32) % 1000
    assert (result == expected).all()
    print('crossed in {:.1f} s'.format(time.monotonic() - begin), flush=True)


hvd.init(process_sets='dynamic')
what = sys.argv[1]
if what == 'everything':
    everything()
elif what == 'break':
    until_it_breaks(sys.argv[2])
elif what == 'steady':
    until_the_file_is_there(sys.argv[2], sys.argv[3])
elif what == 'slowly':
    cross_slowly(sys.argv[2], sys.argv[3])
elif what == 'without-0':
    go_on_without_rank_0(sys.argv[2] == 'met')
elif what == 'absent':
    stay_away(int(sys.argv[2]), sys.argv[3])
else:
    leave_early()
hvd.shutdown()
