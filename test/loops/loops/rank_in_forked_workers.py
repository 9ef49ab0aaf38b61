"""A data set that asks for the rank inside of forked loader workers: over all ranks each element is read once."""

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    def __init__(self, hvd, count):
        self.hvd, self.count = hvd, count

    def __iter__(self):
        hvd, info = self.hvd, get_worker_info()
        rank, size = (hvd.rank(), hvd.size()) if hvd.is_initialized() else (0, 1)
        return iter(range(rank * info.num_workers + info.id, self.count, size * info.num_workers))


def distributed(hvd):
    own = [int(x) for x in DataLoader(Shards(hvd, 24), batch_size=None, num_workers=2, multiprocessing_context='fork')]
    return sorted(hvd.allgather(torch.tensor(own)).tolist())


def alone(size):
    return list(range(24))
