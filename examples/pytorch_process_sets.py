"""Trains two models at once in one job: the even ranks one, the odd ranks another, each in a process set of its own.

    hvdrun -np 4 python examples/pytorch_process_sets.py

The even ranks learn to tell small digits (0 to 4) from large ones, the odd ranks even digits from odd ones. The sets do
not wait for each other. At the end all ranks meet in the global set and know both results.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

import horovod.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description='Process sets with horovod.torch')
    parser.add_argument('--epochs', type=int, default=5)
    parser.add_argument('--batch-size', type=int, default=32, help='samples per step, of each process')
    return parser.parse_args()


def main():
    args = parse_arguments()
    # The sets depend on the size of the world, so they are added once it is known.
    hvd.init(process_sets='dynamic')
    if hvd.size() < 2:
        raise SystemExit('this example needs two processes at least: hvdrun -np 2 python pytorch_process_sets.py')
    torch.set_num_threads(1)

    # Every process adds every set, in the same order; each is a member of one.
    even = hvd.add_process_set(range(0, hvd.size(), 2))
    odd = hvd.add_process_set(range(1, hvd.size(), 2))
    mine = even if even.included() else odd

    images, digits = load_digits(return_X_y=True)
    images, digits = torch.from_numpy((images - 8.0) / 8.0).float(), torch.from_numpy(digits)
    labels = (digits >= 5).long() if mine is even else digits % 2

    torch.manual_seed(hvd.rank())
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    # Ranks are ranks of the world, also inside a set: its first member is the root.
    for name, parameter in model.named_parameters():
        hvd.broadcast_(parameter.data, root_rank=mine.ranks[0], name=name, process_set=mine)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), process_set=mine)

    own_images, own_labels = images[mine.rank()::mine.size()], labels[mine.rank()::mine.size()]
    steps = len(images) // mine.size() // args.batch_size
    for _ in range(args.epochs):
        for step in range(steps):
            batch = slice(step * args.batch_size, (step + 1) * args.batch_size)
            optimizer.zero_grad()
            F.cross_entropy(model(own_images[batch]), own_labels[batch]).backward()
            optimizer.step()

    with torch.no_grad():
        accuracy = (model(images).argmax(dim=1) == labels).double().mean()
    spread = hvd.allreduce(accuracy, op=hvd.Max, name='most', process_set=mine) - \
        hvd.allreduce(accuracy, op=hvd.Min, name='least', process_set=mine)
    if float(spread) != 0.0:
        raise SystemExit('rank {}: the models of one set differ'.format(hvd.rank()))

    # Everybody's results, by rank.
    accuracies = hvd.allgather(accuracy.reshape(1), name='accuracies')
    if hvd.rank() == 0:
        print('even ranks {}: small or large: accuracy {:.1f} %'.format(even.ranks, 100 * float(accuracies[0])))
        print('odd ranks {}: even or odd: accuracy {:.1f} %'.format(odd.ranks, 100 * float(accuracies[1])), flush=True)
    hvd.remove_process_set(odd)
    hvd.remove_process_set(even)


if __name__ == '__main__':
    main()
