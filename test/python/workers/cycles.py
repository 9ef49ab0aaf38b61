"""init and shutdown many times in one process, with ranks that come back at different times."""

import sys
import time

import torch

import horovod.torch as hvd


def main(cycles):
    descriptors = None
    for cycle in range(cycles):
        hvd.init()
        assert hvd.is_initialized()
        if (cycle + hvd.rank()) % 7 == 0:
            time.sleep(0.002)
        result = hvd.allreduce(torch.full((3,), float(hvd.rank())), op=hvd.Sum)
        assert result.tolist() == [hvd.size() * (hvd.size() - 1) / 2] * 3, (cycle, result)
        if cycle % 2:
            hvd.barrier()
        hvd.shutdown()
        assert not hvd.is_initialized()
        if cycle == 10:
            descriptors = open_descriptors()
    if descriptors is not None:
        assert open_descriptors() <= descriptors + 2, (descriptors, open_descriptors())
    print('ok', flush=True)


def open_descriptors():
    import os
    return len(os.listdir('/proc/self/fd'))


main(int(sys.argv[1]))
