"""A loader of batches, and a mixin that loads them ahead in a thread."""

import queue
import threading


class BaseDataLoader:
    """A loader of batches. Subclasses implement __len__() and the generator _iterate()."""

    def __len__(self):
        """Number of batches in an epoch."""
        raise NotImplementedError('{} needs a method __len__().'.format(type(self).__name__))

    def _iterate(self):
        """A generator of the batches of one epoch."""
        raise NotImplementedError('{} needs a generator _iterate().'.format(type(self).__name__))

    def __iter__(self):
        for batch in self._iterate():
            yield self._process_batch(batch)

    def _process_batch(self, batch):
        """Transforms each batch before it is returned."""
        return batch


class _NoneBatch:
    """Represents a batch that is None in the queue, where None is the end of an epoch."""


class _Failure:
    def __init__(self, error):
        self.error = error


class AsyncDataLoaderMixin:
    """Loads batches ahead in a thread. Put it before a loader among the base classes.

    The thread fills a queue with batches, epoch after epoch, from the first iteration until
    close_async_loader().

    Args:
        async_loader_queue_size: How many batches are kept ahead; 0 uses no thread.
        debug_data_loader: Ignored; there for scripts written for Horovod.
        args: Passed on to the loader.
        kwargs: Passed on to the loader.

    Example:

        class AheadLoader(AsyncDataLoaderMixin, Loader):
            pass
    """

    def __init__(self, async_loader_queue_size=64, debug_data_loader=False, *args, **kwargs):
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        self.started = False
        self.finished_event = threading.Event()
        self.queue = queue.Queue(async_loader_queue_size) if async_loader_queue_size > 0 else None
        self.thread = None
        super(AsyncDataLoaderMixin, self).__init__(*args, **kwargs)

    def close_async_loader(self):
        """Ends the thread. The loader may be iterated over again, which starts a new one."""
        if self.thread is None:
            return
        self.finished_event.set()
        self._drain()
        self.thread.join()
        self._drain()
        self.finished_event.clear()
        self.thread, self.started = None, False

    def _drain(self):
        while True:
            try:
                self.queue.get_nowait()
            except queue.Empty:
                return

    def __iter__(self):
        if self.queue is None:
            for batch in super(AsyncDataLoaderMixin, self).__iter__():
                yield batch
            return
        if self.started and not self.thread.is_alive() and self.queue.empty():  # in a child that was forked
            self.queue = queue.Queue(self.async_loader_queue_size)
            self.started = False
        if not self.started:
            self.started = True
            self.thread = threading.Thread(target=self._async_worker, name='hvd loader', daemon=True)
            self.thread.start()
        while True:
            thread = self.thread
            try:
                batch = self.queue.get(timeout=0.2)
            except queue.Empty:
                if thread is None or not thread.is_alive():
                    return  # closed meanwhile
                continue
            if batch is None:
                return
            if batch is _NoneBatch:
                batch = None
            if isinstance(batch, _Failure):
                self.close_async_loader()
                raise batch.error
            yield self._process_batch(batch)

    def _async_worker(self):
        try:
            while not self.finished_event.is_set():
                for batch in self._iterate():
                    if not self._put(_NoneBatch if batch is None else batch):
                        return
                if not self._put(None):  # the end of an epoch
                    return
        except BaseException as error:  # also SystemExit, which would end only this thread
            self._put(_Failure(error))

    def _put(self, item):
        """False when the loader is being closed."""
        while not self.finished_event.is_set():
            try:
                self.queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False
