"""Trains a classifier of handwritten digits on processes that come and go.

    hvdrun --elastic -np 2 --min-np 1 --max-np 4 --host-discovery-script ./hosts.sh \\
        python examples/pytorch_elastic_digits.py

Kill a process, or change what hosts.sh prints: the others train on. After a death at most the step is repeated that
was not committed; after a host came or went nothing is. Under plain hvdrun, or alone, it is an ordinary script.

With --checkpoint FILE a job that is asked to stop (hvdrun stop JOB --after-step) saves there, ends with exit code 75,
and goes on from there when it is started again.
"""

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

import horovod.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description='Handwritten digits with horovod.torch.elastic')
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--lr', type=float, default=0.05, help='learning rate per process')
    parser.add_argument('--batch-size', type=int, default=16, help='samples per step and process')
    parser.add_argument('--seed', type=int, default=42)
    parser.add_argument('--checkpoint', metavar='FILE', help='written when the job is stopped; read if it exists')
    return parser.parse_args()


def load_data():
    """Training and test set, the same on every process."""
    images, labels = load_digits(return_X_y=True)
    split = train_test_split((images - 8.0) / 8.0, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (torch.from_numpy(array) for array in split)
    return TensorDataset(train_x.float(), train_y), (test_x.float(), test_y)


def test_accuracy(model, images, labels):
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())


def save_checkpoint(path, state):
    """Leaves the old file or the new one, never a part of it."""
    torch.save({'model': state.model.state_dict(), 'optimizer': state.optimizer.state_dict(),
                'sampler': state.sampler.state_dict(), 'values': (state.epoch, state.steps, state.loss)},
               path + '.part')
    os.replace(path + '.part', path)


def load_checkpoint(path, state):
    checkpoint = torch.load(path)
    state.model.load_state_dict(checkpoint['model'])
    state.optimizer.load_state_dict(checkpoint['optimizer'])
    state.sampler.load_state_dict(checkpoint['sampler'])
    state.epoch, state.steps, state.loss = checkpoint['values']
    state.save()


def main():
    args = parse_arguments()
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    train_set, (test_images, test_labels) = load_data()
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    # Elastic: everything that training needs to go on. `steps` and `loss` are those of this epoch.
    sampler = hvd.elastic.ElasticSampler(train_set, seed=args.seed)
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, steps=0, loss=0.0)

    # Elastic: each value that depends on the number of processes follows it.
    def scale_learning_rate():
        for group in optimizer.param_groups:
            group['lr'] = args.lr * hvd.size()

    state.register_reset_callbacks([scale_learning_rate])

    if args.checkpoint:
        if hvd.rank() == 0 and os.path.exists(args.checkpoint):
            load_checkpoint(args.checkpoint, state)
            scale_learning_rate()
            print('resuming after step {} of epoch {}'.format(state.steps, state.epoch + 1), flush=True)

        # Elastic: all processes come here at the same commit when the job is to stop.
        @hvd.elastic.on_stop
        def save():
            if hvd.rank() == 0:
                save_checkpoint(args.checkpoint, state)

    @hvd.elastic.run
    def train(state):
        while state.epoch < args.epochs:
            loader = DataLoader(train_set, batch_size=args.batch_size, sampler=state.sampler)
            for batch, (images, labels) in enumerate(loader):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                state.loss += float(hvd.allreduce(loss.detach(), name='loss'))
                state.steps += 1
                # Elastic: the rest of the epoch is shared anew when the number of processes changes.
                state.sampler.record_batch(batch, len(images))
                state.commit()
            if hvd.rank() == 0:
                print('epoch {}/{}  size {}  steps {}  loss {:.6f}  test accuracy {:.1f} %'.format(
                    state.epoch + 1, args.epochs, hvd.size(), state.steps, state.loss / max(state.steps, 1),
                    100 * test_accuracy(model, test_images, test_labels)), flush=True)
            state.epoch += 1
            state.steps, state.loss = 0, 0.0
            state.sampler.set_epoch(state.epoch)
            state.commit()

    train(state)
    if args.checkpoint and hvd.rank() == 0 and os.path.exists(args.checkpoint):
        os.remove(args.checkpoint)


if __name__ == '__main__':
    main()
