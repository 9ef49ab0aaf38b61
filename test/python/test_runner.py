"""horovod.runner: what scripts and suites written for Horovod import of its launcher."""

import importlib
import os
import sys
import threading

import pytest

import jobs

# Every destination of horovodrun's command line.
ARGUMENTS = """num_proc check_build ssh_port ssh_identity_file disable_cache start_timeout nic nics output_filename verbose
    command run_func config_file executable fusion_threshold_mb cycle_time_ms cache_capacity hierarchical_allreduce
    hierarchical_allgather torus_allreduce autotune autotune_log_file autotune_warmup_samples autotune_steps_per_sample
    autotune_bayes_opt_max_samples autotune_gaussian_process_noise min_num_proc max_num_proc slots elastic_timeout
    reset_limit cooldown_range timeline_filename timeline_mark_cycles no_stall_check stall_check_warning_time_seconds
    stall_check_shutdown_time_seconds mpi_threads_disable mpi_args tcp_flag binding_args num_nccl_streams thread_affinity
    gloo_timeout_seconds log_level log_with_timestamp prefix_output_with_timestamp hosts hostfile host_discovery_script
    use_gloo use_mpi use_jsrun""".split()


def test_Ce_the_arguments_of_the_command_line():
    from horovod.runner import _HorovodArgs
    assert sorted(vars(_HorovodArgs())) == sorted(ARGUMENTS)


def test_Ce_run_is_there_and_says_what_to_use_instead():
    import horovod
    from horovod.runner import run
    assert run is horovod.run
    with pytest.raises(NotImplementedError, match='not available yet') as raised:
        run(lambda: 1, num_proc=2)
    assert '\n' not in str(raised.value)


@pytest.mark.parametrize('name', ['horovod.runner.mpi_run', 'horovod.runner.http.http_server',
                                  'horovod.runner.driver.driver_service'])
def test_Ce_what_is_not_there_is_named(name):
    with pytest.raises(ImportError, match=name.rsplit('.', 1)[0].replace('.', '[.]')):
        importlib.import_module(name)


def test_Ce_importing_it_imports_no_framework():
    code = ('import sys, horovod.runner, horovod.runner.launch, horovod.runner.elastic.worker\n'
            'print(sorted({"torch", "tensorflow", "numpy"} & set(sys.modules)))')
    result = jobs.run([sys.executable, '-c', code], 60)
    assert result.returncode == 0 and result.output.strip() == '[]', str(result)


def test_Ce_in_thread():
    from horovod.runner.util.threads import in_thread
    done = threading.Event()
    results = []
    thread = in_thread(lambda x, y: (results.append(x + y), done.set()), args=(1, 2), name='adds')
    assert done.wait(30) and results == [3]
    thread.join(30)
    assert thread.daemon and thread.name == 'adds'
    quiet = in_thread(lambda: 1 / 0, daemon=False, silent=True)
    quiet.join(30)
    assert not quiet.daemon and not quiet.is_alive()
    with pytest.raises(ValueError):
        in_thread(lambda: None, args='ab')


@pytest.mark.parametrize('variables, expected', [
    ({}, (0, 1)),
    ({'HOROVOD_RANK': '3', 'HOROVOD_SIZE': '4', 'PMI_RANK': '9', 'PMI_SIZE': '9'}, (3, 4)),
    ({'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2'}, (1, 2)),
    ({'PMI_RANK': '5', 'PMI_SIZE': '6'}, (5, 6)),
    ({'HOROVOD_RANK': '3'}, RuntimeError),
    ({'PMI_SIZE': '3'}, RuntimeError),
])
def test_Ce_rank_and_size_of_the_environment(monkeypatch, variables, expected):
    from horovod.runner.common.util.env import get_env_rank_and_size
    for launcher in ('HOROVOD', 'OMPI_COMM_WORLD', 'PMI'):
        for what in ('RANK', 'SIZE'):
            monkeypatch.delenv('{}_{}'.format(launcher, what), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if isinstance(expected, tuple):
        assert get_env_rank_and_size() == expected
    else:
        with pytest.raises(expected, match=next(iter(variables))):
            get_env_rank_and_size()


def test_Ce_secret_and_timeout():
    from horovod.runner.common.util import secret, timeout
    key = secret.make_secret_key()
    digest = secret.compute_digest(key, b'message')
    assert len(key) == 32 and key != secret.make_secret_key()
    assert secret.check_digest(key, b'message', digest) and not secret.check_digest(key, b'another', digest)
    limit = timeout.Timeout(1000, 'Timed out waiting for {activity}.')
    assert 0 < limit.remaining() <= 1000 and not limit.timed_out()
    limit.check_time_out_for('nothing')
    over = timeout.Timeout(0, 'Timed out waiting for {activity}.')
    assert over.timed_out() and over.remaining() == 0
    with pytest.raises(timeout.TimeoutException, match='waiting for tasks to start. Timeout after 0 seconds'):
        over.check_time_out_for('tasks to start')


def test_Ce_hosts(tmp_path):
    from horovod.runner.common.util import hosts
    parsed = hosts.parse_hosts('a:1, b:3,c:2')
    assert [(h.hostname, h.slots) for h in parsed] == [('a', 1), ('b', 3), ('c', 2)]
    slots = hosts.get_host_assignments(parsed, 6)
    assert [s.hostname for s in slots] == ['a', 'b', 'b', 'b', 'c', 'c']
    # rank,size,local_rank,local_size,cross_rank,cross_size
    assert [s.to_response_string() for s in slots] == ['0,6,0,1,0,3', '1,6,0,3,1,3', '2,6,1,3,0,2', '3,6,2,3,0,1',
                                                       '4,6,0,2,2,3', '5,6,1,2,1,2']
    assert len(hosts.get_host_assignments(parsed, 2, 4)) == 4
    with pytest.raises(ValueError, match=r'Requested more processes \(7\) than there are available slots \(6\)'):
        hosts.get_host_assignments(parsed, 7)
    for bad in ('a', 'a:', 'a:1,', 'user@a:1'):
        with pytest.raises(ValueError, match='Invalid host input'):
            hosts.parse_hosts(bad)
    file = tmp_path / 'hosts'
    file.write_text('# ours\na slots=2\n\nb slots=1 max_slots=3\n')
    assert hosts.parse_host_files(str(file)) == 'a:2,b:1'
    file.write_text('a\n')
    with pytest.raises(ValueError, match='name slots=N'):
        hosts.parse_host_files(str(file))
    assert set(hosts.INVALID_SLOT_INFO.to_response_string().split(',')) == {'-1'}


def test_Ce_config_parser():
    from horovod.runner import _HorovodArgs
    from horovod.runner.common.util import config_parser
    args = _HorovodArgs()
    args.cycle_time_ms = 20
    config = {'controller': 'gloo', 'params': {'fusion_threshold_mb': 32, 'cycle_time_ms': 5, 'torus_allreduce': False},
              'autotune': {'enabled': True, 'warmup_samples': 4}, 'timeline': {'filename': 't.json', 'mark_cycles': True},
              'stall_check': {'enabled': False, 'warning_time_seconds': 7}, 'logging': {'level': 'INFO'}}
    config_parser.set_args_from_config(args, config, {'cycle_time_ms'})
    config_parser.validate_config_args(args)
    assert args.use_gloo and args.no_stall_check
    assert config_parser.set_env_from_args({}, args) == {
        'HOROVOD_FUSION_THRESHOLD': '33554432', 'HOROVOD_CYCLE_TIME': '20.0', 'HOROVOD_TORUS_ALLREDUCE': '0',
        'HOROVOD_AUTOTUNE': '1', 'HOROVOD_AUTOTUNE_WARMUP_SAMPLES': '4', 'HOROVOD_TIMELINE': 't.json',
        'HOROVOD_TIMELINE_MARK_CYCLES': '1', 'HOROVOD_STALL_CHECK_DISABLE': '1', 'HOROVOD_STALL_CHECK_TIME_SECONDS': '7',
        'HOROVOD_LOG_LEVEL': 'INFO'}
    args.cache_capacity = -1
    with pytest.raises(ValueError, match='cache_capacity=-1 must be >= 0'):
        config_parser.validate_config_args(args)
    with pytest.raises(ValueError, match='No such controller supported: ssh'):
        config_parser.set_args_from_config(_HorovodArgs(), {'controller': 'ssh'}, set())


def test_Ce_elastic(tmp_path):
    from horovod.runner.elastic.discovery import FixedHosts, HostDiscoveryScript
    from horovod.runner.elastic.worker import HostUpdateResult, WorkerNotificationManager
    assert [int(HostUpdateResult[name]) for name in ('no_update', 'removed', 'added', 'mixed')] == [0, 1, 2, 3]
    assert WorkerNotificationManager().init() is None
    script = tmp_path / 'hosts.sh'
    script.write_text('#!/bin/sh\necho a:2\necho b\n')
    script.chmod(0o755)
    assert HostDiscoveryScript(str(script), 4).find_available_hosts_and_slots() == {'a': 2, 'b': 4}
    with pytest.raises(ValueError, match='host b without its slots'):
        HostDiscoveryScript(str(script), None).find_available_hosts_and_slots()
    with pytest.raises(RuntimeError, match='Failed to execute discovery script: exit 3. Exit code: 3'):
        HostDiscoveryScript('exit 3', 1).find_available_hosts_and_slots()
    fixed = FixedHosts({'a': 1})
    fixed.set({'b': 2})
    assert fixed.find_available_hosts_and_slots() == {'b': 2}


def test_Ce_a_discovery_script_has_a_limit(monkeypatch):
    from horovod.runner.elastic import discovery
    monkeypatch.setattr(discovery, 'SCRIPT_LIMIT_S', 0.2)
    with pytest.raises(RuntimeError, match='longer than'):
        discovery.HostDiscoveryScript('sleep 600', 1).find_available_hosts_and_slots()


def test_Ce_python_m_launch_is_hvdrun(hvdrun):
    launch = [sys.executable, '-m', 'horovod.runner.launch']
    result = jobs.run(launch + ['-np', '2', sys.executable, '-c', 'import os; print("rank", os.environ["RANK"])'], 60)
    assert result.returncode == 0 and 'rank 0' in result.output and 'rank 1' in result.output, str(result)
    assert jobs.run(launch + ['-np', '1', 'sh', '-c', 'exit 7'], 60).returncode == 7
    assert jobs.run(launch + ['-np', 'two', 'true'], 60).returncode == 2


def test_Ce_launch_without_hvdrun_is_one_sentence(tmp_path):
    library = tmp_path / 'lib' / 'libhvd.so'
    library.parent.mkdir()
    library.write_text('')
    result = jobs.run([sys.executable, '-m', 'horovod.runner.launch'], 60, HVD_RUNTIME=str(library), PATH=os.devnull)
    assert result.returncode == 127 and result.output.count('\n') == 1 and 'no hvdrun' in result.output, str(result)
