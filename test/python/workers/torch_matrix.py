"""What scripts of torch.distributed do, over the backend `hvd` and over gloo in the same ranks: the numbers have to be equal.

    torch_matrix.py CHECK...

With two ranks they are compared bit for bit, since a sum of two has one order. Prints 'done RANK'.
"""

import datetime
import os
import shutil
import sys
import tempfile

import horovod.torch as hvd  # noqa: F401
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch_backend import begin


def model(width=32):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.Tanh(), torch.nn.Linear(width, width), torch.nn.Tanh(),
                               torch.nn.Linear(width, 8))


def flat(parameters):
    parts = [getattr(parameter, 'full_tensor', lambda: parameter)().detach().reshape(-1) for parameter in parameters]
    return torch.cat(parts)


def same(what, ours, theirs, size, tolerance=1e-5):
    assert torch.isfinite(ours).all(), what
    if size == 2:
        assert torch.equal(ours, theirs), (what, (ours - theirs).abs().max())
    else:
        assert torch.allclose(ours, theirs, atol=tolerance), (what, (ours - theirs).abs().max())


def steps(step_model, parameters, rank, optimizer=None, count=5):
    optimizer = optimizer or torch.optim.SGD(parameters, lr=0.1)
    torch.manual_seed(100 + rank)
    for _ in range(count):
        optimizer.zero_grad()
        step_model(torch.randn(4, 16)).square().mean().backward()
        optimizer.step()
    return flat(parameters)


class Groups:
    """The world over hvd and over gloo."""

    def __init__(self):
        self.each = [('hvd', dist.group.WORLD), ('gloo', dist.new_group(backend='gloo'))]

    def both(self, function):
        return [function(group) for _, group in self.each]


def knows_bf16(gloo):
    """That of PyTorch 2.1 does not."""
    try:
        dist.all_reduce(torch.ones(1, dtype=torch.bfloat16), group=gloo)
    except RuntimeError:
        return False
    return True


def check_ddp(rank, size, groups):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    for options in ({}, {'gradient_as_bucket_view': True}, {'static_graph': True}, {'find_unused_parameters': True},
                    {'gradient_as_bucket_view': True, 'static_graph': True}, {'broadcast_buffers': False}):
        def train(group):
            ddp = DDP(model(), process_group=group, bucket_cap_mb=0.002, **options)
            return steps(ddp, list(ddp.parameters()), rank)
        same(options, *groups.both(train), size)
    for name in ('allreduce_hook', 'fp16_compress_hook', 'bf16_compress_hook', 'fp16_compress_wrapper', 'powerSGD'):
        if name == 'bf16_compress_hook' and not knows_bf16(groups.each[1][1]):
            continue
        def train(group):
            # The callbacks of PowerSGD start collectives: with several buckets their order is another one on each rank, over gloo as well.
            ddp = DDP(model(), process_group=group, bucket_cap_mb=25 if name == 'powerSGD' else 0.002)
            if name == 'powerSGD':
                ddp.register_comm_hook(powerSGD_hook.PowerSGDState(group, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
            elif name == 'fp16_compress_wrapper':
                ddp.register_comm_hook(group, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))
            else:
                ddp.register_comm_hook(group, getattr(default_hooks, name))
            return steps(ddp, list(ddp.parameters()), rank)
        same(name, *groups.both(train), size, 1e-2)


def check_accumulation(rank, size, groups):
    def train(group):
        ddp = DDP(model(), process_group=group)
        optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
        torch.manual_seed(rank)
        for number in range(6):
            if number % 2 == 0:
                with ddp.no_sync():
                    ddp(torch.randn(4, 16)).square().mean().backward()
            else:
                ddp(torch.randn(4, 16)).square().mean().backward()
                torch.nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
                optimizer.step()
                optimizer.zero_grad()
        return flat(ddp.parameters())
    same('no_sync', *groups.both(train), size)


class Buffers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.unused = torch.nn.Linear(16, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.norm(self.first(x))


def check_buffers(rank, size, groups):
    def train(group):
        torch.manual_seed(5)
        ddp = DDP(Buffers(), process_group=group, find_unused_parameters=True)
        return torch.cat([steps(ddp, list(ddp.parameters()), rank), ddp.module.norm.running_mean, ddp.module.norm.running_var])
    same('buffers', *groups.both(train), size)


def check_join(rank, size, groups):
    def train(group):
        ddp = DDP(model(), process_group=group)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        torch.manual_seed(rank)
        with ddp.join():
            for _ in range(2 + rank):
                optimizer.zero_grad()
                ddp(torch.randn(4, 16)).square().mean().backward()
                optimizer.step()
        return flat(ddp.parameters())
    same('join', *groups.both(train), size)

    def refuse(group):
        ddp = DDP(model(), process_group=group)
        try:
            with ddp.join(throw_on_early_termination=True):
                for _ in range(1 + rank):
                    ddp(torch.randn(4, 16)).sum().backward()
        except RuntimeError as error:
            return str(error)
        return 'none'
    assert len(set(groups.both(refuse))) == 1


def check_zero(rank, size, groups):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def train(group):
        ddp = DDP(model(), process_group=group)
        optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, process_group=group, lr=0.01)
        result = steps(ddp, list(ddp.parameters()), rank, optimizer)
        optimizer.consolidate_state_dict(to=0)
        if rank == 0:
            assert len(optimizer.state_dict()['state']) == 6
        return result
    same('ZeRO', *groups.both(train), size)


def check_localsgd(rank, size, groups):
    from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer

    def train(group):
        ddp = DDP(model(), process_group=group)
        ddp.register_comm_hook(PostLocalSGDState(group, group, 2), post_localSGD_hook)
        optimizer = PostLocalSGDOptimizer(torch.optim.SGD(ddp.parameters(), lr=0.1), PeriodicModelAverager(2, 2, group))
        return steps(ddp, list(ddp.parameters()), rank, optimizer)
    same('post-local SGD', *groups.both(train), size)


def meshes(groups, shape, names):
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    size = dist.get_world_size()
    if len(shape) == 1:
        return [init_device_mesh('cpu', shape, mesh_dim_names=names), DeviceMesh.from_group(groups.each[1][1], 'cpu', mesh_dim_names=names)]
    rows = [list(range(row * shape[1], (row + 1) * shape[1])) for row in range(shape[0])]
    columns = [list(range(column, size, shape[1])) for column in range(shape[1])]
    gloo = [[dist.new_group(ranks, backend='gloo') for ranks in lists] for lists in (columns, rows)]
    rank = dist.get_rank()
    own = [gloo[0][rank % shape[1]], gloo[1][rank // shape[1]]]
    return [init_device_mesh('cpu', shape, mesh_dim_names=names), DeviceMesh.from_group(own, 'cpu', torch.tensor(rows), mesh_dim_names=names)]


def sharded(mesh, rank, **more):
    from torch.distributed.fsdp import fully_shard
    network = model()
    for layer in network:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh, **more)
    fully_shard(network, mesh=mesh, **more)
    return network


def check_fsdp2(rank, size, groups):
    from torch.distributed.fsdp import MixedPrecisionPolicy
    for more in ({}, {'reshard_after_forward': False}, {'mp_policy': MixedPrecisionPolicy(torch.bfloat16, torch.float32)}):
        results = []
        for mesh in meshes(groups, (size,), ('dp',)):
            network = sharded(mesh, rank, **more)
            results.append(steps(network, list(network.parameters()), rank))
        same(('fully_shard', str(more)), *results, size, 1e-2 if 'mp_policy' in more else 1e-5)


def check_fsdp2_registered(rank, size, groups):
    from torch.distributed.device_mesh import init_device_mesh
    results = []
    for registered in (False, True):
        network = sharded(init_device_mesh('cpu', (size,)), rank)
        if registered:
            if not hasattr(network, 'set_allocate_memory_from_process_group_for_comm'):
                return
            for module in network.modules():
                if hasattr(module, 'set_allocate_memory_from_process_group_for_comm'):
                    module.set_allocate_memory_from_process_group_for_comm(True)
        results.append(steps(network, list(network.parameters()), rank))
    assert torch.equal(*results)


def check_fsdp1(rank, size, groups):
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
        def train(group):
            network = FullyShardedDataParallel(model(), process_group=group, sharding_strategy=strategy, device_id=torch.device('cpu'))
            steps(network, list(network.parameters()), rank)
            with FullyShardedDataParallel.summon_full_params(network):
                return flat(network.parameters()).clone()
        same(strategy, *groups.both(train), size)


def check_hsdp(rank, size, groups):
    results = []
    for mesh in meshes(groups, (2, size // 2), ('replicate', 'shard')):
        network = sharded(mesh, rank)
        results.append(steps(network, list(network.parameters()), rank))
    same('HSDP', *results, size)


def check_tensor_parallel(rank, size, groups):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    results = []
    for mesh in meshes(groups, (size,), ('tp',)):
        network = parallelize_module(model(), mesh, {'0': ColwiseParallel(), '2': RowwiseParallel()})
        results.append(steps(network, list(network.parameters()), 0))
    same('tensor parallel', *results, size)


def check_dtensor(rank, size, groups):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    results = []
    for mesh in meshes(groups, (size,), ('d',)):
        torch.manual_seed(1)
        whole = torch.randn(7, 12)
        rows = distribute_tensor(whole, mesh, [Shard(0)])
        columns = rows.redistribute(mesh, [Shard(1)])
        assert torch.equal(rows.full_tensor(), whole) and torch.equal(columns.redistribute(mesh, [Replicate()]).to_local(), whole)
        product = rows.redistribute(mesh, [Shard(1)]) @ distribute_tensor(whole.t().contiguous(), mesh, [Shard(0)])
        results.append(torch.cat([product.full_tensor().reshape(-1), rows.sum().full_tensor().reshape(-1)]))
    same('DTensor', *results, size)


def check_mesh(rank, size, groups):
    results = []
    for mesh in meshes(groups, (2, size // 2), ('a', 'b')):
        values = []
        for name in ('a', 'b'):
            own = torch.tensor([float(rank + 1)])
            dist.all_reduce(own, group=mesh.get_group(name))
            gathered = [torch.zeros(1) for _ in range(dist.get_world_size(mesh.get_group(name)))]
            dist.all_gather(gathered, own, group=mesh.get_group(name))
            values += [own, torch.cat(gathered)]
        results.append(torch.cat(values))
    same('mesh', *results, size)


def check_checkpoint(rank, size, groups):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    mesh = init_device_mesh('cpu', (size,))
    network = sharded(mesh, rank)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    steps(network, list(network.parameters()), rank, optimizer)
    state = dict(zip(('model', 'optimizer'), get_state_dict(network, optimizer)))
    continued = []
    for name, group in groups.each:
        path = os.path.join(folder[0], name)
        dcp.save(state, checkpoint_id=path, process_group=group)
        fresh = sharded(mesh, rank)
        torch.nn.init.zeros_(next(iter(fresh.parameters())))
        new = torch.optim.Adam(fresh.parameters(), lr=0.01)
        loaded = dict(zip(('model', 'optimizer'), get_state_dict(fresh, new)))
        dcp.load(loaded, checkpoint_id=path, process_group=group)
        set_state_dict(fresh, new, model_state_dict=loaded['model'], optim_state_dict=loaded['optimizer'])
        assert torch.equal(flat(fresh.parameters()), flat(network.parameters())), name
        continued.append(steps(fresh, list(fresh.parameters()), rank, new))
    continued.append(steps(network, list(network.parameters()), rank, optimizer))
    assert all(torch.equal(continued[0], other) for other in continued[1:])
    if hasattr(dcp, 'async_save'):
        dcp.async_save(state, checkpoint_id=os.path.join(folder[0], 'async'), process_group=groups.each[1][1]).result()
        dcp.async_save(state, checkpoint_id=os.path.join(folder[0], 'async2'), process_group=groups.each[0][1]).result()
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])


class Stage(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        torch.manual_seed(number)
        self.layer = torch.nn.Linear(16, 16)

    def forward(self, x):
        return torch.tanh(self.layer(x))


def check_pipeline(rank, size, groups):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
    for schedule_class in (ScheduleGPipe, Schedule1F1B):
        def train(group):
            stage_module = Stage(rank)
            stage = PipelineStage(stage_module, rank, size, torch.device('cpu'), group=group)
            schedule = schedule_class(stage, 4, loss_fn=lambda output, target: (output - target).square().mean())
            optimizer = torch.optim.SGD(stage_module.parameters(), lr=0.1)
            torch.manual_seed(0)
            for _ in range(3):
                x, target = torch.randn(8, 16), torch.randn(8, 16)
                optimizer.zero_grad()
                if rank == 0:
                    schedule.step(x)
                elif rank == size - 1:
                    schedule.step(target=target)
                else:
                    schedule.step()
                optimizer.step()
            return flat(stage_module.parameters())
        ours, theirs = groups.both(train)
        assert torch.equal(ours, theirs), schedule_class


def check_handmade_pipeline(rank, size, groups):
    """Activations and gradients by send and recv, with tags, two micro-batches in flight."""
    def train(group):
        layer = Stage(rank)
        inputs, outputs, pending = [], [], []
        for micro in range(4):
            x = torch.full((2, 16), 0.1 * (micro + 1)) if rank == 0 else torch.zeros(2, 16)
            if rank > 0:
                dist.recv(x, rank - 1, group=group, tag=micro)
            x.requires_grad_()
            y = layer(x)
            if rank < size - 1:
                pending.append(dist.isend(y.detach(), rank + 1, group=group, tag=micro))
            inputs.append(x)
            outputs.append(y)
        for micro in reversed(range(4)):
            if rank == size - 1:
                outputs[micro].sum().backward()
            else:
                gradient = torch.zeros(2, 16)
                dist.recv(gradient, rank + 1, group=group, tag=100 + micro)
                outputs[micro].backward(gradient)
            if rank > 0:
                dist.send(inputs[micro].grad, rank - 1, group=group, tag=100 + micro)
        for work in pending:
            work.wait()
        return torch.cat([parameter.grad.reshape(-1) for parameter in layer.parameters()])
    ours, theirs = groups.both(train)
    assert torch.equal(ours, theirs)


def check_objects(rank, size, groups):
    def run(group):
        own = {'rank': rank, 'text': 'x' * (1 + 300 * rank), 'tensor': torch.full((rank + 1,), float(rank))}
        each, gathered, given, said = [None] * size, [None] * size if rank == 0 else None, [None], ['from 1' if rank == 1 else None] * 2
        dist.all_gather_object(each, own, group=group)
        dist.gather_object(own, gathered, 0, group=group)
        dist.scatter_object_list(given, [{'for': r, 'pad': 'y' * r * 50} for r in range(size)] if rank == 0 else None, 0, group=group)
        dist.broadcast_object_list(said, 1, group=group)
        sent = [None]
        if hasattr(dist, 'send_object_list'):
            if rank == 0:
                dist.send_object_list([{'a': 1}], 1, group=group)
            elif rank == 1:
                dist.recv_object_list(sent, 0, group=group)
        return repr((each, gathered, given, said, sent))
    ours, theirs = groups.both(run)
    assert ours == theirs


def check_split(rank, size, groups):
    if not hasattr(dist, 'split_group'):
        return
    halves = [list(range(size // 2)), list(range(size // 2, size))]
    part = dist.split_group(dist.group.WORLD, halves)
    own = torch.tensor([float(rank)])
    dist.all_reduce(own, group=part)
    assert own.item() == sum(halves[rank // (size // 2)])


def check_functional(rank, size, groups):
    import torch.distributed._functional_collectives as functional
    import torch.distributed.nn.functional as differentiable

    def run(group):
        torch.manual_seed(rank)
        x = torch.randn(size * 4, 3)
        wait = functional.wait_tensor
        results = [wait(functional.all_reduce(x, op, group)) for op in ('sum', 'avg', 'max', 'min')] if group is dist.group.WORLD else [
            wait(functional.all_reduce(x, 'sum', group)), wait(functional.all_reduce(x, 'sum', group)) / size,
            wait(functional.all_reduce(x, 'max', group)), wait(functional.all_reduce(x, 'min', group))]
        results += [wait(functional.all_gather_tensor(x, 0, group)), wait(functional.reduce_scatter_tensor(x, 'sum', 0, group)),
                    wait(functional.broadcast(x, 1, group)), wait(functional.all_to_all_single(x, None, None, group))]
        results += [wait(one) for one in functional.all_reduce_coalesced([x, x + 1], 'sum', group)]
        if group is dist.group.WORLD:
            results += [wait(one) for one in functional.all_gather_into_tensor_coalesced([x, x + 1], group)]
            results += [wait(one) for one in functional.reduce_scatter_tensor_coalesced([x, x + 1], 'sum', [0, 0], group)]
        else:
            results += [wait(functional.all_gather_tensor(one, 0, group)) for one in (x, x + 1)]
            results += [wait(functional.reduce_scatter_tensor(one, 'sum', 0, group)) for one in (x, x + 1)]
        x.requires_grad_()
        loss = differentiable.all_reduce(x, group=group).square().sum() + torch.cat(differentiable.all_gather(x, group=group)).sum() + \
            differentiable.broadcast(x, 0, group=group).sum() + differentiable.reduce_scatter(
                torch.empty(4, 3), list(x.view(size, 4, 3)), group=group).square().sum()
        loss.backward()
        return torch.cat([one.detach().reshape(-1) for one in results + [x.grad]])
    same('functional', *groups.both(run), size, 1e-4)


def check_compile(rank, size, groups):
    import torch.distributed._functional_collectives as functional
    for backend in ('eager', 'aot_eager'):
        def train(group):
            torch._dynamo.reset()
            ddp = torch.compile(DDP(model(), process_group=group), backend=backend)
            return steps(ddp, list(ddp.parameters()), rank)
        same(('compile', backend), *groups.both(train), size)
    world = dist.group.WORLD

    @torch.compile(backend='aot_eager')
    def summed(x):
        return functional.all_reduce(x * 2, 'sum', world) + 1
    assert torch.equal(summed(torch.ones(3)), torch.full((3,), 2. * size + 1))


def check_inductor(rank, size, groups):
    def train(group):
        torch._dynamo.reset()
        ddp = torch.compile(DDP(model(), process_group=group))
        return steps(ddp, list(ddp.parameters()), rank)
    ours, theirs = groups.both(train)
    assert torch.allclose(ours, theirs, atol=1e-5)


def check_coalesced(rank, size, groups):
    def run(group):
        torch.manual_seed(rank)
        tensors = [torch.randn(5), torch.randn(2, 3)]
        dist.all_reduce_coalesced(tensors, group=group)
        with dist._coalescing_manager(group=group, async_ops=False):
            for tensor in tensors:
                dist.all_reduce(tensor, group=group)
        return torch.cat([tensor.reshape(-1) for tensor in tensors])
    same('coalesced', *groups.both(run), size, 1e-4)


def check_sparse(rank, size, groups):
    def train(group):
        torch.manual_seed(1)
        ddp = DDP(torch.nn.EmbeddingBag(20, 4, sparse=True, mode='sum'), process_group=group)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        torch.manual_seed(rank)
        for _ in range(3):
            optimizer.zero_grad()
            ddp(torch.randint(0, 20, (5, 3))).sum().backward()
            optimizer.step()
        return flat(ddp.parameters())
    same('sparse', *groups.both(train), size)


def check_monitored(rank, size, groups):
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=60))
    store = dist.distributed_c10d._get_default_store()
    if rank != 1:
        try:
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=1), wait_all_ranks=True)
        except RuntimeError as error:
            assert '[1]' in str(error), error
        else:
            raise AssertionError('no error')
    else:
        store.wait(['come'], datetime.timedelta(seconds=60))
        try:
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))
        except RuntimeError as error:
            assert '[1]' in str(error), error
        else:
            raise AssertionError('no error')
    if rank == 0:
        store.set('come', '1')
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=60))
    own = torch.ones(1)
    dist.all_reduce(own)
    assert own.item() == size


def check_again(rank, size, groups):
    """Each end, and a beginning after it."""
    for end in (dist.destroy_process_group, lambda: dist.group.WORLD._get_backend(torch.device('cpu')).abort()):
        dist.barrier()  # abort() fails what others have begun
        end()
        if dist.is_initialized():
            try:
                dist.all_reduce(torch.ones(1))
            except RuntimeError as error:
                assert 'abort' in str(error), error
            else:
                raise AssertionError('no error')
            dist.destroy_process_group()
        begin('hvd', rank, size)
    for _ in range(20):
        group = dist.new_group(list(range(size)))
        dist.all_reduce(torch.ones(1), group=group)
        dist.destroy_process_group(group)


def check_threads(rank, size, groups):
    """Two threads with a group each."""
    import threading
    parts = [dist.new_group(list(range(size))) for _ in range(2)]
    wrong = []

    def work(group, factor):
        for number in range(300):
            own = torch.full((3,), float(factor * number))
            work = dist.all_reduce(own, group=group, async_op=number % 2 == 0)
            if work is not None:
                work.wait()
            if own[0].item() != size * factor * number:
                wrong.append((factor, number, own))
    threads = [threading.Thread(target=work, args=(group, factor)) for factor, group in enumerate(parts, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]


def check_many_messages(rank, size, groups):
    """More than there are names, sent first and received then."""
    if rank > 1:
        return
    got = torch.zeros(1000)
    for number in range(1000):
        if rank == 0:
            dist.send(torch.full((3,), float(number)), 1, tag=number % 2)
        else:
            own = torch.zeros(3)
            dist.recv(own, 0, tag=number % 2)
            got[number] = own[0]
    assert rank == 0 or torch.equal(got, torch.arange(1000.))


def main():
    dist.init_process_group('hvd')
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = Groups()
    for name in sys.argv[1:]:
        globals()['check_' + name](rank, size, groups)
        print('ok', name, rank, flush=True)
    dist.barrier()
    dist.destroy_process_group()
    print('done', rank)


if __name__ == '__main__':
    main()
