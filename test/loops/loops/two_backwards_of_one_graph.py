"""retain_graph: two losses of one graph, one backward() each."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        x, y = data(step)
        out = net(x)
        out.pow(2).mean().backward(retain_graph=True)
        out.abs().mean().backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net), backward_passes_per_step=2), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
