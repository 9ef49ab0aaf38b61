"""A script of torch.distributed that ends, without destroy_process_group(), while a callback of a future runs. Prints 'done RANK'."""

import threading
import time

import horovod.torch  # noqa: F401
import torch
import torch.distributed as dist

dist.init_process_group('hvd')
begun = threading.Event()


def slow(future):
    begun.set()
    time.sleep(1)  # the interpreter ends meanwhile; a thread that comes back from C++ after that ends the process by std::terminate()


dist.all_reduce(torch.ones(1 << 20), async_op=True).get_future().add_done_callback(slow)
begun.wait()
print('done', dist.get_rank(), flush=True)
