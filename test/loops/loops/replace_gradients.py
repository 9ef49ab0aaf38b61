"""p.grad is assigned anew between backward() and step(): signs of the gradient, as signSGD."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(5):
        optimizer.zero_grad()
        loss_of(net, data(step)).backward()
        for p in net.parameters():
            p.grad = (p.grad * 1e3).round().sign()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net, lr=0.01)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net, lr=0.01), lambda step: whole_batch(size, step))
