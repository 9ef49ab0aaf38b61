#!/usr/bin/env python3
"""A training step over two hosts with one rank each, which are network namespaces (test/system/host_rig.py), beside another build of
the project: the small network of the MNIST examples with horovod.torch, whose loss is averaged after each step. It is the step that
gains most by fast paths for small sums: it computes little, and waits for a sum of 4 bytes each time.

Run by itself, as root: hosts_step.py --beside OTHER/build. Prints the time of a step and the ratio of both builds, in turns."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "system"))
STEPS, WARM_UP = 150, 30


def rank(batch):
    import torch
    import torch.nn.functional as F

    import horovod.torch as hvd
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 10, 5), torch.nn.MaxPool2d(2), torch.nn.ReLU(), torch.nn.Conv2d(10, 20, 5), torch.nn.MaxPool2d(2),
        torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(320, 50), torch.nn.ReLU(), torch.nn.Linear(50, 10))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    images, labels = torch.rand(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    times = []
    for _ in range(STEPS + WARM_UP):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        hvd.allreduce(loss.detach(), name="loss")
        times.append(time.perf_counter() - begin)
    if hvd.rank() == 0:
        print(f"step {1e6 * statistics.median(times[WARM_UP:]):.1f}", flush=True)
    hvd.shutdown()


def step_of(rig, build, batch, python):
    """Microseconds."""
    command = rig.on_head(build / "bin" / "hvdrun", "-np", 2, "-H", "hvd1:1,hvd2:1", "--prefix", "", python, os.path.abspath(__file__),
                          "--rank", batch)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("step ")]
    if done.returncode != 0 or len(lines) != 1:
        sys.exit(f"hosts_step.py: {' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return float(lines[0].split()[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--beside", type=pathlib.Path, required=True, help="another build, which takes turns with this one")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64], help="images of a rank in each step (1 64)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--python", default="/usr/bin/python3", help="of the ranks, with PyTorch (/usr/bin/python3)")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    from host_rig import WHY_NOT, HostRig
    if WHY_NOT:
        print(f"left out: {WHY_NOT}")
        return
    with tempfile.TemporaryDirectory() as folder:
        rig = HostRig(folder, 2)
        try:
            for batch in args.batches:
                ours, other = [], []
                for number in range(args.rounds):
                    turns = [(ours, args.build_dir), (other, args.beside)]
                    for times, build in turns if number % 2 == 0 else turns[::-1]:
                        times.append(step_of(rig, build.resolve(), batch, args.python))
                ratios = [a / b for a, b in zip(ours, other)]
                print(f"{batch} images: {statistics.median(ours):.0f} us a step, the other build {statistics.median(other):.0f}; "
                      f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}), load {os.getloadavg()[0]:.1f}", flush=True)
        finally:
            rig.down()


if __name__ == "__main__":
    if "--rank" in sys.argv:
        rank(int(sys.argv[sys.argv.index("--rank") + 1]))
    else:
        main()
