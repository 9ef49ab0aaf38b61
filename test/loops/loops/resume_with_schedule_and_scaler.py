"""Rank 0 alone has the checkpoint: model, optimizer, schedule, scaler and epoch reach the others by broadcasts."""

import torch

from support import CpuScaler, batch, loss_of, model, weights, whole_batch, wrap


def things(seed, wrapped):
    net = model(seed)
    optimizer = wrapped(net, torch.optim.Adam(net.parameters(), lr=0.03))
    return net, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5), CpuScaler()


def train(net, optimizer, schedule, scaler, data, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        scaler.scale(loss_of(net, data(step))).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()


def checkpoint(size):
    net, optimizer, schedule, scaler = things(1, lambda net, optimizer: optimizer)
    train(net, optimizer, schedule, scaler, lambda step: whole_batch(size, step), 0, 3)
    return {'net': net.state_dict(), 'optimizer': optimizer.state_dict(), 'schedule': schedule.state_dict(),
            'scaler': vars(scaler), 'step': 3}


def finish(parts, data, saved):
    net, optimizer, schedule, scaler = parts
    schedule.load_state_dict(saved['schedule'])
    vars(scaler).update(saved['scaler'])
    train(net, optimizer, schedule, scaler, data, saved['step'], 7)
    return weights(net), schedule.get_last_lr(), scaler.factor


def distributed(hvd):
    parts = things(1 + hvd.rank(), lambda net, optimizer: wrap(hvd, net, optimizer))
    saved = checkpoint(hvd.size()) if hvd.rank() == 0 else {}
    if hvd.rank() == 0:
        parts[0].load_state_dict(saved.pop('net'))
        parts[1].load_state_dict(saved.pop('optimizer'))
    hvd.broadcast_parameters(parts[0].state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(parts[1], root_rank=0)
    return finish(parts, lambda step: batch(hvd.rank(), step), hvd.broadcast_object(saved, root_rank=0))


def alone(size):
    parts = things(1, lambda net, optimizer: optimizer)
    saved = checkpoint(size)
    parts[0].load_state_dict(saved['net'])
    parts[1].load_state_dict(saved['optimizer'])
    return finish(parts, lambda step: whole_batch(size, step), saved)
