"""The backend `hvd` of torch.distributed (horovod/torch/process_group.py), in jobs of their own: they end and begin worlds."""

import os
import subprocess
import sys
import threading
import time

import jobs
import pytest

torch = pytest.importorskip('torch')
if not hasattr(torch._C._distributed_c10d, 'Backend') or not hasattr(torch.distributed, 'all_gather_into_tensor') or tuple(
        int(part) for part in torch.__version__.split('.')[:2]) < (2, 6):
    pytest.skip('PyTorch {} has no c10d Backend that a Python class can extend'.format(torch.__version__), allow_module_level=True)

if jobs.find_runtime() is None or jobs.find_hvdrun() is None:
    pytest.skip('libhvd.so or hvdrun is not built', allow_module_level=True)

WORKER = jobs.worker('torch_backend.py')


def run(processes, *checks, **more):
    result = jobs.run_job(processes, WORKER, *checks, timeout_s=120, **more)
    assert result.output.count('done ') == processes, str(result)
    return result


def test_two_ranks():
    result = run(2, 'collectives', 'messages', 'futures', 'order', 'unawaited', 'refusals', 'ddp', 'buckets', 'join', 'fsdp', 'errors')
    assert result.output.count('failed, and the script dropped its work without a wait(): ') == 2, str(result)


def test_four_ranks():
    run(4, 'collectives', 'messages', 'groups', 'order', 'ddp', 'fsdp', 'errors')


def test_two_hosts():
    run(4, 'collectives', 'messages', 'groups', 'unawaited', 'ddp', 'buckets', hosts=2)


def test_world_of_one():
    run(1, 'collectives')


def test_ended_and_begun_again():
    run(2, 'again', 'devices')


def test_a_script_may_end_while_a_callback_of_a_future_runs():
    result = jobs.run_job(2, jobs.worker('torch_ends_in_a_callback.py'), timeout_s=60)
    assert result.output.count('done ') == 2, str(result)


def test_a_killed_rank_ends_the_others_with_its_name(where='ddp', hosts=1):
    """In the middle of a backward pass. More in test_torch_matrix.py."""
    result = jobs.run_job(3, jobs.worker('torch_backend_killed.py'), where, hosts=hosts, expect_success=False)
    assert result.returncode != 0
    assert result.output.count('got the cause') >= 1, str(result)
    assert 'rank 1' in result.output and 'SIGKILL' in result.output, str(result)


def test_ranks_of_torchrun(hosts=1):
    result = jobs.run([sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2',
                       jobs.worker('torch_torchrun.py')] + ['apart'] * (hosts - 1), 90, HVD_AGENT=None, HVD_HVDRUN=jobs.find_hvdrun())
    assert result.returncode == 0 and result.output.count('done ') == 2, str(result)


@pytest.mark.parametrize('backend', ['hvd', 'gloo'])
def test_scripts_that_ask_for_gloo(backend, tmp_path, hosts=1):
    """The user's own sitecustomize runs as before; nothing of ours is there without the flag."""
    (tmp_path / 'sitecustomize.py').write_text('print("own sitecustomize")')
    flags = ['--torch-backend', backend] if backend == 'hvd' else []
    result = jobs.run_job(2, jobs.worker('torch_asks_for_gloo.py'), backend, hosts=hosts, flags=flags,
                          PYTHONPATH=str(tmp_path), timeout_s=90)
    assert result.output.count('own sitecustomize') == 2, str(result)
    assert result.output.count('done {}'.format(backend == 'hvd')) == 2, str(result)
    assert result.output.count('(--torch-backend hvd)') == (backend == 'hvd'), str(result)


def test_it_is_not_imported_with_horovod_torch():
    code = 'import horovod.torch, sys; assert not [name for name in sys.modules if "group_" in name and "horovod" in name or ' \
           '"process_group" in name and "horovod" in name]; import torch.distributed as dist; ' \
           'assert "HVD" in dist.Backend._plugins'
    subprocess.run([sys.executable, '-c', code], env=jobs.environment(), check=True, cwd=os.path.dirname(WORKER))


# ---- the parts, in this process


class Answers:
    """In the place of the C library of _library: what each function gives."""

    def __init__(self, **functions):
        self.__dict__.update(functions)


@pytest.fixture
def group(runtime, monkeypatch):
    """A group of two ranks in which nothing is submitted: (group, what would have been submitted)."""
    from horovod.common import _library
    from horovod.torch import process_group
    _library.lib()
    members = Answers(id_of=lambda ranks, asks, limit: 3)
    made = process_group.HvdBackend(0, 2, Answers(members=members, groups=set()), 0, [0, 1], 'g', 60.0, False)
    submitted = []

    def submit(what, collective, parts, addresses, outputs, kept, op, root, splits, finish, room, number, name, process_set, slots):
        submitted.append((number, name.decode()))
        return process_group.Operation(made, number, what, 1, outputs, slots=slots, names=process_group._NAMES)

    monkeypatch.setattr(made, '_submit', submit)
    monkeypatch.setattr(process_group, 'watch', lambda operation: None)  # the completing thread would ask the runtime about handle 1
    return made, submitted


def test_a_number_belongs_to_one_collective_where_another_thread_comes_in_between(group):
    made, submitted = group

    def refused(*unused):  # another thread's collective begins while the function in C declines this one
        made.barrier()

    made._start = {collective: refused for collective in made._start}
    made.allreduce([torch.ones(3)], None)
    made.barrier()
    assert sorted(number for number, _ in submitted) == [0, 1, 2]


def test_a_group_that_the_script_forms_anew_is_refused_by_name(runtime):
    from horovod.torch import process_group
    with pytest.raises(NotImplementedError, match=r'enable_reconfigure=True.*hvdrun --elastic'):
        process_group.create(Answers(enable_reconfigure=True), None)


def test_no_function_of_the_backend_is_compiled_with_the_model(monkeypatch):
    """By PyTorch before 2.14, whose function for that newer ones do not have."""
    from horovod.common import _c10d
    from horovod.torch import group_work, process_group
    hidden = []
    _c10d.hide_from_dynamo(Answers(_dynamo=Answers(eval_frame=Answers(skip_code=hidden.append))), [process_group, group_work])
    for function in (process_group.create, process_group.HvdBackend.broadcast, process_group._World._meet, process_group.HvdBackend.options.fget,
                     group_work.Work.wait, group_work.Work.get_future):
        assert function.__code__ in hidden, function
    assert any([code.co_name == '<lambda>' for code in hidden])
    _c10d.hide_from_dynamo(Answers(), [process_group])  # newer ones


def test_names_of_messages_are_used_in_turn_and_never_twice_at_a_time(group, monkeypatch):
    made, submitted = group
    waited = []

    def end(work, deadline, limit):
        waited.append(work.number)
        work._complete(None)

    from horovod.torch import group_work
    monkeypatch.setattr(group_work.Operation, 'end', end)
    works = [made.recv([torch.ones(1)], 1, 5) for _ in range(1000)]
    for work in works:
        work.operation.handle = None  # to drop it waits for nothing
    names = [name for _, name in submitted]
    assert len(set(names)) <= 256
    assert waited == list(range(1000 - len(set(names))))


def test_a_thread_that_completes_works_gives_up_after_the_limit_of_the_group(group, monkeypatch):
    from horovod.common import _library
    from horovod.torch import group_work
    made, _ = group
    made.limit_s = -group_work.GRACE_S  # it is over
    monkeypatch.setattr(_library, 'lib', lambda: Answers(hvd_wait=lambda handle, slice_ms: _library.IN_PROGRESS))
    over = threading.Event()
    future = made.barrier().get_future()  # below, as C++ has it: an exception that is a future's result would be its value there
    future.add_done_callback(lambda _: over.set())
    assert over.wait(20), 'the future is pending after the limit'
    with pytest.raises(RuntimeError, match='barrier #0 of group g of the backend hvd, ranks .* has not ended'):
        torch._C.Future.wait(future)


def test_a_callback_of_a_future_may_wait_for_another_one(group, monkeypatch):
    """In the thread that completes both."""
    from horovod.common import _library
    made, _ = group
    monkeypatch.setattr(_library, 'lib', lambda: Answers(hvd_wait=lambda handle, slice_ms: _library.OK))
    over = threading.Event()

    def wait_for_another(_):
        made.barrier().get_future().wait()
        over.set()

    made.barrier().get_future().add_done_callback(wait_for_another)
    assert over.wait(20)


def test_a_dropped_work_is_waited_for_until_patience_ends_once(group, monkeypatch, capfd):
    from horovod.common import _library
    from horovod.torch import group_work
    made, submitted = group
    made._start = {collective: lambda *unused: None for collective in made._start}
    operations, submit, go_on = [], made._submit, threading.Event()

    def kept(*arguments):
        operations.append(submit(*arguments))
        return operations[-1]

    monkeypatch.setattr(made, '_submit', kept)
    monkeypatch.setattr(_library, 'lib', lambda: Answers(
        hvd_wait=lambda handle, slice_ms: _library.OK if go_on.wait(slice_ms / 1000) else _library.IN_PROGRESS))
    monkeypatch.setattr(group_work.Operation, 'patience_ms', 50)
    for value in (1., 2., 3.):
        made.allreduce([torch.full((3,), value)], None)
    said = capfd.readouterr().err
    assert said.count('goes on, 10 s after the script dropped its work') == 1 and 'allreduce #0' in said, said
    assert all(operation.handle is not None for operation in operations) and len(operations) == 3
    go_on.set()
    deadline = time.monotonic() + 20  # the completing thread has them
    while any([operation.handle is not None for operation in operations]):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_thread_of_the_sets_ends_where_it_is_stopped_while_it_registers_one(runtime, monkeypatch, tmp_path):
    import torch.distributed as dist
    from horovod.common import _library
    from horovod.torch import group_members
    begun, go_on = threading.Event(), threading.Event()

    def register(ranks):
        begun.set()
        assert go_on.wait(20)
        return 7

    monkeypatch.setattr(_library, 'add_process_set', register)
    members = group_members.Members(dist.FileStore(str(tmp_path / 'store'), -1), 0, 2, [0, 1], 'x')
    members._request((0,))
    assert begun.wait(20)
    join = members._thread.join

    def joined(limit):  # stop() has left its word by now
        go_on.set()
        join(limit)

    monkeypatch.setattr(members._thread, 'join', joined)
    members.stop()
    assert not members._thread.is_alive()


@pytest.mark.parametrize('hosts, rank, expected', [
    ('aa', 1, ('1', '2', 'a')), ('ab', 1, ('0', '1', 'b')), ('aba', 2, ('1', '2', 'a')), ('aAa', 2, ('1', '2', 'a-0')),
    ('aAa', 1, ('0', '1', 'a-1'))])
def test_places_of_ranks_that_no_launcher_has_told(hosts, rank, expected):
    """Capitals: the host of the same name in another namespace."""
    from horovod.torch.group_places import variables_of
    found = variables_of(rank, [[host.lower(), host] for host in hosts])
    assert tuple(found['HOROVOD_' + name] for name in ('LOCAL_RANK', 'LOCAL_SIZE', 'HOSTNAME')) == expected
    assert (found['HOROVOD_RANK'], found['HOROVOD_SIZE']) == (str(rank), str(len(hosts)))
