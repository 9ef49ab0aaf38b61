"""A script of torchrun: reads what torchrun sets, and trains with DistributedDataParallel."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
hosts = int(os.environ['GROUP_WORLD_SIZE'])
local = int(os.environ['LOCAL_WORLD_SIZE'])
assert int(os.environ['ROLE_RANK']) == rank and int(os.environ['ROLE_WORLD_SIZE']) == size
assert 0 <= int(os.environ['GROUP_RANK']) < hosts and hosts * local >= size
assert int(os.environ['GROUP_RANK']) * local + int(os.environ['LOCAL_RANK']) == rank
# The job's, the same on every host; an agent's id is that plus the number of its host.
assert 0 <= int(os.environ['HVD_JOB_ID'], 16) - int(os.environ['TORCHELASTIC_RUN_ID'], 16) < int(os.environ['GROUP_WORLD_SIZE'])
assert os.environ['TORCHELASTIC_RESTART_COUNT'] == os.environ['TORCHELASTIC_MAX_RESTARTS'] == '0'
assert 'TORCHELASTIC_USE_AGENT_STORE' not in os.environ
if hasattr(dist, 'is_torchelastic_launched'):
    assert dist.is_torchelastic_launched()

dist.init_process_group('gloo')
torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.full((2, 3), float(rank + step))).sum().backward()
    optimizer.step()
weights = [torch.zeros(1, 3) for _ in range(size)]
dist.all_gather(weights, model.module.weight.detach())
assert all(torch.equal(w, weights[0]) for w in weights)
del model, optimizer
dist.destroy_process_group()
print('ok', flush=True)
os._exit(0)  # threads of PyTorch may outlive Python: "terminate called without an active exception"
