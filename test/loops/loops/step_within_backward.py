"""An optimizer for each parameter, stepped by a hook as soon as its gradient is there, so that few gradients live at once."""

import torch

from support import batch, loss_of, model, weights, whole_batch

TORCH = (2, 1)


def train(net, optimizers, data):
    def step(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(step)
    for number in range(4):
        loss_of(net, data(number)).backward()
    return weights(net)


def optimizers(net):
    return {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}


def distributed(hvd):
    net = model()
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    names = {p: name for name, p in net.named_parameters()}
    wrapped = {p: hvd.DistributedOptimizer(optimizer, named_parameters=[(names[p], p)])
               for p, optimizer in optimizers(net).items()}
    return train(net, wrapped, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, optimizers(net), lambda step: whole_batch(size, step))
