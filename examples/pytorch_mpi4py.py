"""mpi4py and Horovod in one world: MPI moves what is the application's, Horovod averages the gradients.

    mpirun -np 2 python examples/pytorch_mpi4py.py

hvd.init() gets the communicator, so the ranks are the same in both. Rank 0 makes the data and scatters them by MPI; the
model is trained as always.
"""

import argparse

import torch
import torch.nn.functional as F
from mpi4py import MPI

import horovod.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description='mpi4py beside horovod.torch')
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('--samples', type=int, default=400, help='of all processes together')
    return parser.parse_args()


def main():
    args = parse_arguments()
    world = MPI.COMM_WORLD
    hvd.init(comm=world)
    if (hvd.rank(), hvd.size()) != (world.Get_rank(), world.Get_size()):
        raise SystemExit('Horovod has rank {} of {}, MPI has rank {} of {}'.format(hvd.rank(), hvd.size(), world.Get_rank(), world.Get_size()))
    torch.set_num_threads(1)

    # By MPI: everybody gets a share of what rank 0 made.
    shares = None
    if world.Get_rank() == 0:
        torch.manual_seed(5)
        inputs = torch.randn(args.samples, 3, dtype=torch.float64)
        outputs = inputs @ torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64) + 3.0
        shares = [(inputs[r::world.Get_size()].numpy(), outputs[r::world.Get_size()].numpy())
                  for r in range(world.Get_size())]
    inputs, outputs = (torch.from_numpy(array) for array in world.scatter(shares, root=0))

    # By Horovod: the same model everywhere.
    model = torch.nn.Linear(3, 1).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    for _ in range(args.steps):
        optimizer.zero_grad()
        F.mse_loss(model(inputs).squeeze(1), outputs).backward()
        optimizer.step()

    # By both, which have to agree.
    error = float(F.mse_loss(model(inputs).squeeze(1), outputs).detach())
    by_mpi = world.allreduce(error, op=MPI.SUM) / world.Get_size()
    by_horovod = float(hvd.allreduce(torch.tensor(error, dtype=torch.float64), name='error'))
    if abs(by_mpi - by_horovod) > 1e-12:
        raise SystemExit('MPI says {}, Horovod says {}'.format(by_mpi, by_horovod))
    if hvd.rank() == 0:
        weights = ', '.join('{:.3f}'.format(value) for value in model.weight.detach().flatten())
        print('{} processes found weights {} and bias {:.3f}'.format(hvd.size(), weights, float(model.bias)),
              flush=True)


if __name__ == '__main__':
    main()
