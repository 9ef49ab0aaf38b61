"""Trains on handwritten digits with Adasum: gradients that agree are averaged, gradients that do not are added.

    hvdrun -np 2 python examples/pytorch_adasum.py

With Adasum the learning rate of a single process stays right for any number of them, so nothing is scaled here.
--compare trains a second time with the usual average, from the same start and on the same samples.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

import horovod.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description='Adasum on handwritten digits')
    parser.add_argument('--epochs', type=int, default=4)
    parser.add_argument('--batch-size', type=int, default=32, help='samples per step, of each process')
    parser.add_argument('--lr', type=float, default=0.05)
    parser.add_argument('--compare', action='store_true', help='train with the average as well')
    return parser.parse_args()


def train(args, op, images, labels):
    """Accuracy on all samples after training."""
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), op=op)

    own_images, own_labels = images[hvd.rank()::hvd.size()], labels[hvd.rank()::hvd.size()]
    steps = len(images) // hvd.size() // args.batch_size  # the same for all
    chooser = torch.Generator().manual_seed(hvd.rank())
    for _ in range(args.epochs):
        order = torch.randperm(len(own_images), generator=chooser)
        for step in range(steps):
            batch = order[step * args.batch_size:(step + 1) * args.batch_size]
            optimizer.zero_grad()
            F.cross_entropy(model(own_images[batch]), own_labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())


def main():
    args = parse_arguments()
    hvd.init()
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    images, labels = torch.from_numpy((images - 8.0) / 8.0).float(), torch.from_numpy(labels)

    ways = [('Adasum', hvd.Adasum)] + ([('average', hvd.Average)] if args.compare else [])
    for name, op in ways:
        accuracy = train(args, op, images, labels)
        if hvd.rank() == 0:
            print('{} after {} epochs on {} processes: accuracy {:.1f} %'.format(
                name, args.epochs, hvd.size(), 100 * accuracy), flush=True)


if __name__ == '__main__':
    main()
