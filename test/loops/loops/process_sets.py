"""Even and odd ranks train a model each, with clipping; the last rank may be alone in its set."""

import torch

from support import batch, loss_of, model, sgd, weights, wrap

RANKS_DIFFER = True


def train(net, optimizer, ranks):
    for step in range(4):
        optimizer.zero_grad()
        x = torch.cat([batch(rank, step)[0] for rank in ranks])
        y = torch.cat([batch(rank, step)[1] for rank in ranks])
        (5 * loss_of(net, (x, y))).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        optimizer.step()
    return weights(net)


def distributed(hvd):
    sets = [hvd.add_process_set(list(range(part, hvd.size(), 2))) for part in range(2)]
    mine = sets[hvd.rank() % 2]
    net = model()
    optimizer = hvd.DistributedOptimizer(sgd(net), named_parameters=net.named_parameters(), process_set=mine)
    result = train(net, optimizer, [hvd.rank()])
    everything = hvd.allgather_object(result)
    for one in sets:
        hvd.remove_process_set(one)
    return everything


def alone(size):
    results = []
    for rank in range(size):
        net = model()
        results.append(train(net, sgd(net), range(rank % 2, size, 2)))
    return results
