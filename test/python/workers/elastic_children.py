"""Loader workers of an elastic job: in each world they know the places of their rank there, however they were started.

    elastic_children.py FOLDER        until the file FOLDER/finish is there
"""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

import horovod.torch as hvd

ITEMS = 24
METHODS = ('fork', 'forkserver')  # in each world; the fork server lives from the first one on


class Shard(Dataset):
    """Each element on one rank, by what a loader worker knows of the world; what it knows comes along."""

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        rank, size = (hvd.rank(), hvd.size()) if hvd.is_initialized() else (0, 1)
        places = [rank, size, hvd.local_rank(), hvd.local_size(), hvd.global_process_set.size()]
        return torch.tensor([index if index % size == rank else -1] + places)


def main():
    folder = sys.argv[1]
    hvd.init()
    torch.set_num_threads(1)
    state = hvd.elastic.TorchState(worlds=0)

    def over():
        return hvd.broadcast_object(os.path.exists(os.path.join(folder, 'finish')), 0, 'over')

    @hvd.elastic.run
    def train(state):
        places = [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.size()]
        # A spawned one imports PyTorch and knows nothing of earlier worlds: once, in a world that is not the first.
        for method in METHODS + ('spawn',) * (hvd.size() == 3):
            rows = torch.cat(list(DataLoader(Shard(), batch_size=5, num_workers=1, multiprocessing_context=method)))
            known = torch.unique(rows[:, 1:], dim=0).tolist()
            assert known == [places], '{}: a child of rank {} of {} says {}'.format(method, hvd.rank(), hvd.size(), known)
            taken = hvd.allgather(rows[:, 0][rows[:, 0] >= 0], name='taken ' + method)
            assert sorted(taken.tolist()) == list(range(ITEMS)), (method, taken)
        state.worlds += 1
        print('children of rank {} of {} agree pid {}'.format(hvd.rank(), hvd.size(), os.getpid()), flush=True)
        while not over():
            time.sleep(0.02)
            state.commit()

    train(state)


if __name__ == '__main__':
    main()
