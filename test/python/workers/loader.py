"""Two epochs over a DataLoader with worker processes, forked after init, and gradients exchanged meanwhile."""

import torch
from torch.utils.data import DataLoader, TensorDataset

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
dataset = TensorDataset(torch.arange(240.0).reshape(120, 2), torch.arange(120.0))
model = torch.nn.Linear(2, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1e-6),
                                     named_parameters=model.named_parameters())
for epoch in range(2):
    seen = []
    for x, y in DataLoader(dataset, batch_size=10, num_workers=2):
        optimizer.zero_grad()
        (model(x).squeeze(1) - y).pow(2).mean().backward()
        optimizer.step()
        seen.extend(y.tolist())
    assert seen == list(range(120))
assert hvd.size() == int(hvd.allreduce(torch.tensor([1]), op=hvd.Sum))
print('ok', flush=True)
