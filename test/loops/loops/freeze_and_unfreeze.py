"""The first layer is frozen at the start and trained from the third step on."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for p in net[0].parameters():
        p.requires_grad_(False)
    for step in range(5):
        if step == 2:
            for p in net[0].parameters():
                p.requires_grad_(True)
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, momentum=0.9)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net, momentum=0.9), lambda step: whole_batch(size, step))
