"""A model on the rank's GPU is trained by DistributedOptimizer: all ranks end with the same parameters, and these are what one
process computes from all the data.

    gpu_training.py COMPRESSION     none, fp16, bf16, or buckets: none, and gradients are views of buckets
"""

import sys

import torch

import horovod.torch as hvd

hvd.init()
buckets = sys.argv[1] == 'buckets'
compression = hvd.Compression.none if buckets else getattr(hvd.Compression, sys.argv[1])
rank, size = hvd.rank(), hvd.size()
cuda = torch.cuda.is_available()
device = torch.device('cuda', hvd.local_rank() % torch.cuda.device_count()) if cuda else torch.device('cpu')
torch.manual_seed(rank)


def model():
    return torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3)).to(device)


def data(of):
    generator = torch.Generator().manual_seed(100 + of)
    inputs = torch.randn(32, 20, generator=generator)
    return inputs.to(device), (inputs[:, :3] * 2).to(device)


net = model()
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
whole = model()
whole.load_state_dict(net.state_dict())
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9),
                                     named_parameters=net.named_parameters(), compression=compression,
                                     gradient_as_bucket_view=buckets)
alone = torch.optim.SGD(whole.parameters(), lr=0.05, momentum=0.9)
losses = []
for step in range(60):
    inputs, targets = data(rank)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(float(hvd.allreduce(loss.detach(), name='loss')))
    alone.zero_grad()
    sum(torch.nn.functional.mse_loss(whole(x), y) for x, y in map(data, range(size))).div(size).backward()
    alone.step()
assert losses[-1] < 0.7 * losses[0], losses
for (name, own), expected in zip(net.named_parameters(), whole.parameters()):
    everyone = hvd.allgather(own.detach().reshape(1, -1), name='same.' + name)
    assert (everyone == everyone[0]).all(), name
    tolerance = {'fp16': 5e-2, 'bf16': 2e-1}.get(sys.argv[1], 1e-3)
    assert torch.allclose(own, expected, rtol=tolerance, atol=tolerance), (name, (own - expected).abs().max())
print('ok', flush=True)
