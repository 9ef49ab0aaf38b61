"""An elastic job whose right result is known at every step: each adds exactly 1 to a weight, in a world of any size. It needs no PyTorch,
which a rank computes longer to import than most tests of hvdrun take; test/python/workers/elastic_training.py says the same words
with it.

    elastic_worker.py FOLDER [OPTION ...]

It ends once FOLDER/finish exists. Options: stop (on_stop of horovod.common.elastic), host (each rank says on which host it is).
"""

import os
import socket
import sys
import time

import numpy

import horovod.numpy as hvd
from horovod.common import elastic

folder, options = sys.argv[1], sys.argv[2:]
slot = os.environ["HVD_SLOT"]


def say(text, *values):
    print("slot {} {}".format(slot, text.format(*values)), flush=True)


hvd.init()
state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, weight=0.0, step=0)
state.register_reset_callbacks([lambda: say("reset to rank {} of {}", hvd.rank(), hvd.size())])
syncs = []
real_sync = state.sync
state.sync = lambda: (syncs.append(1), real_sync())
done = set()

if "stop" in options:
    @elastic.on_stop
    def save():
        # Collectives work here, and all ranks are at the same step.
        steps = hvd.allgather_object(state.step)
        say("stops at step {} of {} with grace {} pid {}", state.step, steps, elastic.stop_grace(), os.getpid())


def train(state):
    say("trains as rank {} of {} from step {} after {} syncs pid {}", hvd.rank(), hvd.size(), state.step, len(syncs), os.getpid())
    if "host" in options:
        say("is one of {} on {} pid {}", hvd.size(), socket.gethostname(), os.getpid())
    while True:
        assert state.weight == state.step, (state.weight, state.step)
        if hvd.rank() == 0 and hvd.size() > 1:
            time.sleep(0.01)  # in which the others wait in the collective: a rank that is killed is in the midst of one
        state.weight += float(hvd.allreduce(numpy.ones(1), name="gradient")[0])
        if state.step in done:
            say("repeats step {}", state.step)
        done.add(state.step)
        state.step += 1
        state.commit()
        if hvd.allreduce(numpy.array([os.path.exists(os.path.join(folder, "finish"))], "int32"), op=hvd.Max, name="finish")[0]:
            return state.step


steps = elastic.run_fn(train, elastic.reset_world)(state)
say("finished after step {} as rank {} of {}", steps, hvd.rank(), hvd.size())
