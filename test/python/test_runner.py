"""horovod.runner: what scripts and suites written for Horovod import of its launcher."""

import http.client
import importlib
import os
import subprocess
import sys
import threading

import pytest

import jobs

pytestmark = pytest.mark.below_torch

# Every destination of horovodrun's command line.
ARGUMENTS = """num_proc check_build ssh_port ssh_identity_file disable_cache start_timeout nic nics output_filename verbose
    command run_func config_file executable fusion_threshold_mb cycle_time_ms cache_capacity hierarchical_allreduce
    hierarchical_allgather torus_allreduce autotune autotune_log_file autotune_warmup_samples autotune_steps_per_sample
    autotune_bayes_opt_max_samples autotune_gaussian_process_noise min_num_proc max_num_proc slots elastic_timeout
    reset_limit cooldown_range timeline_filename timeline_mark_cycles no_stall_check stall_check_warning_time_seconds
    stall_check_shutdown_time_seconds mpi_threads_disable mpi_args tcp_flag binding_args num_nccl_streams thread_affinity
    gloo_timeout_seconds log_level log_with_timestamp prefix_output_with_timestamp hosts hostfile host_discovery_script
    use_gloo use_mpi use_jsrun""".split()


def test_the_arguments_of_the_command_line():
    from horovod.runner import _HorovodArgs
    assert sorted(vars(_HorovodArgs())) == sorted(ARGUMENTS)


@pytest.mark.parametrize('name', ['horovod.runner.mpi_run', 'horovod.runner.http.http_client',
                                  'horovod.runner.driver.driver_service'])
def test_what_is_not_there_is_named(name):
    with pytest.raises(ImportError, match=name.rsplit('.', 1)[0].replace('.', '[.]')):
        importlib.import_module(name)


def test_importing_it_imports_no_framework():
    code = ('import sys, horovod.runner, horovod.runner.launch, horovod.runner.elastic.worker\n'
            'print(sorted({"torch", "tensorflow", "numpy"} & set(sys.modules)))')
    result = jobs.run([sys.executable, '-c', code], 60)
    assert result.returncode == 0 and result.output.strip() == '[]', str(result)


def test_in_thread():
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
def test_rank_and_size_of_the_environment(monkeypatch, variables, expected):
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


def test_secret_and_timeout():
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


def test_hosts(tmp_path):
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


def test_config_parser():
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


def test_elastic(tmp_path):
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


def test_a_discovery_script_has_a_limit(monkeypatch):
    from horovod.runner.elastic import discovery
    monkeypatch.setattr(discovery, 'SCRIPT_LIMIT_S', 0.2)
    with pytest.raises(RuntimeError, match='longer than'):
        discovery.HostDiscoveryScript('sleep 600', 1).find_available_hosts_and_slots()


def test_python_m_launch_is_hvdrun(hvdrun):
    launch = [sys.executable, '-m', 'horovod.runner.launch']
    result = jobs.run(launch + ['-np', '2', sys.executable, '-c', 'import os; print("rank", os.environ["RANK"])'], 60)
    assert result.returncode == 0 and 'rank 0' in result.output and 'rank 1' in result.output, str(result)
    assert jobs.run(launch + ['-np', '1', 'sh', '-c', 'exit 7'], 60).returncode == 7
    assert jobs.run(launch + ['-np', 'two', 'true'], 60).returncode == 2


def test_launch_without_hvdrun_is_one_sentence(tmp_path):
    library = tmp_path / 'lib' / 'libhvd.so'
    library.parent.mkdir()
    library.write_text('')
    result = jobs.run([sys.executable, '-m', 'horovod.runner.launch'], 60, HVD_RUNTIME=str(library), PATH=os.devnull)
    assert result.returncode == 127 and result.output.count('\n') == 1 and 'no hvdrun' in result.output, str(result)


# ---- names that public programs import beside those of the contract

def test_levels_of_the_log_and_variables_of_workers():
    from horovod.runner.common.util import config_parser, env
    assert config_parser.LOG_LEVELS == ['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'FATAL']
    assert [env.is_exportable(name) for name in ('PATH', 'OLDPWD', 'BASH_FUNC_module%%', 'MY_OLDPWD')] == [True, False, False, True]


def test_hosts_and_their_slots():
    from horovod.runner.common.util.hosts import parse_hosts_and_slots
    assert parse_hosts_and_slots('b:2, a-1.x:4') == (['b', 'a-1.x'], {'b': 2, 'a-1.x': 4})
    with pytest.raises(ValueError, match='Invalid host input'):
        parse_hosts_and_slots('a')


def test_slots_of_a_discovery_script_are_handed_on_as_they_are():
    from horovod.runner.elastic.discovery import HostDiscoveryScript
    slots = object()
    assert HostDiscoveryScript('echo a; echo b:3', slots).find_available_hosts_and_slots() == {'a': slots, 'b': 3}


def arguments(**values):
    from horovod.runner import _HorovodArgs
    args = _HorovodArgs()
    for name, value in values.items():
        setattr(args, name, value)
    return args


def test_launch_run_hands_the_arguments_to_hvdrun(tmp_path, monkeypatch):
    from horovod.runner import launch
    said = tmp_path / 'said'
    played = tmp_path / 'hvdrun'
    played.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > {}\nexit $PLAYED_CODE\n'.format(said))
    played.chmod(0o755)
    monkeypatch.setattr(launch, '_find_hvdrun', lambda: str(played))
    monkeypatch.setenv('PLAYED_CODE', '0')
    launch._run(arguments(num_proc=2, hosts='a:1,b:1', nics={'eth1', 'eth0'}, cooldown_range=[3, 9], no_stall_check=False,
                          hierarchical_allreduce=True, use_gloo=True, verbose=0, command=['python', '-c', 'x y']))
    given = said.read_text().splitlines()
    assert given[:given.index('--error-file')] == ['-np', '2', '-H', 'a:1,b:1', '--hierarchical-allreduce', '--stall-check', '--gloo',
                                             '--network-interfaces', 'eth0,eth1', '--blacklist-cooldown-range', '3', '9']
    assert given[-4:] == ['--', 'python', '-c', 'x y']
    monkeypatch.setenv('PLAYED_CODE', '7')
    with pytest.raises(RuntimeError, match='exit code 7'):
        launch._run(arguments(command=['true']))
    with pytest.raises(ValueError, match='needs a command'):
        launch._run(arguments())


def test_launch_run_runs_a_job(tmp_path):
    code = ('from horovod.runner import _HorovodArgs, launch\n'
            'args = _HorovodArgs()\n'
            'args.num_proc, args.use_gloo, args.start_timeout = 2, True, 60\n'
            'args.command = ["sh", "-c", "echo rank $HOROVOD_RANK of $HOROVOD_SIZE"]\n'
            'launch._run(args)\n')
    result = jobs.run([sys.executable, '-c', code], 60)
    assert result.returncode == 0, str(result)
    assert 'rank 0 of 2' in result.output and 'rank 1 of 2' in result.output


def test_every_flag_of_launch_run_is_one_of_hvdrun():
    from horovod.runner import _HorovodArgs, launch
    covered = set(launch._VALUES) | set(launch._SWITCHES) | {'nic', 'nics', 'cooldown_range', 'command', 'run_func', 'executable'}
    assert covered == set(vars(_HorovodArgs()))


class Client(object):
    """Raw requests to a rendezvous."""

    def __init__(self, port):
        self.port = port

    def ask(self, verb, path, body=None, headers=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        try:
            connection.request(verb, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def rendezvous():
    from horovod.runner.http.http_server import RendezvousServer
    server = RendezvousServer()
    yield server, Client(server.start())
    server.stop()


def test_a_rendezvous_keeps_what_ranks_store(rendezvous):
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    server, client = rendezvous
    assert client.ask('GET', '/global/0') == (404, b'')
    assert client.ask('PUT', '/global/0', b'\0\xff') == (200, b'')
    assert client.ask('GET', '/global/0') == (200, b'\0\xff')
    assert client.ask('GET', '/global') == (400, b'') and client.ask('PUT', '/a/b/c', b'')[0] == 400
    assert client.ask('HEAD', '/global/0')[0] == 501, 'no file of this host is shown'
    assert client.ask('DELETE', '/global/0')[0] == 200 and client.ask('GET', '/global/0')[0] == 404
    # In the scope of a world a key goes when all its ranks have deleted theirs.
    assert server.init(get_host_assignments(parse_hosts('a:2'), 2)) == client.port
    for rank in '01':
        client.ask('PUT', '/global/' + rank, b'x')
    client.ask('DELETE', '/global/0')
    client.ask('DELETE', '/global/0')
    assert client.ask('GET', '/global/0')[0] == 200
    client.ask('DELETE', '/global/1')
    assert client.ask('GET', '/global/0')[0] == 404


def test_a_rendezvous_has_bounds(rendezvous, monkeypatch):
    from horovod.runner.http import http_server
    _, client = rendezvous
    assert client.ask('PUT', '/a/b', b'', {'Content-Length': str(http_server.MOST_VALUE_BYTES + 1)})[0] == 413
    monkeypatch.setattr(http_server, 'MOST_BYTES', 20)
    assert client.ask('PUT', '/a/b', b'x' * 15)[0] == 200
    assert client.ask('PUT', '/a/c', b'x' * 15)[0] == 507
    assert client.ask('PUT', '/a/b', b'y' * 15)[0] == 200, 'in the place of the former'
    client.ask('DELETE', '/a/b')
    assert client.ask('PUT', '/a/c', b'x' * 15)[0] == 200


def test_a_rendezvous_is_started_once_and_takes_no_handler(rendezvous):
    from horovod.runner.http.http_server import RendezvousServer
    server, _ = rendezvous
    with pytest.raises(RuntimeError, match='serves already'):
        server.start()
    with pytest.raises(NotImplementedError, match='--host-discovery-script'):
        RendezvousServer().start(object)
    with pytest.raises(RuntimeError, match='call start'):
        RendezvousServer().init([])


def test_ranks_without_a_launcher_meet_at_a_rendezvous(rendezvous):
    """As an executor of Ray starts them."""
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    server, client = rendezvous
    slots = get_host_assignments(parse_hosts('localhost:2'), 2)
    server.init(slots)
    code = ('import numpy as np, horovod.numpy as hvd\n'
            'hvd.init()\n'
            'print("sum", int(hvd.allreduce(np.ones(3, np.float32), op=hvd.Sum)[0]), "of", hvd.size())\n'
            'hvd.shutdown()\n')
    started = []
    for slot in slots:
        env = dict(os.environ, HOROVOD_GLOO_RENDEZVOUS_ADDR='127.0.0.1', HOROVOD_GLOO_RENDEZVOUS_PORT=str(client.port),
                   HOROVOD_HOSTNAME=slot.hostname, HOROVOD_CONTROLLER='gloo', HOROVOD_CPU_OPERATIONS='gloo',
                   PYTHONPATH=jobs.PACKAGES)
        for name in ('rank', 'size', 'local_rank', 'local_size', 'cross_rank', 'cross_size'):
            env['HOROVOD_' + name.upper()] = str(getattr(slot, name))
        started.append(subprocess.Popen([sys.executable, '-c', code], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    said = [process.communicate(timeout=100)[0].decode() for process in started]
    assert ['sum 2 of 2' in text for text in said] == [True, True], said
