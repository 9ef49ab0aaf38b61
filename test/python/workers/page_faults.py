"""A world of one whose optimizer exchanges. Prints the page faults of a step per page of its gradients, one block larger than
malloc keeps by itself and some that lie at the end of its heap."""

import resource
import statistics

import torch

import horovod.torch as hvd

SIZES = [10 << 20] + [1 << 20] * 8  # numbers of float32
PAGE = 4096


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def main():
    hvd.init()
    torch.set_num_threads(1)
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size)) for size in SIZES])
    ones = torch.ones(max(SIZES))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                         named_parameters=model.named_parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        sum(torch.dot(p, ones[:p.numel()]) for p in model).backward()
        optimizer.step()

    found = []
    for _ in range(17):
        before = faults()
        step()
        found.append(faults() - before)
    # Not of the first steps, in which the heap takes shape, and the median, since it may still grow in a single one.
    print(statistics.median(found[8:]) / (4 * sum(SIZES) / PAGE))
    assert all(bool((p == -17).all()) for p in model)
    hvd.shutdown()


if __name__ == '__main__':
    main()
