"""Process sets made at init: membership, errors, collectives on each, several at once, and training on one.

    process_sets.py
"""

import torch

import horovod.torch as hvd

hvd.init()
size, rank = hvd.size(), hvd.rank()
hvd.shutdown()

# The same ranks twice: an error, but hvd is initialised, and init with a better list works.
try:
    hvd.init(process_sets=[hvd.ProcessSet([0]), hvd.ProcessSet([1]), hvd.ProcessSet([0])])
    raise SystemExit('a set that is there twice was accepted')
except ValueError as error:
    assert 'position 2' in str(error), error
assert hvd.is_initialized()
even = hvd.ProcessSet(range(0, size, 2))
odd = hvd.ProcessSet(range(1, size, 2))
first = hvd.ProcessSet(range(size - 1))
sets = [even, odd] + ([first] if first.ranks not in (even.ranks, odd.ranks) else [])
hvd.init(process_sets=sets)
assert [s.process_set_id for s in sets] == list(range(1, len(sets) + 1)), sets
hvd.init(process_sets=sets)  # again: nothing changes
assert [s.process_set_id for s in sets] == list(range(1, len(sets) + 1)), sets
known = hvd.mpi_ops._basics._get_process_set_ids_and_ranks()
assert known == dict([(0, list(range(size)))] + [(s.process_set_id, s.ranks) for s in sets]), known
own, other = (even, odd) if rank % 2 == 0 else (odd, even)
assert own.included() and not other.included()
assert own.rank() == rank // 2 and own.size() == len(own.ranks)
assert other.size() == len(other.ranks)
assert str(own) == 'ProcessSet(process_set_id={}, ranks={}, mpi_comm=None)'.format(own.process_set_id, own.ranks)


def refused(call, *words):
    try:
        call()
    except ValueError as error:
        assert '\n' not in str(error), error
        for word in words:
            assert word in str(error), (word, error)
    else:
        raise SystemExit('this was accepted')


refused(other.rank)
x = torch.full((3,), float(rank))
for call in (lambda: hvd.allreduce(x, process_set=other), lambda: hvd.allgather(x, process_set=other),
             lambda: hvd.broadcast(x, other.ranks[0], process_set=other), lambda: hvd.barrier(process_set=other),
             lambda: hvd.alltoall(x, process_set=other), lambda: hvd.reducescatter(x, process_set=other),
             lambda: hvd.grouped_allreduce([x, x], process_set=other)):
    refused(call)
refused(lambda: hvd.broadcast(x, other.ranks[0], process_set=own), str(other.ranks[0]))  # a root outside the set
refused(lambda: hvd.add_process_set([0, 1]), 'HOROVOD_DYNAMIC_PROCESS_SETS')
refused(lambda: hvd.remove_process_set(own), 'HOROVOD_DYNAMIC_PROCESS_SETS')
assert hvd.remove_process_set(hvd.global_process_set) is False

# Every collective on every set. Ranks that name others are ranks of the world.
for process_set in sets:
    if not process_set.included():
        continue
    ranks = process_set.ranks
    total = float(sum(ranks))
    for call in (hvd.allreduce, hvd.allreduce_):
        assert (call(x.clone(), op=hvd.Sum, process_set=process_set) == total).all()
    assert torch.allclose(hvd.allreduce(x, process_set=process_set), torch.full((3,), total / len(ranks)))
    one, two = hvd.grouped_allreduce([x, 2 * x], op=hvd.Sum, process_set=process_set)
    assert (one == total).all() and (two == 2 * total).all()
    rows = torch.full((rank + 1, 2), float(rank))
    gathered = hvd.allgather(rows, process_set=process_set)
    assert torch.equal(gathered, torch.cat([torch.full((r + 1, 2), float(r)) for r in ranks]))
    for root in ranks:
        assert (hvd.broadcast(x, root, process_set=process_set) == root).all()
        assert hvd.broadcast_object({'root': rank}, root, process_set=process_set) == {'root': root}
    assert hvd.allgather_object(rank, process_set=process_set) == ranks
    sent = torch.arange(float(len(ranks))) + 10 * rank
    got, splits = hvd.alltoall(sent, splits=[1] * len(ranks), process_set=process_set)
    assert got.tolist() == [10 * r + process_set.rank() for r in ranks] and splits.tolist() == [1] * len(ranks)
    share = hvd.reducescatter(torch.arange(float(len(ranks))), op=hvd.Sum, process_set=process_set)
    assert share.tolist() == [process_set.rank() * len(ranks)]
    hvd.barrier(process_set=process_set)

# One name in several sets at once, submitted in another order on each rank.
mine = [s for s in [hvd.global_process_set] + sets if s.included()]
for round_ in range(20):
    order = mine if (rank + round_) % 2 else mine[::-1]
    handles = [(s, hvd.allreduce_async(x, op=hvd.Sum, name='same', process_set=s)) for s in order]
    for s, handle in handles[::-1]:
        assert (hvd.synchronize(handle) == float(sum(s.ranks))).all()

# A set does not wait for anybody outside it.
if rank == 0:
    for _ in range(10):
        hvd.allreduce(x, name='alone', process_set=even)
elif rank % 2 == 0:
    for _ in range(10):
        hvd.allreduce(x, name='alone', process_set=even)
hvd.barrier()

# Unnamed collectives meet although ranks have run a different number of them in other sets.
for _ in range(rank + 1 if even.size() == 1 or odd.size() == 1 else 0):
    if own.size() == 1:
        hvd.allreduce(x, process_set=own)
if own is even:
    for _ in range(3):
        assert (hvd.allreduce(x, op=hvd.Sum, process_set=even) == float(sum(even.ranks))).all()
assert (hvd.allreduce(torch.ones(1), op=hvd.Sum) == size).all()

# Two models trained beside each other.
torch.manual_seed(rank)
model = torch.nn.Linear(4, 2)
for p in model.parameters():
    hvd.broadcast_(p.data, own.ranks[0], process_set=own)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                     named_parameters=model.named_parameters(), process_set=own)
outsider = torch.nn.Linear(4, 2)
elsewhere = hvd.DistributedOptimizer(torch.optim.SGD(outsider.parameters(), lr=0.1), process_set=other)
for step in range(5):
    torch.manual_seed(100 * step + rank)
    batch = torch.randn(8, 4)
    optimizer.zero_grad()
    model(batch).pow(2).mean().backward()
    optimizer.step()
    outsider(batch).sum().backward()
    alone = outsider.weight.grad.clone()
    elsewhere.step()  # not a member: an ordinary step with this rank's gradient
    assert torch.equal(outsider.weight.grad, alone)
    elsewhere.zero_grad()
weights = hvd.allgather_object([p.tolist() for p in model.parameters()])
assert all(weights[r] == weights[own.ranks[0]] for r in own.ranks), weights
if other.ranks:
    assert weights[own.ranks[0]] != weights[other.ranks[0]]

# A new world has none of the old sets.
hvd.shutdown()
hvd.init()
assert own.process_set_id is None and own.size() is None and own.rank() is None
hvd.barrier()
print('ok', flush=True)
