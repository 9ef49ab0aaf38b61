"""What the loops share: small models and batches that depend on rank and step alone."""

import torch
from torch import nn
import torch.nn.functional as F

INPUTS, CLASSES, BATCH = 4, 3, 6


def model(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(INPUTS, 8), nn.Tanh(), nn.Linear(8, CLASSES))


def batch(rank, step, rows=BATCH):
    """Inputs of shape (rows, INPUTS) and a class for each."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return (torch.randn(rows, INPUTS, generator=generator),
            torch.randint(0, CLASSES, (rows,), generator=generator))


def whole_batch(size, step, rows=BATCH):
    """The batches of all ranks, in the order of ranks."""
    parts = [batch(rank, step, rows) for rank in range(size)]
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


def loss_of(net, data):
    x, y = data
    return F.cross_entropy(net(x), y)


def weights(*modules):
    """Copies of all parameters and buffers, by number and name."""
    return {'{}.{}'.format(number, name): value.detach().clone()
            for number, module in enumerate(modules) for name, value in module.state_dict().items()}


def sgd(net, **options):
    return torch.optim.SGD(net.parameters(), **dict({'lr': 0.1}, **options))


def wrap(hvd, net, optimizer, **options):
    """The two calls that every script has after it made model and optimizer."""
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    return hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), **options)


class CpuScaler(object):
    """Does what torch.cuda.amp.GradScaler does, on the CPU of every PyTorch: scales the loss; unscales once a step, by
    multiplying p.grad in place; skips a step whose gradients are not finite, and halves the scale."""

    def __init__(self, scale=1024.0, growth_interval=2):
        self.factor, self.growth_interval, self.good_steps = scale, growth_interval, 0
        self.unscaled, self.found_inf = False, False

    def scale(self, loss):
        return loss * self.factor

    def unscale_(self, optimizer):
        assert not self.unscaled
        self.unscaled = True
        grads = [p.grad for group in optimizer.param_groups for p in group['params'] if p.grad is not None]
        with torch.no_grad():
            for grad in grads:
                grad.data.mul_(1.0 / self.factor)  # as the fused kernel: the version counter does not see it
        self.found_inf = not all(bool(torch.isfinite(grad).all()) for grad in grads)

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.found_inf:
            optimizer.step()

    def update(self):
        if self.found_inf:
            self.factor, self.good_steps = self.factor / 2, 0
        else:
            self.good_steps += 1
            if self.good_steps % self.growth_interval == 0:
                self.factor *= 2
        self.unscaled = self.found_inf = False
