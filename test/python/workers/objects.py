"""Objects, parameters and optimizer state travel from the root."""

import torch

import horovod.torch as hvd

hvd.init()
for root in range(hvd.size()):
    sent = {'root': root, 'list': list(range(1000)), 'text': 'x' * root} if hvd.rank() == root else None
    got = hvd.broadcast_object(sent, root_rank=root)
    assert got == {'root': root, 'list': list(range(1000)), 'text': 'x' * root}
    assert (got is sent) == (hvd.rank() == root)

# Parameters, also those that are not contiguous.
torch.manual_seed(hvd.rank())
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).to(memory_format=torch.channels_last)
root = hvd.size() - 1
hvd.broadcast_parameters(model.state_dict(), root_rank=root)
torch.manual_seed(root)
expected = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
for p, q in zip(model.parameters(), expected.parameters()):
    assert torch.equal(p, q)

# Optimizer state: only the root has stepped, and its options differ.
for cls, kwargs in ((torch.optim.SGD, {'momentum': 0.5}), (torch.optim.Adam, {'amsgrad': True}),
                    (torch.optim.Adagrad, {}), (torch.optim.RMSprop, {'centered': True})):
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(3, 2)
    optimizer = cls(model.parameters(), lr=0.1 * (hvd.rank() + 1), **kwargs)
    if hvd.rank() == 1:
        for _ in range(3):
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=1)
    own = optimizer.state_dict()
    theirs = hvd.broadcast_object(own, root_rank=1)
    assert str(own) == str(theirs), (cls, own, theirs)
    assert own['state'], cls
    assert own['param_groups'][0]['lr'] == 0.2
    hvd.broadcast_parameters(model.state_dict(), root_rank=1)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()

# Different parameters: every rank says so.
optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True) for _ in range(1 + hvd.rank() % 2)], lr=0.1)
try:
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    raise SystemExit('different parameters were accepted')
except ValueError as error:
    assert 'parameters' in str(error)
hvd.barrier()
print('ok', flush=True)
