"""The full recipe: all that a training script of several processes should do, on handwritten digits.

    hvdrun -np 2 python examples/pytorch_recipe.py --checkpoint digits.pt

- the learning rate grows with the number of processes, and is reached over some epochs of warm-up
- everybody starts from what rank 0 has: parameters, optimizer state, epoch
- metrics are averages over all processes
- rank 0 writes a checkpoint after each epoch, in a way that leaves a whole file whatever happens; the same command
  goes on from there

Run it with --epochs 4 and then with --epochs 8: the second run takes epochs 5 to 8 and ends where one run of 8 would.
"""

import argparse
import hashlib
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description='The full recipe on handwritten digits')
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=32, help='samples per step, of each process')
    parser.add_argument('--base-lr', type=float, default=0.025, help='learning rate for a single process')
    parser.add_argument('--warmup-epochs', type=float, default=2, help='epochs until the full learning rate')
    parser.add_argument('--checkpoint', metavar='FILE', help='written after each epoch; read at the start if it exists')
    parser.add_argument('--fp16-allreduce', action='store_true', help='send gradients in half the bytes')
    parser.add_argument('--seed', type=int, default=42)
    return parser.parse_args()


def load_data():
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split((images - 8.0) / 8.0, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (torch.from_numpy(part) for part in parts)
    return TensorDataset(train_x.float(), train_y), TensorDataset(test_x.float(), test_y)


class Metric(object):
    """A mean over all samples of all processes."""

    def __init__(self, name):
        self.name = name
        self.sums = torch.zeros(2, dtype=torch.float64)  # of the values, of their weights

    def add(self, value, weight):
        self.sums += torch.tensor([float(value) * weight, weight], dtype=torch.float64)

    def mean(self):
        sums = hvd.allreduce(self.sums, op=hvd.Sum, name=self.name)
        return float(sums[0] / sums[1])


def learning_rate(args, epoch):
    """The rate at a point of training; `epoch` has a fraction. It depends on nothing else, so it resumes by itself."""
    full = args.base_lr * hvd.size()
    if epoch < args.warmup_epochs:
        return args.base_lr + (full - args.base_lr) * epoch / args.warmup_epochs
    return full * 0.3 ** (epoch // 5)


def save_checkpoint(path, epoch, model, optimizer):
    """A reader of the file finds the old one or the new one, never a part."""
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            torch.save({'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def resume(path, model, optimizer):
    """Rank 0 alone reads the file, which the other hosts need not have. Returns how many epochs are done."""
    epoch = 0
    if hvd.rank() == 0 and path and os.path.exists(path):
        checkpoint = torch.load(path)
        model.load_state_dict(checkpoint['model'])
        optimizer.load_state_dict(checkpoint['optimizer'])
        epoch = checkpoint['epoch']
    epoch = hvd.broadcast_object(epoch, root_rank=0, name='epoch')
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return epoch


def train(args, epoch, model, optimizer, loader):
    model.train()
    loss_metric = Metric('train.loss')
    for step, (images, labels) in enumerate(loader):
        for group in optimizer.param_groups:
            group['lr'] = learning_rate(args, epoch + step / len(loader))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss_metric.add(loss.detach(), len(labels))
    return loss_metric.mean()


def test(model, dataset):
    """Each process tests its share, which may be a sample larger than another's."""
    model.eval()
    images, labels = (tensor[hvd.rank()::hvd.size()] for tensor in dataset.tensors)
    accuracy = Metric('test.accuracy')
    with torch.no_grad():
        accuracy.add((model(images).argmax(dim=1) == labels).double().mean(), len(labels))
    return accuracy.mean()


def main():
    args = parse_arguments()
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    train_set, test_set = load_data()
    sampler = DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank(), seed=args.seed)
    loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)

    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.base_lr, momentum=0.9, weight_decay=1e-4)
    # Wrap first and resume then: the state of an optimizer does not move into its wrapper.
    compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         compression=compression)
    first_epoch = resume(args.checkpoint, model, optimizer)
    if first_epoch and hvd.rank() == 0:
        print('resuming after epoch {}'.format(first_epoch), flush=True)

    for epoch in range(first_epoch, args.epochs):
        sampler.set_epoch(epoch)
        loss = train(args, epoch, model, optimizer, loader)
        accuracy = test(model, test_set)
        if hvd.rank() == 0:
            print('epoch {}/{}  learning rate {:.4f}  loss {:.4f}  test accuracy {:.1f} %'.format(
                epoch + 1, args.epochs, optimizer.param_groups[0]['lr'], loss, 100 * accuracy), flush=True)
            if args.checkpoint:
                save_checkpoint(args.checkpoint, epoch + 1, model, optimizer)

    digest = hashlib.sha256(b''.join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
    print('rank {} ends with parameters {}'.format(hvd.rank(), digest[:16]), flush=True)


if __name__ == '__main__':
    main()
