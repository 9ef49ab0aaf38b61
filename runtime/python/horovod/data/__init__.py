"""Loaders of batches that do not depend on a framework."""

from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader

__all__ = ['AsyncDataLoaderMixin', 'BaseDataLoader']
