"""A deep copy of the best model so far, by the loss of all ranks, is restored at the end."""

import copy

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data, mean_of):
    best, best_loss = None, float('inf')
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(net, data(step))
        loss.backward()
        value = mean_of(loss.detach())
        if value < best_loss:
            best, best_loss = copy.deepcopy(net), value
        optimizer.step()
    net.load_state_dict(best.state_dict())
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, lr=0.5)), lambda step: batch(hvd.rank(), step),
                 lambda loss: float(hvd.allreduce(loss)))


def alone(size):
    net = model()
    return train(net, sgd(net, lr=0.5), lambda step: whole_batch(size, step), float)
