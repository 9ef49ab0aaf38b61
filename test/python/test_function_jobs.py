"""horovod.run(): a function on all ranks, and what it returns or raises there."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
import warnings

import pytest

import jobs
from slowness import scaled

sys.path.append(os.path.join(jobs.HERE, 'workers'))
import functions  # noqa: E402

MEGABYTE = 1 << 20


@pytest.fixture
def run(hvdrun, monkeypatch):
    """horovod.run() of this tree, which leaves no descriptor behind."""
    import horovod
    environment = jobs.environment()
    for name in ('HVD_RUNTIME', 'OMP_NUM_THREADS'):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setattr('horovod.runner.launch._find_hvdrun', lambda: hvdrun)
    before = sorted(os.listdir('/proc/self/fd'))
    yield horovod.run
    assert sorted(os.listdir('/proc/self/fd')) == before


def script(case, *words):
    """Output and exit code of a script that calls horovod.run()."""
    return jobs.run([sys.executable, jobs.worker('functions.py'), case, *words], 120)


def test_results_come_by_rank(run):
    assert run(functions.place, (7,), {'second': 8}, num_proc=3) == [(rank, 3, 7, 8) for rank in range(3)]
    assert run(functions.place, [None]) == [(0, 1, None, 0)]
    assert [result.value for result in run(functions.kept, ({'a': (1, 2)},), num_proc=2)] == [{'a': (1, 2)}] * 2


def test_ranks_of_a_function_are_a_world(run):
    assert run(functions.total, (5,), num_proc=3, hosts='localhost:3', use_gloo=True) == [18] * 3


@pytest.mark.deadline(120)
def test_large_results_arrive_whole(run):
    results = run(functions.large, (32 * MEGABYTE,), num_proc=3)
    assert [(len(result), set(result)) for result in results] == [(32 * MEGABYTE, {rank}) for rank in range(3)]


def test_arguments_may_be_large_but_not_without_end(run):
    assert [result[2] for result in run(functions.place, (b'x' * 8 * MEGABYTE,), num_proc=2)] == [b'x' * 8 * MEGABYTE] * 2
    with pytest.raises(RuntimeError, match='hvdrun ended with exit code 2'):
        run(functions.place, (bytearray(49 * MEGABYTE),), num_proc=1)


@pytest.mark.skipif(importlib.util.find_spec('cloudpickle') is None, reason='cloudpickle is not installed for this Python')
def test_functions_and_classes_of_a_script(hvdrun):
    result = script('own')
    assert result.returncode == 0 and result.output.endswith('ok\n'), str(result)


def test_without_cloudpickle_the_sentence_names_it(hvdrun):
    result = script('without_cloudpickle')
    assert result.returncode == 0 and result.output.count('\n') == 1 and 'pip install cloudpickle' in result.output, str(result)


def test_an_exception_comes_back_as_the_cause(run):
    with pytest.raises(RuntimeError) as raised:
        run(functions.fails, (1, KeyError('epoch')), num_proc=2)
    text = str(raised.value)
    assert ('Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. The '
            'first process to do so was:\nProcess name: 1\nExit code: 1\n') in text
    assert 'Rank 1 raised:' in text and 'in fails' in text and text.count('Traceback') == 1
    assert isinstance(raised.value.__cause__, KeyError) and raised.value.__cause__.args == ('epoch',)


def test_an_exception_that_cannot_be_pickled_comes_as_text(run):
    with pytest.raises(RuntimeError) as raised:
        run(functions.raises_awkwardly, num_proc=1)
    assert type(raised.value.__cause__).__name__ == 'RemoteError' and 'Awkward: one and two' in str(raised.value.__cause__)
    with pytest.raises(RuntimeError) as raised:
        run(functions.unpicklable, num_proc=1)
    assert 'cannot pickle what rank 0 returned' in str(raised.value) and isinstance(raised.value.__cause__, ValueError)


@pytest.mark.parametrize('code, sentence', [(5, r'Process name: \d\nExit code: 5\n'), (0, 'rank 0, 1 has ended .* returned nothing')])
def test_a_rank_that_returns_nothing(run, code, sentence):
    with pytest.raises(RuntimeError, match=sentence):
        run(functions.leaves, (code,), num_proc=2)


def test_arguments_that_exclude_each_other(run):
    with pytest.raises(ValueError, match='Argument hosts and hostfile only allow one provided.'):
        run(functions.place, hosts='a:1', hostfile='hosts')
    with pytest.raises(ValueError, match='Argument use_gloo and use_mpi only allow one set True.'):
        run(functions.place, use_gloo=True, use_mpi=True)


def test_old_names_of_arguments_warn_and_work(run):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        assert len(run(functions.place, (1,), np=2)) == 2
    assert [(warning.category, warning.filename) for warning in seen] == [(DeprecationWarning, __file__)]


def test_launch_run_returns_the_results_of_a_function(run):
    from horovod.runner import _HorovodArgs, launch
    settings = _HorovodArgs()
    settings.num_proc, settings.run_func = 2, functions.shouts
    assert launch._run(settings) == [None, None]


def test_an_elastic_job_gives_the_results_of_its_fewest_ranks(run, tmp_path):
    discovery = tmp_path / 'discover.sh'
    discovery.write_text('#!/bin/sh\necho localhost:2\n')
    discovery.chmod(0o755)
    results = run(functions.total, (1,), num_proc=2, min_num_proc=2, max_num_proc=2, host_discovery_script=str(discovery))
    assert results == [3, 3]


def test_output_of_ranks_reaches_a_notebook(hvdrun):
    result = script('notebook')
    assert result.returncode == 0, str(result)
    assert result.output == "['[0]<stdout>:out', '[1]<stdout>:out'] ['[0]<stderr>:err', '[1]<stderr>:err']\n", str(result)


@pytest.mark.parametrize('after_s', ['0.05', '1.5'])
def test_an_interrupt_of_the_caller_alone_ends_the_job(hvdrun, after_s):
    result = script('interrupted', after_s)
    assert result.returncode == 0 and result.output.endswith('interrupted\n'), str(result)


def test_nothing_is_said_of_a_caller_that_ends_before_it_has_sent_its_function(hvdrun):
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        done = subprocess.run([hvdrun, '-np', '1', '--function-channel', str(theirs.fileno()), 'echo', 'hi'],
                              pass_fds=[theirs.fileno()], env=jobs.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, timeout=60)
    assert (done.returncode, done.stdout) == (130, '')


def test_the_job_ends_with_a_caller_that_is_killed(hvdrun):
    caller = subprocess.Popen([sys.executable, jobs.worker('functions.py'), 'interrupted', '600'], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=jobs.environment(), universal_newlines=True)
    with caller.stdout:
        for line in caller.stdout:
            if 'sleeping' in line:
                break
        caller.kill()
        rest = caller.stdout.read()  # ends with the last process that may write
    caller.wait()
    assert 'the process that called horovod.run() is gone' in rest, rest


def test_a_job_is_run_from_a_thread_and_again(run):
    from horovod.runner.util.threads import in_thread
    results = []
    threads = [in_thread(lambda k=k: results.append(run(functions.place, (k,), num_proc=1)), daemon=False) for k in range(3)]
    end = time.monotonic() + scaled(60)
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    assert sorted(results) == [[(0, 1, k, 0)] for k in range(3)]
