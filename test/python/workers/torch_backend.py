"""The backend `hvd` of torch.distributed: each collective, groups, models, beside gloo on the same numbers where order is fixed.

Argument: nothing, or the name of one check. Prints 'done RANK'.
"""

import datetime
import gc
import inspect
import sys
import time

import horovod.torch as hvd  # noqa: F401
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def make(rank, kind=torch.float32, size=1000):
    generator = torch.Generator().manual_seed(rank + 1)
    return torch.randint(-8, 8, (size,), generator=generator).to(kind)


def check_collectives(rank, size):
    for kind in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8):
        every = [make(r, kind) for r in range(size)]
        for op, expected in ((dist.ReduceOp.SUM, lambda a: sum(a[1:], a[0].clone())), (dist.ReduceOp.MAX, lambda a: torch.stack(a).amax(0)),
                             (dist.ReduceOp.MIN, lambda a: torch.stack(a).amin(0))):
            own = make(rank, kind)
            dist.all_reduce(own, op)
            assert torch.equal(own, expected(every)), (kind, op)
    for op, function in ((dist.ReduceOp.BAND, torch.bitwise_and), (dist.ReduceOp.BOR, torch.bitwise_or),
                         (dist.ReduceOp.BXOR, torch.bitwise_xor)):
        own, expected = make(rank, torch.int32), make(0, torch.int32)
        for r in range(1, size):
            expected = function(expected, make(r, torch.int32))
        dist.all_reduce(own, op)
        assert torch.equal(own, expected), op
    every = [make(r) for r in range(size)]
    for root in range(size):
        own = make(rank)
        dist.broadcast(own, root)
        assert torch.equal(own, every[root])
        own = make(rank)
        dist.reduce(own, root)
        assert torch.equal(own, sum(every[1:], every[0].clone()) if rank == root else every[rank]), 'reduce'
        parts = [torch.zeros(1000) for _ in range(size)] if rank == root else None
        dist.gather(make(rank), parts, root)
        assert rank != root or all(torch.equal(a, b) for a, b in zip(parts, every))
        own = torch.zeros(1000)
        dist.scatter(own, every if rank == root else None, root)
        assert torch.equal(own, every[rank])
    parts = [torch.zeros(1000) for _ in range(size)]
    dist.all_gather(parts, make(rank))
    assert all(torch.equal(a, b) for a, b in zip(parts, every))
    lists = [[torch.zeros(5), torch.zeros(2, 3)] for _ in range(size)]
    dist.all_gather_coalesced(lists, [make(rank, size=5), make(rank, size=6).view(2, 3)])
    for r in range(size):
        assert torch.equal(lists[r][0], make(r, size=5)) and torch.equal(lists[r][1], make(r, size=6).view(2, 3))
    whole = torch.zeros(size, 1000)
    dist.all_gather(list(whole), make(rank))
    assert torch.equal(whole, torch.stack(every))
    whole = torch.zeros(size * 1000)
    dist.all_gather_into_tensor(whole, make(rank))
    assert torch.equal(whole, torch.cat(every))
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX):
        own = torch.zeros(10)
        dist.reduce_scatter_tensor(own, make(rank, size=10 * size), op)
        rows = torch.stack([make(r, size=10 * size) for r in range(size)])
        assert torch.equal(own, (rows.sum(0) if op == dist.ReduceOp.SUM else rows.amax(0))[10 * rank:10 * rank + 10])
        dist.reduce_scatter(own, list(make(rank, size=10 * size).view(size, 10)), op)
        assert torch.equal(own, (rows.sum(0) if op == dist.ReduceOp.SUM else rows.amax(0))[10 * rank:10 * rank + 10])
    # rank r sends r + s + 1 rows to rank s
    send = [rank + s + 1 for s in range(size)]
    own = torch.zeros(sum(send), 2)
    dist.all_to_all_single(own, torch.cat([torch.full((count, 2), rank * 10. + s) for s, count in enumerate(send)]), send, send)
    assert torch.equal(own, torch.cat([torch.full((r + rank + 1, 2), r * 10. + rank) for r in range(size)]))
    parts = [torch.zeros(r + 1) for r in range(size)]
    dist.all_to_all(parts, [torch.full((rank + 1,), float(rank)) for _ in range(size)])
    assert [part.tolist() for part in parts] == [[float(r)] * (r + 1) for r in range(size)]
    objects = [None] * size
    dist.all_gather_object(objects, {'rank': rank, 'text': 'x' * rank})
    assert [one['rank'] for one in objects] == list(range(size))
    one = ['from 0' if rank == 0 else None]
    dist.broadcast_object_list(one)
    assert one == ['from 0']
    transposed = make(rank).view(10, 100).t()
    dist.all_reduce(transposed)
    assert torch.equal(transposed, sum(every[1:], every[0].clone()).view(10, 100).t())
    own = torch.sparse_coo_tensor([[rank, 9]], [1., 2.], (10,))
    dist.all_reduce(own)
    assert own.to_dense().tolist() == [1.] * size + [0.] * (9 - size) + [2. * size], own
    works = [dist.all_reduce(make(rank), async_op=True) for _ in range(600)]
    assert all(work.wait() for work in works)


def check_messages(rank, size):
    left, right = (rank - 1) % size, (rank + 1) % size
    for count in (3, 100000):
        got = torch.zeros(count)
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((count,), float(rank)), right),
                                        dist.P2POp(dist.irecv, got, left)])
        for work in works:
            work.wait()
        assert torch.equal(got, torch.full((count,), float(left)))
    got = torch.zeros(3)
    dist.send(torch.full((3,), float(rank)), right)  # all of them first
    dist.recv(got, left)
    assert got[0] == left


def check_groups(rank, size):
    halves = [list(range(size // 2)), list(range(size // 2, size))]
    for turn in range(2):
        groups = [dist.new_group(ranks) for ranks in halves]
        for ranks, group in zip(halves, groups):
            if rank in ranks:
                own = torch.tensor([float(rank)])
                dist.all_reduce(own, group=group)
                assert own.item() == sum(ranks)
                dist.broadcast(own, ranks[-1], group=group)
        gc.collect()
        again = dist.new_group(list(range(size)))
        own = torch.ones(1)
        dist.all_reduce(own, group=again)
        assert own.item() == size
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh('cpu', (2, size // 2), mesh_dim_names=('rows', 'columns'))
    own = torch.tensor([float(rank)])
    dist.all_reduce(own, group=mesh.get_group('rows'))
    assert own.item() == rank % (size // 2) * 2 + size // 2
    import torch.distributed._functional_collectives as functional
    assert functional.all_reduce(torch.ones(2), 'sum', list(range(size))).tolist() == [size] * 2


def model(width=32):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.Tanh(), torch.nn.Linear(width, 8))


def train(group, rank, hook=None, width=32, **options):
    ddp = DDP(model(width), process_group=group, bucket_cap_mb=width * 6e-5, **options)
    if hook is not None:
        ddp.register_comm_hook(group, hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(5):
        optimizer.zero_grad()
        ddp(torch.randn(4, 16)).square().mean().backward()
        optimizer.step()
    return torch.cat([parameter.detach().reshape(-1) for parameter in ddp.parameters()])


def check_ddp(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook, fp16_compress_hook
    ours, gloo = dist.group.WORLD, dist.new_group(backend='gloo')
    for hook, options in ((None, {}), (None, {'gradient_as_bucket_view': True}), (None, {'static_graph': True}),
                          (None, {'find_unused_parameters': True}), (fp16_compress_hook, {}), (bf16_compress_hook, {})):
        a, b = train(ours, rank, hook, **options), train(gloo, rank, hook, **options)
        if size == 2:
            assert torch.equal(a, b), (hook, options, (a - b).abs().max())
        assert torch.allclose(a, b, atol=1e-5 if hook is None else 1e-2), (hook, options, (a - b).abs().max())


def in_registered_memory(tensor):
    from horovod.common import _library
    return bool(_library.lib().hvd_is_registered(tensor.data_ptr(), tensor.nbytes))


def shared_kib():
    with open('/proc/self/status') as status:
        return int(next(line for line in status if line.startswith('RssShmem')).split()[1])


def check_buckets(rank, size):
    """Buckets of DDP lie in registered memory as long as they live, and the numbers are gloo's; tensors of scripts stay where they are."""
    gloo = dist.new_group(backend='gloo')
    for options in ({}, {'gradient_as_bucket_view': True}, {'static_graph': True}, {'find_unused_parameters': True}):
        a, b = [train(group, rank, width=5000, **options) for group in (dist.group.WORLD, gloo)]
        assert torch.equal(a, b) if size == 2 else torch.allclose(a, b, atol=1e-5), (options, (a - b).abs().max())

    own = torch.full((100000,), rank + 1.)
    seen = own.numpy()
    for work in [dist.all_reduce(own, async_op=True) for _ in range(2)]:
        work.wait()
    assert (seen == size * sum(range(size + 1))).all() and not in_registered_memory(own)
    ddp = DDP(torch.nn.Linear(300, 300, bias=False), gradient_as_bucket_view=True)
    ddp.module.weight.register_hook(lambda gradient: dist.all_reduce(gradient) or gradient)  # a script's own, in the middle of backward()
    for step in range(3):
        ddp(torch.full((1, 300), rank + 1.)).sum().backward()
        assert torch.equal(ddp.module.weight.grad, torch.full((300, 300), (step + 1.) * sum(range(size + 1)))), step
        assert in_registered_memory(ddp.module.weight.grad) == hasattr(torch.UntypedStorage, '_swap_data_ptr_')
    if not hasattr(torch.UntypedStorage, '_swap_data_ptr_'):
        return

    kept, used = ddp.module.weight.grad[5], []
    for _ in range(12):
        ddp = DDP(torch.nn.Linear(2000, 500), gradient_as_bucket_view=True)  # 4 MB
        ddp(torch.ones(1, 2000)).sum().backward()
        assert in_registered_memory(ddp.module.weight.grad) and torch.all(kept == 3. * sum(range(size + 1)))
        used.append(shared_kib())
    assert used[-1] < used[3] + 4000, used


def check_join(rank, size):
    ddp = DDP(model())
    with ddp.join():
        for _ in range(rank + 1):
            ddp(torch.ones(2, 16)).sum().backward()


def check_fsdp(rank, size):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor
    results = []
    for name in ('hvd', 'gloo'):
        mesh = init_device_mesh('cpu', (size,)) if name == 'hvd' else None
        if mesh is None:
            from torch.distributed.device_mesh import DeviceMesh
            mesh = DeviceMesh.from_group(dist.new_group(backend='gloo'), 'cpu')
        sharded = model()
        for layer in (sharded[0], sharded[2]):
            fully_shard(layer, mesh=mesh)
        fully_shard(sharded, mesh=mesh)
        if name == 'hvd' and hasattr(sharded, 'set_allocate_memory_from_process_group_for_comm'):
            sharded.set_allocate_memory_from_process_group_for_comm(True)
        optimizer = torch.optim.SGD(sharded.parameters(), lr=0.1)
        torch.manual_seed(rank)
        for _ in range(4):
            optimizer.zero_grad()
            sharded(torch.randn(4, 16)).square().mean().backward()
            optimizer.step()
        results.append([parameter.full_tensor().detach() for parameter in sharded.parameters() if isinstance(parameter, DTensor)])
    assert results[0] and all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*results))


def check_futures(rank, size):
    """One of a group is set while a collective of another group, whose future was asked for first, waits for this rank's next step; and
    one that was asked for late before the collectives that follow it."""
    limit = datetime.timedelta(seconds=30)
    first, second = dist.new_group(timeout=limit), dist.new_group(timeout=limit)
    a, b, c, d, e = [torch.full((4,), float(rank + number)) for number in range(5)]
    if rank == 0:
        held = dist.all_reduce(a, group=first, async_op=True).get_future()
        dist.all_reduce(b, group=second, async_op=True).get_future().wait()
        works = [dist.all_reduce(value, group=second, async_op=True) for value in (c, d)]
        later, sooner = works[1].get_future(), works[0].get_future()
        sooner.wait()
        dist.all_reduce(e, group=first)
        for future in (held, later):
            future.wait()
    else:
        dist.all_reduce(b, group=second)
        dist.all_reduce(c, group=second)
        dist.all_reduce(a, group=first)
        dist.all_reduce(e, group=first)
        dist.all_reduce(d, group=second)
    for number, value in enumerate((a, b, c, d, e)):
        assert value.tolist() == [sum(range(size)) + number * size] * 4, (number, value)


def check_order(rank, size):
    """Collectives of a group that meet the same memory run one after the other, though nobody waits in between."""
    for count in (3, 50000):
        own, others = torch.full((count,), float(rank + 1)), [torch.zeros(count) for _ in range(size)]
        works = [dist.all_reduce(own, async_op=True) for _ in range(3)]
        works.append(dist.all_gather(others, own, async_op=True))
        works.append(dist.broadcast(own, 0, async_op=True))
        works.append(dist.all_reduce(own, dist.ReduceOp.MAX, async_op=True))
        for work in works:
            work.wait()
        expected = float(sum(range(size + 1)) * size ** 2)
        for value in [own] + others:
            assert torch.equal(value, torch.full((count,), expected)), (count, expected, value)


def check_unawaited(rank, size):
    """What a script starts with async_op=True and never waits for ends: at once where it drops the work, by itself where it keeps it."""
    total = float(sum(range(size + 1)))

    def begin(count):
        own = torch.full((count,), rank + 1.)
        return own, dist.all_reduce(own, async_op=True)

    for count in (3, 20000, 2000000):
        own = begin(count)[0]
        assert torch.all(own == total), (count, own[0])
        own, work = begin(count)
        dist.barrier()
        assert torch.all(own == total), (count, own[0])
        own, work = begin(count)
        deadline = time.monotonic() + 30
        while not torch.all(own == total):
            assert time.monotonic() < deadline, (count, own[0])
            time.sleep(0.01)
        del work
    got = torch.zeros(100000)
    dist.isend(torch.full((100000,), float(rank)), (rank + 1) % size)  # nobody keeps it, and the receiver comes later
    dist.recv(got, (rank - 1) % size)
    assert torch.all(got == (rank - 1) % size)
    late = torch.ones(5)
    if rank == 0:
        dist.broadcast(late.fill_(7), 0)
    else:
        time.sleep(0.3)
        dist.broadcast(late, 0, async_op=True)
        assert late.tolist() == [7.] * 5
    dist.all_reduce(torch.ones(rank + 1), async_op=True)  # said on stderr
    if 'delay_all_reduce_named_params' not in inspect.signature(DDP).parameters:
        return
    results = []
    for group in (dist.group.WORLD, dist.new_group(backend='gloo')):  # PyTorch drops the work there
        net = model(5000)
        delayed = [(name, parameter) for name, parameter in net.named_parameters() if name.startswith('2')]
        ddp = DDP(net, process_group=group, delay_all_reduce_named_params=delayed, param_to_hook_all_reduce=net[0].weight)
        ddp(torch.full((4, 16), rank + 1.)).square().mean().backward()
        dist.barrier()  # for gloo
        time.sleep(0.2)
        results.append(torch.cat([parameter.grad.reshape(-1) for parameter in net.parameters()]))
    assert torch.allclose(*results, rtol=1e-4), (results[0] - results[1]).abs().max()


def check_errors(rank, size):
    """Ranks that call different collectives get an error, and the world goes on."""
    try:
        if rank == 0:
            dist.all_reduce(torch.ones(3))
        else:
            dist.broadcast(torch.ones(3), 0)
    except RuntimeError as error:
        assert 'allreduce' in str(error) and 'broadcast' in str(error), error
    else:
        raise AssertionError('no error')
    for wrong in (lambda: dist.all_reduce(torch.ones(rank + 1)), lambda: dist.all_gather([torch.ones(rank + 1)] * size, torch.ones(rank + 1))):
        try:
            wrong()
        except RuntimeError as error:
            assert 'hape' in str(error), error
        else:
            raise AssertionError('no error')
    own = torch.ones(1)
    dist.all_reduce(own)
    assert own.item() == size
    try:
        dist.recv(torch.ones(1))
    except NotImplementedError as error:
        assert 'src' in str(error)
    else:
        raise AssertionError('no error')


def begin(backend, rank, size):
    """The world and a group in it work."""
    dist.init_process_group(backend)
    own = torch.ones(1)
    dist.all_reduce(own)
    assert own.item() == size
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.barrier(group=pair)


def check_refusals(rank, size):
    """What PyTorch 2.15 has to form a group anew is refused by name; to ask whether it is there is no error."""
    backend = dist.group.WORLD._get_backend(torch.device('cpu'))
    for name in ('supports_reconfigure', 'supports_shrinking', 'supports_window', '_supports_time_estimate'):
        assert getattr(backend, name, False) is False, name
    if hasattr(dist, 'shrink_group'):
        try:
            dist.shrink_group([size - 1])
        except TypeError as error:
            assert 'shrinking' in str(error), error
        else:
            raise AssertionError('no error')
    if hasattr(dist, '_supports_reconfigure'):
        assert not dist._supports_reconfigure()


def check_again(rank, size):
    """Ended and begun again in one process."""
    for backend in ('hvd', 'cpu:hvd', 'cpu:hvd,cuda:nccl' if dist.is_nccl_available() and torch.cuda.is_available() else 'hvd'):
        dist.destroy_process_group()
        begin(backend, rank, size)


def main():
    dist.init_process_group('cpu:hvd' if 'devices' in sys.argv else 'hvd')
    rank, size = dist.get_rank(), dist.get_world_size()
    for name in sys.argv[1:]:
        if name != 'devices':
            globals()['check_' + name](rank, size)
    dist.barrier()
    dist.destroy_process_group()
    print('done', rank)


if __name__ == '__main__':
    main()
