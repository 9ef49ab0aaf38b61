"""Embeddings with sparse gradients: only the rows that a process touched travel.

    hvdrun -np 2 python examples/pytorch_sparse_embeddings.py

Tells the topic of short texts. Each word of a large vocabulary has a vector, and a batch holds a few of the words.
--sparse-as-dense sends whole tables instead: the same result, and faster when most rows are touched.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd

WORDS, TOPICS, WORDS_PER_TEXT = 20000, 4, 12


def parse_arguments():
    parser = argparse.ArgumentParser(description='Sparse embeddings with horovod.torch')
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('--batch-size', type=int, default=64, help='texts per step, of each process')
    parser.add_argument('--width', type=int, default=16)
    parser.add_argument('--lr', type=float, default=0.5)
    parser.add_argument('--sparse-as-dense', action='store_true', help='send whole tables')
    return parser.parse_args()


class Texts(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, width, mode='sum', sparse=True)
        self.topics = nn.Linear(width, TOPICS)  # an ordinary gradient beside the sparse one

    def forward(self, texts):
        return self.topics(self.words(texts))


def make_texts(count, chooser):
    """Rare words are rare, as in any language, and half of a text's words are of its topic."""
    topics = torch.randint(TOPICS, (count,), generator=chooser)
    words = (WORDS * torch.rand(count, WORDS_PER_TEXT, generator=chooser) ** 3).long()
    of_topic = torch.rand(count, WORDS_PER_TEXT, generator=chooser) < 0.5
    words = torch.where(of_topic, words - words % TOPICS + topics.unsqueeze(1), words)
    return words, topics


def main():
    args = parse_arguments()
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(3)

    model = Texts(args.width)
    nn.init.normal_(model.words.weight, std=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         sparse_as_dense=args.sparse_as_dense)

    chooser = torch.Generator().manual_seed(hvd.rank())
    losses = []
    often = max(1, args.steps // 4)
    for step in range(args.steps):
        texts, topics = make_texts(args.batch_size, chooser)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(texts), topics)
        loss.backward()
        optimizer.step()
        losses.append(float(hvd.allreduce(loss.detach(), name='loss')))
        if hvd.rank() == 0 and (step + 1) % often == 0:
            print('step {:4d}  loss {:.4f}'.format(step + 1, sum(losses[-often:]) / often), flush=True)

    rows = model.words.weight.grad.coalesce().indices().shape[1]
    if hvd.rank() == 0:
        print('the last step changed {} of {} words'.format(rows, WORDS), flush=True)


if __name__ == '__main__':
    main()
