"""An ordinary torch.distributed script, without a word of Horovod: hvdrun starts it as torchrun would.

    hvdrun -np 2 python examples/torch_distributed.py

RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are in the environment.
"""

import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group('gloo')
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(11)

    images, labels = load_digits(return_X_y=True)
    images, labels = torch.from_numpy((images - 8.0) / 8.0).float(), torch.from_numpy(labels)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    own_images, own_labels = images[rank::size], labels[rank::size]
    steps = len(images) // size // 32
    for epoch in range(3):
        for step in range(steps):
            batch = slice(step * 32, (step + 1) * 32)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(own_images[batch]), own_labels[batch])
            loss.backward()
            optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print('epoch {}  loss {:.4f}'.format(epoch + 1, float(mean) / size), flush=True)

    with torch.no_grad():
        accuracy = (model(images).argmax(dim=1) == labels).float().mean()
    if rank == 0:
        print('{} processes, local rank {}: accuracy {:.1f} %'.format(size, os.environ['LOCAL_RANK'],
                                                                       100 * float(accuracy)), flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
