"""Children of a rank: the workers of a DataLoader by fork, spawn and forkserver, and programs that the rank starts.

They know the places of their rank and have no other part in the world.

    children.py            in a job, or alone
"""

import multiprocessing
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset

import horovod.torch as hvd

PLACES = (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size, hvd.is_homogeneous)


class Shard(Dataset):
    """Every element on one rank, as scripts choose them: by what a worker process knows."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rank, size = (hvd.rank(), hvd.size()) if hvd.is_initialized() else (0, 1)
        return index if index % size == rank else -1


def every_element_is_read_once(method):
    loader = DataLoader(Shard(60), batch_size=7, num_workers=2 if method == 'fork' else 1, multiprocessing_context=method)
    mine = [value for batch in loader for value in batch.tolist() if value >= 0]
    everyone = sorted(value for values in hvd.allgather_object(mine) for value in values)
    assert everyone == list(range(60)), (method, everyone)


def answers(process_set=None):
    found = [place() for place in PLACES] + [hvd.is_initialized()]
    found += [hvd.global_process_set.size(), hvd.global_process_set.rank(), hvd.global_process_set.included()]
    if process_set is not None:
        found += [process_set.size(), process_set.included(), process_set.ranks]
        found.append(process_set.rank() if process_set.included() else None)
    return found


def outcome(call):
    try:
        return 'nothing', repr(call())
    except Exception as error:
        return type(error).__name__, str(error)


def touch(connection, process_set, alone):
    refused = [hvd.barrier, lambda: hvd.allreduce(torch.ones(2), name='child'), lambda: hvd.broadcast_object(1),
               lambda: hvd.allgather(torch.ones(2)), lambda: hvd.grouped_allreduce([torch.ones(2)]), hvd.join,
               lambda: hvd.add_process_set([0])]
    if not alone:
        refused.append(hvd.init)
    connection.send((answers(process_set), [outcome(call) for call in refused]))
    hvd.shutdown()
    connection.close()


def children_answer_like_their_rank(method, process_set):
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=touch, args=(sender, process_set, hvd.size() == 1))
    child.start()
    sender.close()
    found, refused = receiver.recv()
    child.join()
    assert child.exitcode == 0, child.exitcode
    assert found == answers(process_set), (method, found, answers(process_set))
    for kind, text in refused:
        assert kind == 'RuntimeError' and 'no rank itself' in text and '\n' not in text, (method, kind, text)


def run_code(code, **environment):
    return subprocess.run([sys.executable, '-c', 'import horovod.numpy as hvd\n' + code], stdout=subprocess.PIPE,
                          universal_newlines=True, env=dict(os.environ, **environment)).stdout.strip()


def programs_of_a_rank_are_its_children():
    code = 'print(hvd.rank() if hvd.is_initialized() else "none", hvd.size() if hvd.is_initialized() else "none")'
    launched = 'HVD_AGENT' in os.environ
    assert run_code(code) == ('{} {}'.format(hvd.rank(), hvd.size()) if launched else 'none none'), run_code(code)
    # The environment of another job: this is a rank of it, before its hvd.init().
    other = 'try: hvd.rank()\nexcept ValueError as error: print(error)'
    assert 'hvd.init()' in run_code(other, HVD_AGENT='elsewhere', HVD_SLOT='7')
    if not launched:  # a program with a world of one of its own
        assert run_code('hvd.init(); print(hvd.size())') == '1'


def main():
    hvd.init()
    process_set = hvd.add_process_set([0, 1]) if hvd.size() > 2 else None
    if process_set is None and hvd.size() == 2:
        process_set = hvd.add_process_set([1])
    # The fork server lives on from one world to the next, and is older than the last set.
    for method in ('fork', 'spawn', 'forkserver'):
        if method != 'forkserver' and hvd.size() <= 2:
            every_element_is_read_once(method)
        children_answer_like_their_rank(method, process_set)
    if process_set is not None:
        hvd.remove_process_set(process_set)
        other = hvd.add_process_set([0])
        children_answer_like_their_rank('forkserver', other)
    programs_of_a_rank_are_its_children()
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum, name='after').tolist() == [hvd.size()] * 2
    hvd.barrier()
    hvd.shutdown()
    assert 'HVD_RANK_PROCESS' not in os.environ
    assert not hvd.is_initialized()
    assert run_code('print(hvd.is_initialized())') == 'False'
    hvd.init()  # the fork server is older than this world, too
    children_answer_like_their_rank('forkserver', None)
    hvd.shutdown()
    print('ok', flush=True)


if __name__ == '__main__':
    main()
