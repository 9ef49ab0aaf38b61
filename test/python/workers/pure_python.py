"""Checks that need no framework and no NumPy, in a world of one; run with every Python there is."""

import queue
import sys

from horovod.common import _library, elastic, exceptions, objects, process_sets, registered, util
from horovod.common.basics import HorovodBasics, shared
from horovod.data import AsyncDataLoaderMixin, BaseDataLoader

basics = HorovodBasics()
assert not basics.is_initialized()
for query in (basics.rank, basics.size, basics.is_homogeneous, basics._get_process_set_ids_and_ranks):
    try:
        query()
        raise SystemExit('a query was answered before init()')
    except ValueError as error:
        assert 'init' in str(error)
for _ in range(3):
    basics.init()
    basics.init()
    assert (basics.rank(), basics.size(), basics.local_rank(), basics.cross_size()) == (0, 1, 0, 1)
    basics.shutdown()
    basics.shutdown()
basics.init()
world = process_sets.global_process_set
assert world.ranks == [0] and world.included() and world.rank() == 0 and world.size() == 1
assert shared().rank() == 0 and basics._get_process_set_ids_and_ranks() == {0: [0]}
assert basics.nccl_built() == 0 and basics.mpi_enabled() in (False, True)
assert isinstance(util.gloo_built(), bool)

# Objects.
value = {'a': list(range(1000)), 'b': None}
assert objects.broadcast_object(value, 0, None, world) is value
assert objects.allgather_object(value, None, world) == [value]
assert objects.allgather_object(None, 'none', world) == [None]

# A collective by hand, in registered memory.
memory = registered.allocate(64)
address = _library.ctypes.addressof(memory)
memory[:4] = b'\1\2\3\4'
request = _library.Request(_library.ALLREDUCE, 'by hand', ((_library.UINT8, (4,)),))
for _ in range(3):
    handle = request.submit(address, address)
    assert _library.wait(handle) is None
assert memory[:4] == b'\1\2\3\4'
outcome = _library.wait_result(_library.Request(_library.JOIN, None, ()).submit())
assert outcome.error is None and outcome.last_joined_rank == 0
assert isinstance(_library.wait(987654321), ValueError)
del memory

# Loaders.


class Numbers(BaseDataLoader):
    def __init__(self, count, failing=False):
        self.count, self.failing = count, failing

    def __len__(self):
        return self.count

    def _iterate(self):
        for i in range(self.count):
            yield i
        if self.failing:
            raise OSError('the file is gone')

    def _process_batch(self, batch):
        return batch * 2


class Ahead(AsyncDataLoaderMixin, Numbers):
    pass


assert list(Numbers(5)) == [0, 2, 4, 6, 8]
for size in (0, 1, 64):
    loader = Ahead(size, False, 5)
    for epoch in range(3):
        assert list(loader) == [0, 2, 4, 6, 8], size
    loader.close_async_loader()
    loader.close_async_loader()
    assert list(loader) == [0, 2, 4, 6, 8]
    loader.close_async_loader()
    broken = Ahead(async_loader_queue_size=size, count=2, failing=True)
    try:
        list(broken)
        raise SystemExit('the error got lost')
    except OSError as error:
        assert 'gone' in str(error)

# Elastic state without a framework.
state = elastic.ObjectState(bcast_object=lambda obj: obj, get_rank=lambda: 0, batch=0)
state.batch = 3
state.commit()
state.batch = 4
state.restore()
assert state.batch == 3 and isinstance(state._host_messages, queue.Queue)
elastic.notification_manager.register_listener(state)
elastic.notification_manager.handle_hosts_updated(1, elastic.HostUpdateResult.removed)
try:
    state.commit()
    raise SystemExit('the update got lost')
except exceptions.HostsUpdatedInterrupt as interrupt:
    assert interrupt.skip_sync is True
basics.shutdown()
assert 'torch' not in sys.modules and 'numpy' not in sys.modules
print('ok')
