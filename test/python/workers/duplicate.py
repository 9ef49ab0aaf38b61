"""A name in flight twice: ValueError at submission, and the first goes on.

    duplicate.py first|everywhere|poll|threads
"""

import sys
import threading
import time

import torch

import horovod.torch as hvd

hvd.init()
size, rank = hvd.size(), hvd.rank()


def submit(name, count=10):
    return hvd.allreduce_async(torch.ones(count), op=hvd.Sum, name=name)


def refused(name, count=10):
    try:
        submit(name, count)
    except ValueError as error:
        assert name in str(error) and '\n' not in str(error), error
        return True
    return False


def first_goes_on():
    if rank != 0:
        hvd.broadcast_object(None)  # so that rank 0's first is still in flight
    first = submit('twice')
    if rank == 0:
        assert refused('twice')
        hvd.broadcast_object('go')
    assert (hvd.synchronize(first) == size).all()
    assert (hvd.allreduce(torch.ones(10), op=hvd.Sum, name='twice') == size).all()


def everywhere():
    """Also on the rank that comes last, and where others or the runtime's own thread have finished the first."""
    for count in (1, 10, 200000):
        for last in range(size):
            if rank == last:
                hvd.barrier()  # the others have submitted theirs
            name = 'everywhere.{}.{}'.format(count, last)
            first = submit(name, count)
            if rank != last:
                hvd.barrier()
                time.sleep(0.02 * (count == 10))
                again = submit('beside.' + name, count)  # a call between them has looked for duplicates
                hvd.synchronize(again)
            else:
                assert refused(name, count), 'a duplicate was accepted on rank {}'.format(rank)
                hvd.synchronize(submit('beside.' + name, count))
            assert (hvd.synchronize(first) == size).all()
            both = submit(name, count)
            assert refused(name, count), 'a duplicate was accepted on rank {}'.format(rank)
            assert (hvd.synchronize(both) == size).all()


def poll():
    for round_ in range(20):
        for name in (None, 'polled'):
            handle = hvd.allreduce_async(torch.ones(4), op=hvd.Sum, name=name)
            assert not hvd.poll(handle), 'done at the first poll'
            while not hvd.poll(handle):
                pass
            if name:
                again = submit(name)  # after a true poll the name is free
                assert (hvd.synchronize(again) == size).all()
            assert (hvd.synchronize(handle) == size).all()
        time.sleep(0.001 * round_)


def threads():
    """Of one name that all threads of a rank want, one gets it; with names of their own they do not disturb each other."""
    for round_ in range(20):
        name, accepted, wrong = 'shared.{}'.format(round_), [], []

        def work(number):
            try:
                own = submit('own.{}'.format(number))
                assert (hvd.synchronize(own) == size).all()
                try:
                    accepted.append(submit(name))
                except ValueError:
                    pass
            except BaseException as error:
                wrong.append(error)

        last = rank == size - 1  # which keeps it in flight on the others
        pool = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        if last:
            for number in range(4):
                hvd.synchronize(submit('own.{}'.format(number)))
            hvd.barrier()
            accepted.append(submit(name))
        else:
            for thread in pool:
                thread.start()
            for thread in pool:
                thread.join()
            hvd.barrier()
        assert not wrong and len(accepted) == 1, (wrong, accepted)
        assert (hvd.synchronize(accepted[0]) == size).all()


{'first': first_goes_on, 'everywhere': everywhere, 'poll': poll, 'threads': threads}[sys.argv[1]]()
hvd.barrier()
print('ok', flush=True)
