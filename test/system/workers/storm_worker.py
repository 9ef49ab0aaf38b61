"""Training that counts: each step adds the numbers of its items, each item once, in a world of any size.

    storm_worker.py FOLDER

It tells each commit in FOLDER/progress (rank 0) and ends once FOLDER/finish exists. AssertionError: an item was lost or counted
twice.
"""

import os
import sys
import time

import torch

import horovod.torch as hvd

ITEMS = 12  # of a step

folder = sys.argv[1]
hvd.init()
model = torch.nn.Linear(64, 256, bias=False)
torch.nn.init.zeros_(model.weight)  # before the state, which saves the weights that it finds and goes back to them
state = hvd.elastic.TorchState(model=model, step=0, total=0)
begun = set()


def total_after(steps):
    return steps * ITEMS * (steps * ITEMS + 1) // 2


def tell(step):
    path = os.path.join(folder, 'progress')
    with open(path + '.part', 'w') as file:
        file.write('{} {}'.format(step, hvd.size()))
    os.replace(path + '.part', path)


def take_step():
    mine = torch.arange(state.step * ITEMS + 1, (state.step + 1) * ITEMS + 1)[hvd.rank()::hvd.size()]
    facts = torch.tensor([int(mine.sum()), len(mine), int(os.path.exists(os.path.join(folder, 'finish')))])
    items, count, finish = hvd.allreduce(facts, op=hvd.Sum, name='items').tolist()
    assert count == ITEMS, (count, hvd.size())
    grown = hvd.allreduce(torch.full((256, 64), float(len(mine))), op=hvd.Sum, name='weights')
    with torch.no_grad():
        state.model.weight += grown
    state.total += items
    state.step += 1
    return finish > 0


@hvd.elastic.run
def train(state):
    print('trains as rank {} of {} from step {} pid {}'.format(hvd.rank(), hvd.size(), state.step, os.getpid()), flush=True)
    while True:
        assert state.total == total_after(state.step), (state.total, state.step)
        assert bool((state.model.weight == state.step * ITEMS).all()), (state.model.weight[0, 0], state.step)
        if state.step in begun:
            print('repeats step {} pid {}'.format(state.step, os.getpid()), flush=True)
        begun.add(state.step)
        finish = take_step()
        time.sleep(0.005)  # some of what happens must fall between two collectives
        state.commit()
        if hvd.rank() == 0:
            tell(state.step)
        if finish:
            return


train(state)
assert state.total == total_after(state.step)
print('counted {} items in {} steps, size {}'.format(state.total, state.step, hvd.size()), flush=True)
