"""A DistributedDataParallel model over Gloo beside a model of hvd in one script."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap

OWN_WORLD = True
HOSTS = (1,)


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        optimizer.step()


def distributed(hvd):
    dist.init_process_group('gloo')
    try:
        ours, theirs = model(1), model(2)
        train(ours, wrap(hvd, ours, sgd(ours)), lambda step: batch(hvd.rank(), step))
        parallel = DistributedDataParallel(theirs)
        train(parallel, sgd(parallel), lambda step: batch(hvd.rank(), step))
        return weights(ours, theirs)
    finally:
        dist.destroy_process_group()


def alone(size):
    ours, theirs = model(1), model(2)
    for net in (ours, theirs):
        train(net, sgd(net), lambda step: whole_batch(size, step))
    return weights(ours, theirs)
