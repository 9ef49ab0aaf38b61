"""Measures training of a ResNet-50 on made-up images: images per second of each process and of all together.

    hvdrun -np 2 python examples/pytorch_synthetic_benchmark.py

Run it with one process first: what N processes reach beyond N times less than that is what the exchange costs.
--small makes a network of the same shape that a laptop trains at once.
"""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description='Synthetic benchmark with horovod.torch')
    parser.add_argument('--batch-size', type=int, default=32, help='images per step, of each process')
    parser.add_argument('--num-warmup-batches', type=int, default=10)
    parser.add_argument('--num-batches-per-iter', type=int, default=10)
    parser.add_argument('--num-iters', type=int, default=10, help='measurements')
    parser.add_argument('--fp16-allreduce', action='store_true', help='send gradients in half the bytes')
    parser.add_argument('--use-adasum', action='store_true', help='combine gradients by Adasum')
    parser.add_argument('--no-cuda', action='store_true', help='stay on the CPU')
    parser.add_argument('--small', action='store_true', help='a twentieth of the width, images of 32 x 32')
    return parser.parse_args()


class Bottleneck(nn.Module):
    """Three convolutions, and a way around them."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(outputs)
        self.around = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.around = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False),
                                        nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.around(x))


def resnet50(width=64, classes=1000):
    """161 tensors of parameters, from 64 elements to 2.4 million: 25.6 million in all for a width of 64."""
    layers = [nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
              nn.MaxPool2d(3, stride=2, padding=1)]
    inputs = width
    for stage, blocks in enumerate([3, 4, 6, 3]):
        for block in range(blocks):
            stage_width = width << stage
            layers.append(Bottleneck(inputs, stage_width, 2 if stage > 0 and block == 0 else 1))
            inputs = 4 * stage_width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return nn.Sequential(*layers)


def mean_and_error(values):
    """The mean, and half of the interval in which it lies with a probability of 95 %."""
    values = torch.tensor(values, dtype=torch.float64)
    error = 1.96 * float(values.std()) if len(values) > 1 else 0.0
    return float(values.mean()), error


def main():
    args = parse_arguments()
    hvd.init()
    torch.manual_seed(42)

    device = torch.device('cpu')
    if torch.cuda.is_available() and not args.no_cuda:
        torch.cuda.set_device(hvd.local_rank())
        device = torch.device('cuda', hvd.local_rank())
    else:
        torch.set_num_threads(1)

    size = 32 if args.small else 224
    model = resnet50(width=3 if args.small else 64).to(device)
    # Adasum keeps the step of a single process, others grow with the number of processes.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * (1 if args.use_adasum else hvd.size()))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
        op=hvd.Adasum if args.use_adasum else hvd.Average)

    images = torch.randn(args.batch_size, 3, size, size, device=device)
    labels = torch.randint(1000, (args.batch_size,), device=device)

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
        if device.type == 'cuda':
            torch.cuda.synchronize()

    def say(text):
        if hvd.rank() == 0:
            print(text, flush=True)

    parameters = sum(parameter.numel() for parameter in model.parameters())
    say('ResNet-50{}: {:.1f} million parameters, batches of {} on {}, {} processes'.format(
        ' (small)' if args.small else '', parameters / 1e6, args.batch_size, device, hvd.size()))
    steps(args.num_warmup_batches)
    rates = []
    for number in range(args.num_iters):
        start = time.perf_counter()
        steps(args.num_batches_per_iter)
        rates.append(args.batch_size * args.num_batches_per_iter / (time.perf_counter() - start))
        say('measurement {}: {:.1f} images/s per process'.format(number + 1, rates[-1]))

    # The processes wait for each other in every step, so that rank 0's rate is everybody's.
    mean, error = mean_and_error(rates)
    say('per process: {:.1f} +- {:.1f} images/s'.format(mean, error))
    say('total of {} processes: {:.1f} +- {:.1f} images/s'.format(hvd.size(), hvd.size() * mean, hvd.size() * error))


if __name__ == '__main__':
    main()
