"""Gradients are averaged by hand between backward() and step(), asynchronously, as scripts of PyTorch's own distributed package do."""

import torch

from support import batch, loss_of, model, weights, whole_batch


def train(net, optimizer, data, average):
    for step in range(5):
        net.zero_grad()
        loss_of(net, data(step)).backward()
        average(net, step)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        optimizer.step()
    return weights(net)


def adam(net):
    return torch.optim.Adam(net.parameters(), lr=0.03)


def distributed(hvd):
    net = model()
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)

    def average(net, step):
        if step % 2:
            handles = [hvd.allreduce_async_(p.grad, name=name) for name, p in net.named_parameters()]
            while not all(hvd.poll(handle) for handle in handles):
                pass
            for handle in handles:
                hvd.synchronize(handle)
        else:
            flat = torch.nn.utils.parameters_to_vector([p.grad for p in net.parameters()])
            mean = hvd.allreduce(flat / hvd.size(), op=hvd.Sum)
            at = 0
            for p in net.parameters():
                p.grad.copy_(mean[at:at + p.numel()].view_as(p))
                at += p.numel()

    return train(net, adam(net), lambda step: batch(hvd.rank(), step), average)


def alone(size):
    net = model()
    return train(net, adam(net), lambda step: whole_batch(size, step), lambda *unused: None)
