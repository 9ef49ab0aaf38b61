"""backward(inputs=...) over the head alone in every other step."""

from support import batch, loss_of, model, sgd, weights, whole_batch, wrap


def train(net, optimizer, data):
    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(net, data(step))
        loss.backward(inputs=list(net[2].parameters())) if step % 2 else loss.backward()
        optimizer.step()
    return weights(net)


def distributed(hvd):
    net = model()
    return train(net, wrap(hvd, net, sgd(net)), lambda step: batch(hvd.rank(), step))


def alone(size):
    net = model()
    return train(net, sgd(net), lambda step: whole_batch(size, step))
