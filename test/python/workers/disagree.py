"""Ranks disagree about one tensor: every rank gets HorovodInternalError with the name and both values."""

import torch

import horovod.torch as hvd

hvd.init()
odd = hvd.rank() == hvd.size() - 1


def expect(what, call, *words):
    try:
        call()
    except hvd.HorovodInternalError as error:
        for word in words:
            assert word in str(error), 'rank {} misses {!r} in: {}'.format(hvd.rank(), word, error)
        print('got {}: {}'.format(what, error), flush=True)
    else:
        raise SystemExit('rank {}: no error for {}'.format(hvd.rank(), what))
    # The world goes on.
    assert int(hvd.allreduce(torch.tensor([1]), op=hvd.Sum, name='after.' + what)) == hvd.size()


expect('shape', lambda: hvd.allreduce(torch.ones(17 if odd else 23), name='shape'), 'shape', '17', '23')
expect('rank', lambda: hvd.allreduce(torch.ones((4, 5) if odd else (20,)), name='dims'), 'dims', '4', '20')
expect('dtype', lambda: hvd.allreduce(torch.ones(3, dtype=torch.float64 if odd else torch.float32), name='kind'),
       'kind', '32', '64')
expect('op', lambda: hvd.allreduce(torch.ones(3), op=hvd.Sum if odd else hvd.Average, name='how'), 'how', 'Sum',
       'Average')
expect('scale', lambda: hvd.allreduce(torch.ones(3), op=hvd.Sum, prescale_factor=2.5 if odd else 1.5, name='by'),
       'by', '2.5', '1.5')
expect('gather', lambda: hvd.allgather(torch.ones((2, 5) if odd else (3, 4)), name='rows'), 'rows', '5', '4')
expect('alltoall', lambda: hvd.alltoall(torch.ones(2 * hvd.size(), 5 if odd else 4), name='cols'), 'cols', '5', '4')
expect('scatter', lambda: hvd.reducescatter(torch.ones(8 if odd else 4), name='parts'), 'parts', '8', '4')
expect('scalar', lambda: hvd.allgather(torch.tensor(1.0), name='point'), 'point')
expect('root', lambda: hvd.broadcast(torch.ones(3), root_rank=1 if odd else 0, name='from'), 'from', '1', '0')
print('ok', flush=True)
