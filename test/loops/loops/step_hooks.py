"""Hooks of the optimizer's step, registered before the wrapping and after, run once a step each."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap

TORCH = (2, 1)


def train(net, before, wrapped, data):
    calls = []
    before.register_step_pre_hook(lambda *args: calls.append('pre'))
    optimizer = wrapped(before)
    optimizer.register_step_post_hook(lambda *args: calls.append('post'))
    for step in range(3):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
    return weights(net), calls


def distributed(hvd):
    net = model()
    return train(net, sgd(net), lambda plain: wrap(hvd, net, plain), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda plain: plain, lambda step: whole_batch(size, step))
