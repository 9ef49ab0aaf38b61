"""Commits of which hvdrun keeps some: the state's data says at which step it was made.

    kept_worker.py FOLDER [KIB]

Ends once FOLDER/finish exists. Each state holds KIB KiB of data.
"""

import os
import sys
import time

from horovod.common import basics, elastic, objects
from horovod.common.process_sets import global_process_set

folder, length = sys.argv[1], 1024 * int((sys.argv[2:] or ["1"])[0])
world = basics.shared()
world.init()
state = elastic.ObjectState(
    bcast_object=lambda value, *unused, **more: objects.broadcast_object(value, 0, "state", global_process_set),
    get_rank=world.rank, step=0, data=bytearray(length))


def say(text, *values):
    print(text.format(*values), flush=True)


def train(state):
    say("on {} rank {} of {} pid {} begins at step {}", os.environ["HOROVOD_HOSTNAME"], world.rank(), world.size(), os.getpid(), state.step)
    while True:
        assert state.data == bytearray([state.step % 251]) * length, (state.step, state.data[:1])
        finish = any(objects.allgather_object(os.path.exists(os.path.join(folder, "finish")), "finish", global_process_set))
        if finish:
            return state.step
        state.step += 1
        state.data = bytearray([state.step % 251]) * length
        state.commit()
        say("pid {} has committed step {}", os.getpid(), state.step)
        time.sleep(0.01)


say("finished after step {}", elastic.run_fn(train, elastic.reset_world)(state))
