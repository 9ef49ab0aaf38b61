"""Elastic state and sampler in a job of fixed size."""

import torch

import horovod.torch as hvd
from horovod.common.elastic import HostUpdateResult
from horovod.common.exceptions import HostsUpdatedInterrupt

hvd.init()
size, rank = hvd.size(), hvd.rank()
torch.manual_seed(rank)
model = torch.nn.Linear(2, 2)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1 * (rank + 1), momentum=0.9))
sampler = hvd.elastic.ElasticSampler(list(range(10)), shuffle=False)
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=rank, batch=0)
resets = []
state.register_reset_callbacks([lambda: resets.append(hvd.size())])

# The sampler: every index once, padded to equal shares; a processed one does not come again.
everything = sum(hvd.allgather_object(list(sampler)), [])
assert set(everything) == set(range(10)) and len(everything) == len(sampler) * size == -(-10 // size) * size
sampler.record_batch(0, 1)
assert sampler.processed_num == size
sampler.load_state_dict(sampler.state_dict())
assert set(sum(hvd.allgather_object(list(sampler)), [])) == set(range(size, 10))
sampler.set_epoch(1)
assert sampler.processed_num == 0 and sampler.epoch == 1

rounds = []


@hvd.elastic.run
def train(state, extra):
    rounds.append(state.epoch)
    # sync() has made all ranks like rank 0.
    same = [p.tolist() for p in state.model.parameters()], state.optimizer.param_groups[0]['lr'], state.epoch
    assert hvd.allgather_object(same) == [same] * size
    while state.epoch < 3:
        state.optimizer.zero_grad()
        state.model(torch.ones(1, 2) * (rank + 1)).sum().backward()
        state.optimizer.step()
        state.epoch += 1
        if state.epoch == 2 and len(rounds) == 1:
            # As a launcher would tell it, to rank 0 only.
            if rank == 0:
                state.on_hosts_updated(1, HostUpdateResult.added)
        state.commit()
    return extra


assert train(state, 'done') == 'done'
assert rounds == [0, 2] and resets == [size], (rounds, resets)

# restore() brings back what was committed.
state.save()
before = [p.tolist() for p in model.parameters()]
with torch.no_grad():
    for p in model.parameters():
        p.add_(1)
state.epoch = 77
state.restore()
assert [p.tolist() for p in model.parameters()] == before and state.epoch == 3
state.model = torch.nn.Linear(2, 2)
state.commit()
try:
    if rank == 0:
        state.on_hosts_updated(5, HostUpdateResult.removed)
    state.check_host_updates()
    raise SystemExit('the update was not noticed')
except HostsUpdatedInterrupt as interrupt:
    assert interrupt.skip_sync is True
print('ok', flush=True)
