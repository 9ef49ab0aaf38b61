"""Allreduces for a timeline: timeline_worker.py MODE [ARGUMENT]. Marks each phase by a file where a folder is given."""

import os
import pathlib
import sys
import time

import numpy as np

import horovod.numpy as hvd

NASTY = 'a "quoted"\nname \U0001f525 \\ </script>'


def steps(count, name="grad", late=None, seconds=0.0, after=None):
    for step in range(count):
        if hvd.rank() == late:
            time.sleep(seconds)
        hvd.allreduce(np.ones((3, 4), np.float32), name=name)
        if after:
            after(step)


def crunch(count, slow, seconds):
    """Steps of equal work, for which one rank needs four times as long, as on a core that is slower or shared."""
    for _ in range(count):
        handles = []
        for layer in range(4, 0, -1):
            end = time.process_time() + seconds * (4 if hvd.rank() == slow else 1)
            while time.process_time() < end:
                pass
            handles.append(hvd.allreduce_async(np.ones(1000, np.float32), name=f"layer{layer}"))
        for handle in handles:
            hvd.synchronize(handle)


def large(seconds, size):
    """Until rank 0 says that the time is over."""
    end = time.monotonic() + seconds
    while hvd.broadcast(np.array([time.monotonic() < end]), 0, name="on")[0]:
        hvd.allreduce(np.ones(size, np.float32), name="large")


def layers(count, late, seconds):
    """Steps of a model with five layers, whose gradients are announced from the last to the first; one rank sleeps in layer3."""
    for _ in range(count):
        handles = []
        for layer in range(5, 0, -1):
            if layer == 3 and hvd.rank() == late:
                time.sleep(seconds)
            handles.append(hvd.allreduce_async(np.ones(1000 * layer, np.float32), name=f"layer{layer}.weight"))
        for handle in handles:
            hvd.synchronize(handle)


def many(count, tensors, size):
    """Steps of tensors that are all ready at once."""
    for _ in range(count):
        for handle in [hvd.allreduce_async(np.ones(size, np.float32), name=f"layer{i}") for i in range(tensors)]:
            hvd.synchronize(handle)


def main():
    mode, *rest = sys.argv[1:]
    hvd.init()
    if mode == "steps":
        steps(int(rest[0]))
    elif mode == "nasty":
        steps(3, NASTY)
    elif mode == "late":
        steps(10, late=int(rest[0]), seconds=0.05)
    elif mode == "layers":
        layers(int(rest[0]), late=int(rest[1]), seconds=float(rest[2]))
    elif mode == "crunch":
        crunch(int(rest[0]), slow=int(rest[1]), seconds=float(rest[2]))
    elif mode == "large":
        large(float(rest[0]), int(rest[1]))
    elif mode == "many":
        many(*map(int, rest))
    elif mode == "endless":
        folder = pathlib.Path(rest[0])

        def after(step):
            if step % 20 == 19:
                (folder / str(hvd.rank())).touch()

        steps(10**9, after=after, late=0, seconds=0.001)
    elif mode == "burst":
        steps(int(rest[0]))
        print(f"burst of {rest[0]} done", flush=True)
    hvd.shutdown()


main()
