"""Training whose right result is known at every step: each one adds exactly 1 to the only weight, in a world of any size.

    elastic_training.py FOLDER [OPTION ...]

It ends once FOLDER/finish exists. Options: sets (process sets given to init), thread (a collective of one rank alone in
another thread), stop (hvd.elastic.on_stop), update (FOLDER/update makes rank 0 tell of an update), pause (each rank stops itself
before its next commit once FOLDER/pause exists, and slot 0 as soon as it trains in a world while FOLDER/hang exists),
host (each says on which host it trains), buckets (gradients are views of buckets).
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import time

import torch

import horovod.torch as hvd
from horovod.common.elastic import HostUpdateResult

folder, options = sys.argv[1], sys.argv[2:]
slot = os.environ['HVD_SLOT']
started_as = os.environ['HOROVOD_RANK']
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p


def say(text, *values):
    print('slot {} {}'.format(slot, text.format(*values)), flush=True)


def there(name):
    return os.path.exists(os.path.join(folder, name))


pair, tail = hvd.ProcessSet([0, 1]), hvd.ProcessSet([2])
late = hvd.ProcessSet([1, 2])
hvd.init(process_sets=[pair, tail, late] if 'sets' in options else None)
torch.manual_seed(int(slot))
model = torch.nn.Linear(1, 1, bias=False)
if hvd.rank() == 0:
    with torch.no_grad():
        model.weight.zero_()
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), named_parameters=model.named_parameters(),
                                     gradient_as_bucket_view='buckets' in options)
late_weight = torch.nn.Parameter(torch.ones(1))
if 'sets' in options:
    late_optimizer = hvd.DistributedOptimizer(torch.optim.SGD([late_weight], lr=1.0), process_set=late)
sampler = hvd.elastic.ElasticSampler(list(range(1000)), shuffle=False)
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, step=0)
state.register_reset_callbacks([lambda: say('reset to rank {} of {}', hvd.rank(), hvd.size())])
syncs = []
real_sync = state.sync
state.sync = lambda: (syncs.append(1), real_sync())
done = set()
pause = False

if 'stop' in options:
    @hvd.elastic.on_stop
    def save():
        # Collectives work here, and all ranks are at the same step.
        steps = hvd.allgather_object(state.step)
        say('stops at step {} of {} with grace {} pid {}', state.step, steps, hvd.elastic.stop_grace(), os.getpid())


def alone():
    try:
        hvd.allreduce(torch.ones(1), name='alone')
    except hvd.HorovodInternalError as error:
        say('thread failed: {}', error)


def check_sets():
    members = [rank for rank in (0, 1) if rank < hvd.size()]
    assert pair.ranks == members and pair.size() == len(members), (pair, hvd.size())
    if pair.included():
        assert float(hvd.allreduce(torch.ones(1), op=hvd.Sum, name='pair', process_set=pair)) == len(members)
    members = [rank for rank in (1, 2) if rank < hvd.size()]
    late_weight.grad = None
    (late_weight * hvd.rank()).sum().backward()
    late_optimizer.step()
    expected = sum(members) / len(members) if hvd.rank() in members else hvd.rank()
    assert float(late_weight.grad) == expected, (late_weight.grad, members)
    assert (tail.process_set_id is None) == (hvd.size() < 3) and tail.included() == (hvd.rank() == 2), tail


def check_environment():
    assert os.environ['HOROVOD_RANK'] == started_as
    for name, value in (('RANK', hvd.rank()), ('SIZE', hvd.size()), ('LOCAL_RANK', hvd.local_rank()),
                        ('LOCAL_SIZE', hvd.local_size()), ('CROSS_RANK', hvd.cross_rank()),
                        ('CROSS_SIZE', hvd.cross_size())):
        assert libc.getenv(('HOROVOD_' + name).encode()) == str(value).encode(), name


@hvd.elastic.run
def train(state):
    global pause
    say('trains as rank {} of {} from step {} after {} syncs pid {}', hvd.rank(), hvd.size(), state.step, len(syncs),
        os.getpid())
    if 'host' in options:
        say('is one of {} on {} pid {}', hvd.size(), socket.gethostname(), os.getpid())
    check_environment()
    if 'sets' in options:
        check_sets()
    if 'thread' in options and hvd.size() > 1 and hvd.rank() == 0:
        threading.Thread(target=alone, daemon=True).start()
    if 'pause' in options and slot == '0' and there('hang'):
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        before = float(state.model.weight)
        assert before == state.step, (before, state.step)
        # Every rank has the same share of the data, and a processed sample does not come again.
        assert state.sampler.num_replicas == hvd.size() and state.sampler.processed_num >= 0
        if hvd.rank() == 0 and hvd.size() > 1:
            time.sleep(0.01)  # in which the others wait in the collective: a rank that is killed is in the midst of one
        state.optimizer.zero_grad()
        (-state.model(torch.ones(1, 1))).sum().backward()
        state.optimizer.step()
        if state.step in done:
            say('repeats step {}', state.step)
        done.add(state.step)
        state.step += 1
        if 'update' in options and hvd.rank() == 0 and there('update') and hvd.size() > 1:
            os.remove(os.path.join(folder, 'update'))
            state.on_hosts_updated(1, HostUpdateResult.added)
        if pause:
            pause = False
            say('is stopped before its commit')
            os.kill(os.getpid(), signal.SIGSTOP)
        state.commit()
        wishes = torch.tensor([there('finish'), 'pause' in options and there('pause')], dtype=torch.int32)
        finish, pause = hvd.allreduce(wishes, op=hvd.Max, name='wishes').tolist()
        if finish:
            return state.step


steps = train(state)
say('finished after step {} as rank {} of {}', steps, hvd.rank(), hvd.size())
