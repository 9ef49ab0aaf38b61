"""Sparse gradients of embeddings, against dense ones."""

import torch

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
size, rank = hvd.size(), hvd.rank()

# The operation itself: other numbers of entries on each rank, also none; entries that several ranks have.
indices = torch.tensor([[r % 5 for r in range(rank + 1)]])
values = torch.arange(2.0 * (rank + 1)).view(rank + 1, 2) + rank
mine = torch.sparse_coo_tensor(indices, values, (5, 2))
if rank == size - 1:
    mine = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0, 2), (5, 2))
dense = hvd.allreduce(mine.to_dense(), op=hvd.Sum)
assert torch.allclose(hvd.sparse_allreduce_async(mine, 'sparse', hvd.Sum)().to_dense(), dense)
wait = hvd.sparse_allreduce_async(mine, 'sparse', hvd.Average)
result = wait()
assert result.layout == torch.sparse_coo and torch.allclose(result.to_dense(), dense / size)
for bad in (lambda: hvd.sparse_allreduce_async(mine, 'bad', hvd.Max),
            lambda: hvd.sparse_allreduce_async(torch.ones(2), 'bad', hvd.Sum),
            lambda: hvd.allreduce(mine)):
    try:
        bad()
        raise SystemExit('this was accepted')
    except ValueError:
        pass


def words(r, step):
    torch.manual_seed(10 * step + r)
    return torch.randint(0, 20, (r % 3 + 1,))


def train(sparse, as_dense, op, leave_out=False):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(20, 3, sparse=sparse), torch.nn.Linear(3, 2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), sparse_as_dense=as_dense, op=op,
                                         named_parameters=model.named_parameters())
    for step in range(4):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        if leave_out and step and rank == 0:
            model[1](torch.ones(1, 3)).pow(2).sum().backward()  # without the embedding
        else:
            model(words(rank, step)).pow(2).sum().backward()
        optimizer.step()
        assert leave_out or model[0].weight.grad.is_sparse == sparse
    return [p.detach() for p in model.parameters()]


for leave_out in (False, True):
    for op in (hvd.Average, hvd.Sum):
        want = train(False, False, op, leave_out)
        for as_dense in (False, True):
            for p, q in zip(train(True, as_dense, op, leave_out), want):
                assert torch.allclose(p, q, rtol=1e-4, atol=1e-5), (as_dense, op, leave_out, p - q)
hvd.barrier()
assert not hvd.mpi_ops._handle_map
print('ok', flush=True)
