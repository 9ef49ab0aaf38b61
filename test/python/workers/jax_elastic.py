"""Rank 1 dies in the middle of a step; rank 0 goes back to its commit, goes on alone, and lets the new rank 1 in.

    jax_elastic.py FILE     FILE says that it has died
"""

import os
import signal
import sys
import time

import horovod.jax as hvd
import jax
import jax.numpy as jnp

hvd.init()
step = jax.jit(lambda w: w + hvd.allreduce(jnp.ones(3)), donate_argnums=0)


@hvd.elastic.run
def train(state):
    while state.epoch < 6:
        if state.epoch == 3 and hvd.rank() == 1 and not os.path.exists(sys.argv[1]):
            with open(sys.argv[1], 'w'):
                os.kill(os.getpid(), signal.SIGKILL)
        if state.epoch == 5 and hvd.size() == 1:
            time.sleep(0.01)  # until the new one is there
        else:
            state.w = step(state.w)
            state.epoch += 1
        state.commit()
    return state.w


w = train(hvd.elastic.JaxState(w=jnp.zeros(3), epoch=0))
assert w.tolist() == [6, 6, 6], w
print('ok', hvd.rank(), hvd.size())
