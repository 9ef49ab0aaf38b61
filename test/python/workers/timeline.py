"""hvd.start_timeline and hvd.stop_timeline on every rank: timeline.py FOLDER."""

import json
import os
import sys
import time

import torch

import horovod.torch as hvd


def names(path):
    with open(path) as file:
        return [event.get('name') for event in json.load(file)]


def main():
    folder = sys.argv[1]
    first, second = (os.path.join(folder, name) for name in ('first.json', 'second.json'))
    hvd.init()
    hvd.start_timeline(first)
    hvd.start_timeline(first)  # nothing happens
    hvd.allreduce(torch.ones(3, 4), name='test_allreduce')
    # The contract: within 0.2 s; more only because the machine is shared.
    deadline = time.monotonic() + 10
    while hvd.rank() == 0 and 'ALLREDUCE' not in names(first) and time.monotonic() < deadline:
        time.sleep(0.01)
    hvd.barrier()
    hvd.start_timeline(second, mark_cycles=True)
    hvd.barrier()
    hvd.allreduce(torch.ones(3, 4), name='second_allreduce')
    hvd.barrier()
    hvd.stop_timeline()
    hvd.barrier()
    hvd.allreduce(torch.ones(3, 4), name='third_allreduce')
    hvd.stop_timeline()
    if hvd.rank() == 0:
        for path, has, lacks in ((first, 'test_allreduce', 'second'), (second, 'second_allreduce', 'third')):
            with open(path) as file:
                text = file.read()
            json.loads(text)
            for word in ('allreduce.' + has, 'NEGOTIATE_ALLREDUCE', '"ALLREDUCE"', 'start_time_since_epoch_in_micros'):
                assert word in text, (word, text)
            assert lacks not in text, text
        assert 'CYCLE_START' in names(second) and 'CYCLE_START' not in names(first)
        assert sum(name == 'ALLREDUCE' for name in names(first)) == hvd.local_size(), names(first)
        try:
            hvd.start_timeline(os.path.join(folder, 'no', 'such.json'))
        except ValueError as error:
            assert 'cannot be written' in str(error), error
        else:
            raise AssertionError('an impossible path was taken')
    hvd.shutdown()


main()
