"""A hundred worlds in one process: in each a seeded mix of what goes well, what is refused, what fails on all ranks, and
handles that nobody waits for; ranks enter the next world before others have left the last one.

    many_worlds.py WORLDS
"""

import os
import random
import sys
import time

import numpy
import torch

import horovod.numpy as hvd_numpy
import horovod.torch as hvd

torch.set_num_threads(1)


def expect(error, call, *words):
    try:
        call()
    except error as caught:
        for word in words:
            assert word in str(caught), (word, caught)
        assert '\n' not in str(caught), caught
    else:
        raise AssertionError('no {} from {}'.format(error.__name__, call))


class World(object):
    def __init__(self, number):
        self.number = number
        self.rank, self.size = hvd.rank(), hvd.size()
        self.last = self.rank == self.size - 1
        self.turn = 0

    def name(self, what):
        return '{}.{}'.format(what, self.turn)

    def goes_on(self):
        for count in (1, 3000):
            assert (hvd.allreduce(torch.ones(count), op=hvd.Sum) == self.size).all(), self.number

    # ---- what goes well

    def sums(self):
        for dtype in (torch.float32, torch.int64, torch.float16):
            assert hvd.allreduce(torch.ones(5, dtype=dtype)).tolist() == [1] * 5
        assert hvd.broadcast_object({'world': self.number}, root_rank=self.size - 1) == {'world': self.number}
        gathered = hvd_numpy.allgather(numpy.full(self.rank + 1, self.rank))
        assert numpy.asarray(gathered).tolist() == [r for r in range(self.size) for _ in range(r + 1)]

    def groups_and_polls(self):
        handle = hvd.grouped_allreduce_async([torch.ones(2), torch.ones(70000)], op=hvd.Sum, name=self.name('group'))
        assert not hvd.poll(handle)
        while not hvd.poll(handle):
            pass
        small, large = hvd.synchronize(handle)
        assert small[0] == large[-1] == self.size

    def sets(self):
        if self.size == 1:
            return  # the world is the only set
        alone = hvd.add_process_set([self.size - 1])
        if self.last:
            assert hvd.allreduce(torch.ones(3), op=hvd.Sum, process_set=alone).tolist() == [1] * 3
        else:
            expect(ValueError, lambda: hvd.allreduce(torch.ones(3), process_set=alone))
        assert hvd.remove_process_set(alone)

    def joins(self):
        if not self.last:
            hvd.allreduce(torch.ones(3), name=self.name('alone'))
        hvd.join()

    # ---- what nobody waits for

    def dropped(self):
        """Handles of small and large, named and unnamed ones; a name that was dropped may come again."""
        for _ in range(3):
            hvd.allreduce_async(torch.ones(4), name='dropped')
            hvd.allgather_async(torch.ones(self.rank + 1, 2))
            hvd.allreduce(torch.ones(1))
        hvd.allreduce_async(torch.ones(100000), name=self.name('large'))
        hvd.alltoall_async(torch.ones(self.size * 300))
        hvd_numpy.allreduce_async(numpy.ones(7), name=self.name('numpy'))

    # ---- what is refused here

    def refused(self):
        first = hvd.allreduce_async(torch.ones(3), op=hvd.Sum, name='twice')
        expect(ValueError, lambda: hvd.allreduce_async(torch.ones(3), name='twice'), 'twice')
        expect(ValueError, lambda: hvd.allreduce(torch.ones(3, dtype=torch.complex64)))
        expect(ValueError, lambda: hvd.broadcast(torch.ones(3), root_rank=self.size))
        expect(ValueError, lambda: hvd.allreduce(torch.ones(4, 4).t()[1:]))
        expect(ValueError, lambda: hvd.alltoall(torch.ones(self.size), splits=[1] * (self.size + 1)))
        assert (hvd.synchronize(first) == self.size).all()
        assert hvd.synchronize(first) is None

    # ---- what fails on all

    def fails(self):
        expect(hvd.HorovodInternalError, lambda: hvd.reducescatter(torch.ones(4, dtype=torch.int32), op=hvd.Max))
        expect(hvd.HorovodInternalError, lambda: hvd.allgather(torch.tensor(1.0)))
        if self.size == 1:
            return
        odd = 1 if self.last else 0
        expect(hvd.HorovodInternalError, lambda: hvd.allreduce(torch.ones(3 + odd), name='shape'), 'shape')
        expect(hvd.HorovodInternalError, lambda: hvd.allreduce(torch.ones(50000 + odd), name='shape'), 'shape')
        expect(hvd.HorovodInternalError, lambda: hvd.broadcast(torch.ones(3), root_rank=odd, name='root'), 'root')
        kind = torch.float64 if odd else torch.float32
        handles = [hvd.allreduce_async(torch.ones(3, dtype=kind), name='kind'),
                   hvd.allreduce_async(torch.ones(3), op=hvd.Sum, name='beside')]
        expect(hvd.HorovodInternalError, lambda: hvd.synchronize(handles[0]), 'kind')
        assert (hvd.synchronize(handles[1]) == self.size).all()

    TURNS = (sums, groups_and_polls, sets, joins, dropped, refused, fails)

    # ---- the end

    def leave(self):
        """Gives handles that are pending then: those that the others never submit, and those that nobody waited for."""
        handles = [hvd.allreduce_async(torch.ones(5), name='only.{}'.format(self.rank))] if self.size > 1 else []
        if self.rank == self.number % self.size:
            time.sleep(0.003)  # the others are in the next world by then, or on their way
        hvd.shutdown()
        return handles


def live(number):
    # All that ranks do alike comes from this seed.
    seeded = random.Random(number)
    hvd.init()
    world = World(number)
    for world.turn in range(seeded.randint(0, 4)):
        seeded.choice(World.TURNS)(world)
        world.goes_on()
    return world.leave()


def open_descriptors():
    return len(os.listdir('/proc/self/fd'))


def main(worlds):
    kept = [hvd.init() or hvd.allgather(torch.ones(3, 2))]
    hvd.shutdown()
    descriptors = None
    for number in range(worlds):
        handles = live(number)
        if number % 3 == 0:
            for handle in handles:
                expect(hvd.HorovodInternalError, lambda: hvd.synchronize(handle), 'shut down')
        elif number % 3 == 1:  # and in the world after it
            hvd.init()
            fresh = hvd.allreduce_async(torch.ones(2), op=hvd.Sum)
            for handle in handles:
                assert handle != fresh
                assert hvd.poll(handle)
                expect(hvd.HorovodInternalError, lambda: hvd.synchronize(handle), 'shut down')
            assert (hvd.synchronize(fresh) == hvd.size()).all()
            hvd.shutdown()
        if number == 20:
            descriptors = open_descriptors()
    assert kept[0].sum() == kept[0].numel(), 'memory of the first world is gone'
    if descriptors is not None:
        assert open_descriptors() <= descriptors + 2, (descriptors, open_descriptors())
    print('ok', flush=True)


main(int(sys.argv[1]))
