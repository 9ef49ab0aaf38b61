"""An ordinary DistributedDataParallel script with a checkpoint, without a word of Horovod.

    hvdrun --elastic -np 2 --min-np 1 python examples/pytorch_ddp_elastic.py --checkpoint digits.pt
    torchrun --nproc-per-node 2 --max-restarts 3 examples/pytorch_ddp_elastic.py --checkpoint digits.pt

When a process fails, or a host comes or goes, all processes are started again, with another RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT, and go on after the last epoch in the checkpoint.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

BATCH = 32


def parse_arguments():
    parser = argparse.ArgumentParser(description='Handwritten digits with torch.distributed, restarted after failures')
    parser.add_argument('--epochs', type=int, default=4)
    parser.add_argument('--checkpoint', metavar='FILE', required=True, help='on a disk that all processes see')
    parser.add_argument('--fail-in-epoch', type=int, metavar='N',
                        help='the last rank of the first start ends by itself in this epoch')
    return parser.parse_args()


def save_checkpoint(path, epoch, model, optimizer):
    """Leaves the old file or the new one, never a part of it."""
    torch.save({'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, path + '.part')
    os.replace(path + '.part', path)


def load_checkpoint(path, model, optimizer):
    """The number of epochs that are done. Each process reads the file, after rank 0 has looked whether it is there."""
    found = [os.path.exists(path)]
    dist.broadcast_object_list(found, src=0)
    if not found[0]:
        return 0
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint['model'])
    optimizer.load_state_dict(checkpoint['optimizer'])
    return checkpoint['epoch']


def main():
    args = parse_arguments()
    restarts = int(os.environ.get('TORCHELASTIC_RESTART_COUNT', '0'))
    dist.init_process_group('gloo')
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(11)

    images, labels = load_digits(return_X_y=True)
    images, labels = torch.from_numpy((images - 8.0) / 8.0).float(), torch.from_numpy(labels)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    first = load_checkpoint(args.checkpoint, model, optimizer)
    if rank == 0:
        print('start {} with {} processes after epoch {}'.format(restarts, size, first), flush=True)

    steps = len(images) // size // BATCH
    for epoch in range(first, args.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))[rank::size]
        for step in range(steps):
            batch = order[step * BATCH:(step + 1) * BATCH]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            if restarts == 0 and rank == size - 1 and epoch + 1 == args.fail_in_epoch and step == steps // 2:
                os._exit(1)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print('epoch {}/{}  size {}  loss {:.6f}'.format(
                epoch + 1, args.epochs, size, float(mean) / size), flush=True)
            save_checkpoint(args.checkpoint, epoch + 1, model, optimizer)
        dist.barrier()

    with torch.no_grad():
        accuracy = (model.module(images).argmax(dim=1) == labels).float().mean()
    if rank == 0:
        print('accuracy {:.1f} % after {} restarts'.format(100 * float(accuracy), restarts), flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
