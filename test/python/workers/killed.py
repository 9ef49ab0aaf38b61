"""The last rank is killed while it is inside an allreduce; the others write what they got to FILE.<rank>.

    killed.py FILE MODE TOKEN

MODE small, large: all ranks run allreduces; waiting: the victim waits inside one for the others; peer: the others
wait for the victim; loader: as large, with data loader processes alive.
"""

import os
import signal
import sys
import threading
import time

import torch

import horovod.torch as hvd

path, mode = sys.argv[1], sys.argv[2]
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the job may end the survivors before they have written
hvd.init()
torch.set_num_threads(1)
rank, victim = hvd.rank(), hvd.size() - 1
keep = []
if mode == 'loader':
    dataset = torch.utils.data.TensorDataset(torch.arange(1000000))
    loader = iter(torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=2))
    next(loader)
    keep.append(loader)
hvd.barrier()
if rank == victim:
    def kill():
        time.sleep(0.4)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
started = time.time()
try:
    if mode == 'waiting' and rank != victim:
        time.sleep(1.0)
    if mode == 'peer' and rank == victim:
        time.sleep(60)
    value = torch.ones(100 if mode in ('small', 'waiting', 'peer') else 4000000)
    while time.time() < started + 30:
        hvd.allreduce_(value, name='doomed')
    answer = 'no error in 30 s'
except hvd.HorovodInternalError as error:
    answer = 'HorovodInternalError: {}'.format(error)
except Exception as error:
    answer = '{}: {}'.format(type(error).__name__, error)
again = 'nothing'
try:
    hvd.allreduce(torch.ones(2), name='later')
except Exception as error:
    again = type(error).__name__
with open('{}.{}.part'.format(path, rank), 'w') as file:
    file.write('{:.3f}\n{}\n{}\n'.format(time.time() - started - 0.4, answer, again))
os.rename(file.name, file.name[:-len('.part')])
os._exit(1)
