"""Trains a classifier of digits by DistributedDataParallel or FSDP2, over the backends hvd and gloo one after the other.

    hvdrun -np 2 python examples/torch_backends.py
    hvdrun -np 2 python examples/torch_backends.py --parallel fsdp
    torchrun --nproc-per-node 2 examples/torch_backends.py

The script is one of torch.distributed; the name of the backend is all that differs. FSDP2 needs PyTorch 2.14 or newer for hvd.
"""

import argparse
import hashlib
import time

import horovod.torch  # noqa: F401  registers the backend hvd
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel


def parse_arguments():
    parser = argparse.ArgumentParser(description='Handwritten digits over two backends of torch.distributed')
    parser.add_argument('--parallel', choices=['ddp', 'fsdp'], default='ddp')
    parser.add_argument('--backends', default='hvd,gloo', help='names, separated by commas')
    parser.add_argument('--epochs', type=int, default=4)
    parser.add_argument('--width', type=int, default=256)
    return parser.parse_args()


def make_model(width, parallel):
    torch.manual_seed(11)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    if parallel == 'ddp':
        return DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh('cpu', (dist.get_world_size(),))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def whole_parameters(model):
    parts = [parameter.full_tensor() if hasattr(parameter, 'full_tensor') else parameter for parameter in model.parameters()]
    return torch.cat([part.detach().reshape(-1) for part in parts])


def train(arguments, images, labels):
    """(accuracy, seconds per step, hash of the parameters)"""
    rank, size = dist.get_rank(), dist.get_world_size()
    model = make_model(arguments.width, arguments.parallel)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    own_images, own_labels = images[rank::size], labels[rank::size]
    steps = len(images) // size // 32
    began = time.perf_counter()
    for _ in range(arguments.epochs):
        for step in range(steps):
            batch = slice(step * 32, (step + 1) * 32)
            optimizer.zero_grad()
            F.cross_entropy(model(own_images[batch]), own_labels[batch]).backward()
            optimizer.step()
    seconds = (time.perf_counter() - began) / (arguments.epochs * steps)
    with torch.no_grad():
        accuracy = (model(images).argmax(dim=1) == labels).float().mean()
    return float(accuracy), seconds, hashlib.sha256(whole_parameters(model).numpy().tobytes()).hexdigest()[:16]


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    images, labels = torch.from_numpy((images - 8.0) / 8.0).float(), torch.from_numpy(labels)
    for backend in arguments.backends.split(','):
        dist.init_process_group(backend)
        accuracy, seconds, parameters = train(arguments, images, labels)
        if dist.get_rank() == 0:
            print('{:4}  {} processes: accuracy {:.1f} %, {:.2f} ms a step, parameters {}'.format(
                backend, dist.get_world_size(), 100 * accuracy, 1000 * seconds, parameters), flush=True)
        dist.barrier()
        dist.destroy_process_group()


if __name__ == '__main__':
    main()
