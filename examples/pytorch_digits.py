"""Trains a classifier of handwritten digits on several processes.

    hvdrun -np 2 python examples/pytorch_digits.py

The data, 1,797 scans of 8 x 8 pixels, ship inside scikit-learn. Without hvdrun the script trains alone. The batch
size is that of all processes together, so that any number of them which divides it takes the same steps.
"""

import argparse
import hashlib
import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description='Handwritten digits with horovod.torch')
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--lr', type=float, default=0.1, help='learning rate')
    parser.add_argument('--batch-size', type=int, default=64, help='samples per step, of all processes together')
    parser.add_argument('--seed', type=int, default=42)
    parser.add_argument('--dtype', choices=['float32', 'float64'], default='float32')
    parser.add_argument('--steps', type=int, default=None, help='stop after so many steps')
    parser.add_argument('--num-workers', type=int, default=0, help='data loader processes of each process')
    parser.add_argument('--log-losses', metavar='FILE', help='write the loss of each step to FILE, as JSON')
    parser.add_argument('--check-hashes', action='store_true',
                        help='fail if the parameters of two processes differ after an epoch')
    parser.add_argument('--no-exchange', action='store_true',
                        help='do not exchange gradients: shows what the checks of this script catch')
    return parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(64, 128)
        self.hidden2 = nn.Linear(128, 64)
        self.output = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.hidden1(x))
        x = F.relu(self.hidden2(x))
        return self.output(x)


def load_data(dtype):
    """Training and test set, the same on every process."""
    images, labels = load_digits(return_X_y=True)
    split = train_test_split((images - 8.0) / 8.0, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (torch.from_numpy(array) for array in split)
    return TensorDataset(train_x.to(dtype), train_y), (test_x.to(dtype), test_y)


def test_accuracy(model, images, labels):
    """Each process tests its share; the counts are averaged over all of them."""
    images, labels = images[hvd.rank()::hvd.size()], labels[hvd.rank()::hvd.size()]
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum()
    counts = torch.tensor([float(right), float(len(labels))], dtype=torch.float64)
    counts = hvd.allreduce(counts, name='test_accuracy')
    return float(counts[0] / counts[1])


def check_hashes(model):
    """Ends all processes if one has other parameters than the first."""
    own = hashlib.sha256()
    for parameter in model.parameters():
        own.update(parameter.detach().numpy().tobytes())
    first = hvd.broadcast_object(own.hexdigest(), root_rank=0, name='hash')
    differing = torch.tensor([0 if own.hexdigest() == first else 1])
    differing = int(hvd.allreduce(differing, op=hvd.Sum, name='differing'))
    if differing:
        raise SystemExit('parameters differ: {} of {} processes have others than rank 0'.format(
            differing, hvd.size()))


def main():
    args = parse_arguments()

    # Horovod: join the other processes.
    hvd.init()
    if args.batch_size % hvd.size() != 0:
        raise SystemExit('--batch-size {} cannot be shared equally by {} processes'.format(
            args.batch_size, hvd.size()))

    torch.set_num_threads(1)
    torch.manual_seed(args.seed + hvd.rank())
    dtype = getattr(torch, args.dtype)
    train_set, (test_images, test_labels) = load_data(dtype)

    # Horovod: each process reads its share of every batch.
    sampler = DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank(), seed=args.seed, drop_last=True)
    loader = DataLoader(train_set, batch_size=args.batch_size // hvd.size(), sampler=sampler, drop_last=True,
                        num_workers=args.num_workers)

    model = Net().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    # Horovod: start everywhere from what rank 0 has.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    # Horovod: average the gradients of all processes before each step.
    if not args.no_exchange:
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    losses = []
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        first = len(losses)
        for images, labels in loader:
            if args.steps is not None and len(losses) >= args.steps:
                break
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            # Horovod: the loss of the whole batch is the average of the shares'.
            losses.append(float(hvd.allreduce(loss.detach(), name='loss')))
        if len(losses) == first:
            break
        accuracy = test_accuracy(model, test_images, test_labels)
        if hvd.rank() == 0:
            print('epoch {}/{}  loss {:.4f}  test accuracy {:.1f} %'.format(
                epoch + 1, args.epochs, sum(losses[first:]) / (len(losses) - first), 100 * accuracy), flush=True)
        if args.check_hashes:
            check_hashes(model)
        scheduler.step()

    if args.log_losses and hvd.rank() == 0:
        with open(args.log_losses, 'w') as file:
            json.dump(losses, file)


if __name__ == '__main__':
    main()
