"""Local SGD: three steps of a plain optimizer on each rank, then the weights of all ranks are averaged in place."""

import torch

from support import batch, loss_of, model, sgd, weights


def steps(net, optimizer, rank, phase):
    for step in range(3):
        optimizer.zero_grad()
        loss_of(net, batch(rank, 3 * phase + step)).backward()
        optimizer.step()


def distributed(hvd):
    net = model()
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    optimizer = sgd(net)
    for phase in range(3):
        steps(net, optimizer, hvd.rank(), phase)
        if phase % 2:
            hvd.grouped_allreduce_([p.data for p in net.parameters()], op=hvd.Average)
        else:
            for name, p in net.named_parameters():
                hvd.allreduce_(p.data, op=hvd.Average, name='weights.' + name)
    return weights(net)


def alone(size):
    nets = [model() for _ in range(size)]
    optimizers = [sgd(net) for net in nets]
    for phase in range(3):
        for rank in range(size):
            steps(nets[rank], optimizers[rank], rank, phase)
        with torch.no_grad():
            for same in zip(*[net.parameters() for net in nets]):
                mean = torch.stack([p.detach() for p in same]).mean(0)
                for p in same:
                    p.copy_(mean)
    return weights(nets[0])
