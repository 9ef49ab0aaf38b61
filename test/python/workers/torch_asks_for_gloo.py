"""A script that knows nothing of us, under hvdrun --torch-backend NAME: torch_asks_for_gloo.py NAME."""

import sys

assert 'horovod.torch' not in sys.modules and 'torch' not in sys.modules

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

assert 'horovod.torch' not in sys.modules, 'imported before it is needed'
for backend in ('gloo', None, 'cpu:gloo') if sys.argv[1] == 'hvd' else ('gloo',):  # gloo itself does not always begin again
    dist.init_process_group(backend)
    backends = {type(dist.group.WORLD._get_backend(torch.device('cpu'))).__name__}
    for group in (dist.group.WORLD, dist.new_group(backend='gloo')):
        own = torch.ones(1)
        dist.all_reduce(own, group=group)
        assert own.item() == dist.get_world_size()
        backends.add(type(group._get_backend(torch.device('cpu'))).__name__)
    assert backends == {'HvdBackend' if sys.argv[1] == 'hvd' else 'ProcessGroupGloo'}, backends
    dist.barrier()
    dist.destroy_process_group()
print('done', 'horovod.torch' in sys.modules)
