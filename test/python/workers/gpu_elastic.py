"""A rank is killed in the middle of collectives on GPUs; the others go on in a world without it, and say how soon.

    gpu_elastic.py FOLDER
"""

import os
import signal
import sys
import threading
import time

import torch

import horovod.torch as hvd

folder = sys.argv[1]
hvd.init()
cuda = torch.cuda.is_available()
device = torch.device('cuda', hvd.local_rank() % torch.cuda.device_count()) if cuda else torch.device('cpu')
model = torch.nn.Linear(8, 8).to(device)
state = hvd.elastic.TorchState(model=model, step=0, deaths=0)
died = os.path.join(folder, 'died')
here = []  # the sizes of the worlds in which this process has trained


def die_soon():
    time.sleep(0.01)
    with open(died + '.part', 'w') as file:
        file.write(repr(time.time()))
    os.rename(file.name, died)
    os.kill(os.getpid(), signal.SIGKILL)


@hvd.elastic.run
def train(state):
    result = hvd.allreduce(torch.ones(5, device=device), op=hvd.Sum, name='first')
    assert result.tolist() == [hvd.size()] * 5
    went_on = os.path.join(folder, 'went_on.{}'.format(os.getpid()))
    if os.path.exists(died) and here and not os.path.exists(went_on):
        with open(died) as file, open(went_on, 'w') as out:
            out.write('{:.3f}'.format(time.time() - float(file.read())))
    here.append(hvd.size())
    while state.step < 120:
        for size in (3, 300, 100000):
            result = hvd.allreduce(torch.full((size,), 1.0, device=device), op=hvd.Sum, name='x{}'.format(size))
            if not (result == hvd.size()).all():
                # The world broke while the GPU was at work on it: the next call says so.
                hvd.allreduce(torch.ones(1, device=device), name='x3')
                raise AssertionError('a wrong result, and no error')
        state.step += 1
        if state.step == 20 and hvd.rank() == hvd.size() - 1 and not os.path.exists(died):
            threading.Thread(target=die_soon, daemon=True).start()
        if state.step % 5 == 0:
            state.commit()


train(state)
print('ok', flush=True)
