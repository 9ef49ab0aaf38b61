"""One step of training ResNet-50 on the rank's GPU, with random images and bfloat16; rank 0 prints a line of JSON.

    training_step.py WAY BATCH

WAY plain: without any exchange; hvd; ddp-nccl or ddp-gloo: PyTorch's DistributedDataParallel. BATCH: images of each rank. Under
hvdrun, whose variables DDP is begun with, too. Needs torchvision.
"""

import json
import os
import sys
import time

import torch
import torchvision

WARM_UP, LOOPS, STEPS = 8, 5, 10


def begin(way, model, optimizer):
    """(rank, number of ranks, model, optimizer) of a way."""
    if way == 'hvd':
        import horovod.torch as hvd
        hvd.init()
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        return hvd.rank(), hvd.size(), model, optimizer
    if way == 'plain':
        return 0, 1, model, optimizer
    import torch.distributed as dist
    dist.init_process_group(way[len('ddp-'):], rank=int(os.environ['RANK']), world_size=int(os.environ['WORLD_SIZE']))
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    return dist.get_rank(), dist.get_world_size(), model, optimizer


def main():
    way, batch = sys.argv[1], int(sys.argv[2])
    device = torch.device('cuda', int(os.environ.get('LOCAL_RANK', 0)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    model = torchvision.models.resnet50().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    rank, ranks, model, optimizer = begin(way, model, optimizer)
    images = torch.randn(batch, 3, 224, 224, device=device)
    labels = torch.randint(0, 1000, (batch,), device=device)
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(LOOPS):
        began = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - began) / STEPS * 1e3)
    if rank == 0:
        print(json.dumps({'training': way, 'ranks': ranks, 'images': batch, 'ms': round(sorted(times)[LOOPS // 2], 3),
                          'least_ms': round(min(times), 3)}), flush=True)
    if way.startswith('ddp'):
        torch.distributed.destroy_process_group()


main()
