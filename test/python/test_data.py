"""horovod.data: loaders of batches, in the caller's thread and ahead in a thread."""

import os
import threading

import pytest

from horovod.data import AsyncDataLoaderMixin, BaseDataLoader

pytestmark = [pytest.mark.below_torch, pytest.mark.deadline(20)]


class Loader(BaseDataLoader):
    def __init__(self, batches, fails_after=None, error=None):
        self.batches = batches
        self.fails_after = fails_after
        self.error = error
        self.epochs = 0

    def __len__(self):
        return len(self.batches)

    def _iterate(self):
        self.epochs += 1
        for number, batch in enumerate(self.batches):
            if number == self.fails_after:
                raise self.error
            yield batch

    def _process_batch(self, batch):
        return batch if batch is None else batch * 10


class Ahead(AsyncDataLoaderMixin, Loader):
    pass


@pytest.fixture(params=[0, 1, 2, 64])
def ahead(request):
    made = []

    def make(*args, **kwargs):
        made.append(Ahead(request.param, False, *args, **kwargs))
        return made[-1]

    yield make
    for loader in made:
        loader.close_async_loader()


def test_a_loader_gives_its_batches_each_epoch():
    loader = Loader([1, 2, 3])
    assert [list(loader), list(loader), len(loader)] == [[10, 20, 30], [10, 20, 30], 3]


def test_batches_that_were_loaded_ahead_are_the_same(ahead):
    loader = ahead([1, 2, 3])
    assert [list(loader) for _ in range(4)] == [[10, 20, 30]] * 4


def test_an_empty_epoch(ahead):
    assert list(ahead([])) == []


def test_a_batch_may_be_none(ahead):
    assert list(ahead([1, None, 3])) == [10, None, 30]


@pytest.mark.parametrize('error', [ValueError('broken'), SystemExit(3), KeyboardInterrupt()])
def test_an_exception_of_the_producer_reaches_the_consumer(ahead, error):
    loader = ahead([1, 2, 3], fails_after=2, error=error)
    batches = []
    with pytest.raises(type(error)):
        for batch in loader:
            batches.append(batch)
    assert batches == [10, 20]
    loader.fails_after = None
    assert list(loader) == [10, 20, 30]


def test_a_closed_loader_begins_anew(ahead):
    loader = ahead(list(range(100)))
    iterator = iter(loader)
    assert next(iterator) == 0
    loader.close_async_loader()
    loader.close_async_loader()
    assert list(loader)[:3] == [0, 10, 20]


def test_closing_ends_an_iteration_that_is_under_way(ahead):
    loader = ahead(list(range(100)))
    if loader.queue is None:
        pytest.skip('without a thread there is nothing to close')
    iterator = iter(loader)
    next(iterator)
    loader.close_async_loader()
    assert list(iterator) == []


def test_closing_ends_a_consumer_that_waits():
    class Slow(AsyncDataLoaderMixin, BaseDataLoader):
        def __len__(self):
            return 1

        def _iterate(self):
            yield 1
            begun.set()
            released.wait()

    begun, released, batches = threading.Event(), threading.Event(), []
    loader = Slow()
    consumer = threading.Thread(target=lambda: batches.extend(loader), daemon=True)
    consumer.start()
    begun.wait()
    closer = threading.Thread(target=loader.close_async_loader, daemon=True)
    closer.start()
    released.set()
    closer.join()
    consumer.join()
    assert not consumer.is_alive() and batches in ([], [1])


def test_a_forked_child_loads_with_a_thread_of_its_own(ahead):
    loader = ahead([1, 2, 3])
    assert list(loader) == [10, 20, 30]
    child = os.fork()
    if child == 0:
        os._exit(0 if list(loader) == [10, 20, 30] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert list(loader) == [10, 20, 30]
