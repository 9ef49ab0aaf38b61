"""A trainer in the style of transformers: decay and no-decay groups, accumulation with a shorter last step, clipping, warm-up, a
moving average, and losses logged as the mean of all ranks."""

import torch

from support import batch, loss_of, model, weights, whole_batch, wrap

ACCUMULATE, BATCHES = 3, 7


def groups(net):
    return [{'params': [p for p in net.parameters() if p.dim() > 1], 'weight_decay': 0.1},
            {'params': [p for p in net.parameters() if p.dim() == 1], 'weight_decay': 0.0}]


def train(net, optimizer, data, passes, mean):
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    average = {name: p.detach().clone() for name, p in net.named_parameters()}
    log = []
    for epoch in range(2):
        running = 0.0
        for number in range(BATCHES):
            last = number + 1 == BATCHES
            here = BATCHES % ACCUMULATE if number >= BATCHES - BATCHES % ACCUMULATE else ACCUMULATE
            passes(optimizer, here)
            loss = loss_of(net, data(10 * epoch + number)) / here
            loss.backward()
            running += loss.detach()
            if (number + 1) % ACCUMULATE == 0 or last:
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                optimizer.step()
                schedule.step()
                net.zero_grad()
                with torch.no_grad():
                    for name, p in net.named_parameters():
                        average[name].mul_(0.9).add_(p, alpha=0.1)
        log.append(mean(running, epoch))
    return weights(net), average, log, [group['lr'] for group in optimizer.param_groups]


def distributed(hvd):
    net = model()
    optimizer = wrap(hvd, net, torch.optim.AdamW(groups(net), lr=0.02), backward_passes_per_step=ACCUMULATE)

    def passes(optimizer, number):
        if optimizer.backward_passes_per_step != number:
            optimizer.set_backward_passes_per_step(number)

    return train(net, optimizer, lambda step: batch(hvd.rank(), step), passes,
                 lambda loss, epoch: hvd.allreduce(loss, name='loss.{}'.format(epoch)))


def alone(size):
    net = model()
    return train(net, torch.optim.AdamW(groups(net), lr=0.02), lambda step: whole_batch(size, step), lambda *unused: None,
                 lambda loss, epoch: loss)
