"""Lightning's toggle_optimizer(): parameters of the other optimizer need no gradient while one is stepped with a closure."""

import torch

from support import batch, loss_of, model, sgd, weights, whole_batch


def train(net, optimizers, data):
    modules = [net[0], net[2]]
    for step in range(6):
        turn = step % 2
        needed = [p.requires_grad for p in net.parameters()]
        for p in modules[1 - turn].parameters():
            p.requires_grad_(False)
        for p in modules[turn].parameters():
            p.requires_grad_(True)

        def closure():
            loss = loss_of(net, data(step))
            optimizers[turn].zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(modules[turn].parameters(), 0.2)
            return loss

        optimizers[turn].step(closure)
        for p, before in zip(net.parameters(), needed):
            p.requires_grad_(before)
    return weights(net)


def optimizers(net):
    return [sgd(net[0], momentum=0.9), torch.optim.Adam(net[2].parameters(), lr=0.02)]


def distributed(hvd):
    net = model()
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    wrapped = [hvd.DistributedOptimizer(optimizer, named_parameters=module.named_parameters(prefix))
               for optimizer, module, prefix in zip(optimizers(net), (net[0], net[2]), ('body', 'head'))]
    return train(net, wrapped, lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, optimizers(net), lambda step: whole_batch(size, step))
