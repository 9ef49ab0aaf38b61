"""DistributedOptimizer(op=hvd.Adasum): each step leads where Adasum of all ranks' own steps leads."""

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
size = hvd.size()


def make_model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)).double()


def batch(rank, step):
    torch.manual_seed(100 * step + rank)
    return torch.randn(5, 4, dtype=torch.float64)


def adasum(vectors):
    while len(vectors) > 1:
        level = []
        for a, b in zip(vectors[::2], vectors[1::2]):
            dot = (a * b).sum()
            level.append((1 - dot / (2 * (a * a).sum())) * a + (1 - dot / (2 * (b * b).sum())) * b)
        vectors = level + ([vectors[-1]] if len(vectors) % 2 else [])
    return vectors[0]


for cls, kwargs in ((torch.optim.SGD, {'lr': 0.1}), (torch.optim.SGD, {'lr': 0.1, 'momentum': 0.9}),
                    (torch.optim.Adam, {'lr': 0.01})):
    model = make_model()
    optimizer = hvd.DistributedOptimizer(cls(model.parameters(), **kwargs), op=hvd.Adasum,
                                         named_parameters=model.named_parameters())
    assert type(optimizer).__name__ == cls.__name__ and isinstance(optimizer, cls)
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())
    # Every rank's optimizer, here: each with its own state, all at the same parameters.
    models = [make_model() for _ in range(size)]
    optimizers = [cls(m.parameters(), **kwargs) for m in models]
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    schedulers = [torch.optim.lr_scheduler.StepLR(o, step_size=2, gamma=0.5) for o in optimizers]
    for step in range(5):
        optimizer.zero_grad()
        model(batch(hvd.rank(), step)).pow(2).mean().backward()
        optimizer.synchronize()  # nothing to wait for
        assert optimizer.step() is None
        scheduler.step()
        starts = [p.detach().clone() for p in models[0].parameters()]
        for r, (m, o, s) in enumerate(zip(models, optimizers, schedulers)):
            o.zero_grad()
            m(batch(r, step)).pow(2).mean().backward()
            o.step()
            s.step()
        for start, p, *others in zip(starts, model.parameters(), *[m.parameters() for m in models]):
            want = start + adasum([q.detach() - start for q in others])
            assert torch.allclose(p, want, rtol=1e-9, atol=1e-12), (p, want)
            with torch.no_grad():
                for q in others:
                    q.copy_(want)

    loss = None

    def closure():
        optimizer.zero_grad()
        value = model(batch(hvd.rank(), 50)).pow(2).mean()
        value.backward()
        return value

    loss = optimizer.step(closure)
    assert loss is not None and loss.item() > 0
    try:
        with optimizer.skip_synchronize():
            pass
        raise SystemExit('skip_synchronize was accepted')
    except AssertionError:
        pass
    model(batch(hvd.rank(), 60)).sum().backward()
    try:
        optimizer.zero_grad()
        raise SystemExit('zero_grad was accepted while steps are exchanged')
    except AssertionError:
        pass
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    # A rank whose batch leaves a layer out changes nothing there.
    if hvd.rank() == 0:
        model[0](batch(0, 70)).sum().backward()
    else:
        model(batch(hvd.rank(), 70)).sum().backward()
    optimizer.step()
    everywhere = hvd.allgather_object([p.tolist() for p in model.parameters()])
    assert everywhere == [everywhere[0]] * size

try:
    hvd.DistributedOptimizer(torch.optim.SGD(make_model().parameters(), lr=0.1), op=hvd.Adasum,
                             process_set=hvd.ProcessSet([0]))
    raise SystemExit('Adasum on a process set was accepted')
except (NotImplementedError, ValueError):
    pass
hvd.barrier()
print('ok', flush=True)
