"""A mixture of experts: each rank has one of its own under a plain optimizer, and hvd.alltoall() takes rows there and back."""

import torch
from torch import nn

from support import INPUTS, batch, model, sgd, weights


def expert(number):
    torch.manual_seed(30 + number)
    return nn.Linear(INPUTS, INPUTS)


def chosen(x, size):
    return (x[:, 0].abs() * 7).long() % size


def loss_of(out, y):
    return nn.functional.cross_entropy(out, y)


def distributed(hvd):
    net, own = model(), expert(hvd.rank())
    optimizer = hvd.DistributedOptimizer(sgd(net), named_parameters=net.named_parameters())
    plain = sgd(own)
    for step in range(4):
        optimizer.zero_grad()
        plain.zero_grad()
        x, y = batch(hvd.rank(), step)
        order = torch.argsort(chosen(x, hvd.size()), stable=True)
        splits = torch.bincount(chosen(x, hvd.size()), minlength=hvd.size()).to(torch.int32)
        arrived, sizes = hvd.alltoall(x[order].requires_grad_(), splits=splits, name='to the experts')
        back, _ = hvd.alltoall(torch.tanh(own(arrived)), splits=sizes, name='and back')
        loss_of(net(back), y[order]).backward()
        for p in own.parameters():
            p.grad /= hvd.size()  # the sum of all ranks' losses came by alltoall
        optimizer.step()
        plain.step()
    return weights(net), [hvd.broadcast_object(weights(own), root_rank=rank) for rank in range(hvd.size())]


def alone(size):
    net, experts = model(), [expert(number) for number in range(size)]
    optimizers = [sgd(module) for module in [net] + experts]
    for step in range(4):
        for optimizer in optimizers:
            optimizer.zero_grad()
        for rank in range(size):
            x, y = batch(rank, step)
            number = chosen(x, size)
            order = torch.argsort(number, stable=True)
            mixed = torch.cat([torch.tanh(experts[k](x[order][number[order] == k])) for k in range(size)])
            (loss_of(net(mixed), y[order]) / size).backward()
        for optimizer in optimizers:
            optimizer.step()
    return weights(net), [weights(module) for module in experts]
