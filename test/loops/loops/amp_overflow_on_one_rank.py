"""Mixed precision where the gradients of one rank overflow in one step: all ranks skip that step."""

from support import CpuScaler, batch, loss_of, model, sgd, weights, whole_batch, wrap

OVERFLOW = float(3e38)


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, sgd(net))
    scaler = CpuScaler()
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(net, batch(hvd.rank(), step))
        if step == 2 and hvd.rank() == hvd.size() - 1:
            loss = loss * OVERFLOW
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return weights(net), scaler.factor


def alone(size):
    net = model()
    optimizer = sgd(net)
    scaler = CpuScaler()
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(net, whole_batch(size, step))
        scaler.scale(loss * OVERFLOW if step == 2 else loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return weights(net), scaler.factor
