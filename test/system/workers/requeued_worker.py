"""A training of many steps that goes on from its checkpoint on disk when it is started again.

usage: requeued_worker.py CHECKPOINT   the first run trains until it is asked to stop, the next one trains some steps more
"""

import os
import sys
import time

import horovod.torch as hvd
import torch

checkpoint = sys.argv[1]
first = 0
if os.path.exists(checkpoint):
    with open(checkpoint) as file:
        first = int(file.read())
last = first + 20 if first else sys.maxsize
hvd.init()
state = hvd.elastic.TorchState(model=torch.nn.Linear(2, 2), step=first)


@hvd.elastic.on_stop
def save():
    if hvd.rank() == 0:
        with open(checkpoint, "w") as file:
            file.write(str(state.step))


@hvd.elastic.run
def train(state):
    os.write(1, b"trains from step %d\n" % state.step)
    while state.step < last:
        state.step += 1
        time.sleep(0.02)
        state.commit()


train(state)
os.write(1, b"done\n")
