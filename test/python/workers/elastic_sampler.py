"""Mid-epoch, worlds of other sizes share what is left of a dataset; says what each rank took, once it is committed.

    elastic_sampler.py FOLDER

All ranks go one batch further for each file FOLDER/batch.N, N = 1, 2, ...
"""

import os
import sys
import time

import torch

import horovod.torch as hvd

folder = sys.argv[1]
BATCH, ITEMS = 7, 1003

hvd.init()
model = torch.nn.Linear(1, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.25, momentum=0.5))
sampler = hvd.elastic.ElasticSampler(range(ITEMS), seed=5)
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, batch=0)


def adapt_learning_rate():
    for group in state.optimizer.param_groups:
        group['lr'] = 0.25 * hvd.size()


state.register_reset_callbacks([adapt_learning_rate])
waited = []


def allowed():
    """Whether the test lets the ranks go on; rank 0 looks for all."""
    return hvd.broadcast_object(os.path.exists(os.path.join(folder, 'batch.{}'.format(state.batch + 1))), 0, 'allowed')


@hvd.elastic.run
def train(state):
    adapt_learning_rate()  # a new rank has no reset
    lrs = hvd.allgather_object(state.optimizer.param_groups[0]['lr'])
    assert lrs == [0.25 * hvd.size()] * hvd.size(), lrs
    indices = list(state.sampler)
    for at in range(0, len(indices), BATCH):
        while not allowed():
            time.sleep(0.01)
        batch = indices[at:at + BATCH]
        state.optimizer.zero_grad()
        state.model(torch.ones(len(batch), 1)).sum().backward()
        state.optimizer.step()
        state.sampler.record_batch(at // BATCH, len(batch))
        state.batch += 1
        print('batch {} of rank {} of {} took {}'.format(state.batch, hvd.rank(), hvd.size(),
                                                         ','.join(map(str, batch))), flush=True)
        state.commit()


train(state)
print('epoch ends after {} items'.format(state.sampler.processed_num), flush=True)
