"""A sampler that does not repeat, within an epoch, what was processed before the world changed."""

from __future__ import annotations

import random

import torch

from horovod.torch.mpi_ops import rank, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator


class ElasticSampler(torch.utils.data.Sampler):
    """Divides the indices of a dataset among the ranks, and repeats none within an epoch when the world changes.

    Call record_batch() after each batch and keep the sampler in the state.

    Args:
        dataset: Anything with a length.
        shuffle: Whether to shuffle the indices in each epoch.
        seed: Seed of the shuffling; the same on every rank.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.processed_indices = set()
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: another order, nothing processed.

        Args:
            epoch: Number of the epoch, an int.
        """
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Notes that every rank has processed a batch.

        Args:
            batch_idx: Ignored.
            batch_size: Number of indices that each rank has processed.
        """
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> Dict[str, Any]:
        """The epoch and how many indices all ranks have processed in it.

        Returns: A dict.
        """
        return {'epoch': self.epoch, 'processed_num': self.processed_num}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Continues from such a state and divides the rest.

        Args:
            state_dict: The dict that state_dict() returned.
        """
        self.epoch = state_dict['epoch']
        self.processed_num = state_dict['processed_num']
        self.reset()

    def reset(self) -> None:
        """Divides the rest of the epoch among the ranks of the current world."""
        self.num_replicas = size()
        self.rank = rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(indices)
        self.remaining_indices = indices[self.processed_num:]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        indices = list(self.remaining_indices)
        while indices and len(indices) < self.total_size:  # so that all ranks have the same number
            indices += indices[:self.total_size - len(indices)]
        return iter(indices[self.rank:self.total_size:self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
