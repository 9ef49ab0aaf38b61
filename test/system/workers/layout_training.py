"""Training whose last bits depend on the layout of the world: how many ranks there are on which hosts, in which order.

    layout_training.py storm FOLDER     an elastic job; it ends once FOLDER/finish exists
    layout_training.py repeat FOLDER    a job of fixed size that repeats FOLDER/schedule on process sets

Each rank of a storm writes what it does into FOLDER/log/HOST.PID:

    begin GENERATION RANK SIZE HOST STEP     a world begins
    take STEP GENERATION INDEX ...           it is about to add its samples to the gradient
    done STEP GENERATION LOSS DIGEST         the step is made: the bits of the loss, a checksum of the weights

A schedule has lines of STEPS COUNT ...: so many steps in a world with so many ranks on each of its hosts. The repetition
says `repeated STEP LOSS DIGEST` for each. Needs NumPy.
"""

import functools
import math
import os
import random
import socket
import sys
import time
import zlib

import numpy as np

import horovod.numpy as hvd
from horovod.common import _native, elastic

SAMPLES, FEATURES = 90, 257
BATCH = 2  # of a rank
RATE, MOMENTUM = np.float32(1e-3), np.float32(0.9)

folder = sys.argv[2]
source = np.random.RandomState(7)
inputs = source.standard_normal((SAMPLES, FEATURES)).astype(np.float32)
labels = source.standard_normal(SAMPLES).astype(np.float32)


def order_of(epoch):
    order = list(range(SAMPLES))
    random.Random(epoch).shuffle(order)
    return order


def share(rank, size, epoch, processed):
    """The samples of a rank in its next step; the last ones of an epoch are filled up with the first of the rest."""
    rest = order_of(epoch)[processed:]
    block = rest[:BATCH * size]
    block += [rest[i % len(rest)] for i in range(-len(block) % size)]
    return block[rank::size], len(block)


def gradient_of(weights, samples):
    """The gradient and the error, each added up in one order only."""
    gradient, loss = np.zeros_like(weights), np.float32(0)
    for sample in samples:
        miss = np.float32(math.fsum((inputs[sample] * weights).tolist())) - labels[sample]
        gradient += miss * inputs[sample]
        loss += miss * miss
    return gradient, loss


def advance(values, samples, count, process_set):
    """A step of stochastic gradient descent; returns the loss over all ranks."""
    gradient, loss = gradient_of(values.weights, samples)
    gradient = hvd.allreduce(gradient, name='gradient', op=hvd.Average, process_set=process_set)
    loss = hvd.allreduce(np.array([loss], dtype=np.float32), name='loss', op=hvd.Sum, process_set=process_set)
    values.momentum = MOMENTUM * values.momentum + gradient
    values.weights = values.weights - RATE * values.momentum
    values.processed += count
    if values.processed >= SAMPLES:
        values.epoch, values.processed = values.epoch + 1, 0
    values.step += 1
    return loss


def beginning():
    return dict(weights=np.zeros(FEATURES, dtype=np.float32), momentum=np.zeros(FEATURES, dtype=np.float32), step=0,
                epoch=0, processed=0)


def result(values, loss):
    return '{} {:08x}'.format(loss.tobytes().hex(), zlib.crc32(values.weights.tobytes()))


# ---- the storm


def storm():
    hvd.init()
    state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, **beginning())
    log = open(os.path.join(folder, 'log', '{}.{}'.format(socket.gethostname(), os.getpid())), 'a', buffering=1)

    @functools.partial(elastic.run_fn, reset=elastic.reset_world)
    def train(state):
        generation = _native.call('generation')
        print('begin', generation, hvd.rank(), hvd.size(), socket.gethostname(), state.step, file=log)
        while True:
            step = state.step
            samples, count = share(hvd.rank(), hvd.size(), state.epoch, state.processed)
            print('take', step, generation, *samples, file=log)
            loss = advance(state, samples, count, hvd.global_process_set)
            finish = hvd.allreduce(np.array([os.path.exists(os.path.join(folder, 'finish'))], dtype=np.int32),
                                   name='finish', op=hvd.Max)
            print('done', step, generation, result(state, loss), file=log)
            state.commit()
            if finish[0]:
                return
            time.sleep(0.02)  # much of what happens falls between two steps, as in training with a data loader

    train(state)
    print('finished after step {} of rank {}'.format(state.step, hvd.rank()), flush=True)


# ---- the repetition


class Values:
    def __init__(self):
        self.__dict__.update(beginning())


def repeat():
    with open(os.path.join(folder, 'schedule')) as file:
        schedule = [list(map(int, line.split())) for line in file]
    hvd.init(process_sets='dynamic')
    hosts = hvd.allgather_object(socket.gethostname())
    ranks_of = [[rank for rank, name in enumerate(hosts) if name == host] for host in dict.fromkeys(hosts)]
    sets = {}
    values = Values()
    for steps, *counts in schedule:
        ranks = [rank for place, count in enumerate(counts) for rank in ranks_of[place][:count]]
        assert len(ranks) == sum(counts), (counts, ranks_of)
        key = tuple(ranks)
        if key not in sets:  # all of them would be a second set of the world
            sets[key] = hvd.global_process_set if len(ranks) == hvd.size() else hvd.add_process_set(ranks)
        # Rank 0 is in every set; the others may not have been in the last one.
        values.__dict__.update(hvd.broadcast_object(values.__dict__, 0, name='values'))
        if hvd.rank() not in ranks:
            continue
        for _ in range(steps):
            step = values.step
            samples, count = share(ranks.index(hvd.rank()), len(ranks), values.epoch, values.processed)
            loss = advance(values, samples, count, sets[key])
            if hvd.rank() == 0:
                print('repeated', step, result(values, loss), flush=True)
    hvd.shutdown()


{'storm': storm, 'repeat': repeat}[sys.argv[1]]()
