"""Starts jobs for the tests: finds hvdrun and the runtime, and ends whatever takes too long."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from slowness import scaled  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
PACKAGES = os.path.join(ROOT, 'runtime', 'python')
hosts_per_machine = 1  # set from the command line
FAKE_GPUS = os.path.join(ROOT, 'build', 'test', 'gpu_libraries')
DIGITS = os.path.join(ROOT, 'examples', 'pytorch_digits.py')


def find_runtime():
    """Path of libhvd.so or None: HVD_RUNTIME, else the build folder."""
    path = os.environ.get('HVD_RUNTIME') or os.path.join(ROOT, 'build', 'lib', 'libhvd.so')
    return path if os.path.isfile(path) else None


def find_hvdrun():
    """Path of hvdrun or None: HVDRUN, else the build folder."""
    path = os.environ.get('HVDRUN') or os.path.join(ROOT, 'build', 'bin', 'hvdrun')
    return path if os.path.isfile(path) else shutil.which(path)


def skip_without(library, purpose):
    """Skips the test where the runtime is built without one of its libraries."""
    if not os.path.exists(os.path.join(os.path.dirname(find_runtime()), library)):
        pytest.skip('this runtime is built without {}, which {}'.format(library, purpose))


def skip_without_gloo():
    skip_without('libhvd_gloo.so', 'joins several hosts')


def worker(name):
    return os.path.join(HERE, 'workers', name)


def with_fake_gpus():
    """LD_LIBRARY_PATH by which a rank of on_fake_gpus.py finds its driver and its NCCL."""
    return os.pathsep.join([FAKE_GPUS] + [path for path in os.environ.get('LD_LIBRARY_PATH', '').split(os.pathsep) if path])


def environment(**extra):
    """Environment of a process that shall use this tree's package."""
    env = dict(os.environ)
    paths = [PACKAGES] + [path for path in env.get('PYTHONPATH', '').split(os.pathsep) if path]
    env['PYTHONPATH'] = os.pathsep.join(paths)
    runtime = find_runtime()
    if runtime:
        env['HVD_RUNTIME'] = runtime
    env['OMP_NUM_THREADS'] = '1'
    env['PYTHONUNBUFFERED'] = '1'
    for name, value in extra.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


class Result(object):
    def __init__(self, command, returncode, output):
        self.command = command
        self.returncode = returncode
        self.output = output

    def __str__(self):
        return '{}\nended with {}:\n{}'.format(' '.join(self.command), self.returncode, self.output)


def run(command, timeout_s, **extra_env):
    """Runs a command to its end; AssertionError with its output when it takes longer, on a quiet machine (slowness.py)."""
    timeout_s = scaled(timeout_s)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               start_new_session=True, env=environment(**extra_env), universal_newlines=True,
                               errors='replace')
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            output, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            output = '(no output: a process that escaped still holds the pipe)'
        if isinstance(error, subprocess.TimeoutExpired):
            raise AssertionError('still running after {:.0f} s: {}\n{}'.format(timeout_s, ' '.join(command), output))
        raise
    return Result(command, process.returncode, output)


def run_job(processes, script, *arguments, timeout_s=60, expect_success=True, hosts=None, flags=(), **extra_env):
    """Runs a worker script under hvdrun, on as many hosts as the test or the command line of pytest says."""
    command = [find_hvdrun(), '-np', str(processes)]
    hosts = hosts or hosts_per_machine
    if 1 < hosts <= processes:
        skip_without_gloo()
        command += ['--hosts-per-machine', str(hosts)]
    command += list(flags) + [sys.executable, script] + [str(a) for a in arguments]
    result = run(command, timeout_s, **extra_env)
    if expect_success:
        assert result.returncode == 0, str(result)
    return result


def package_without_runtime(folder):
    """A copy of the package as it is installed on systems that the runtime is not built for; gives PYTHONPATH."""
    shutil.copytree(os.path.join(PACKAGES, 'horovod'), os.path.join(str(folder), 'horovod'),
                    ignore=shutil.ignore_patterns('__pycache__'))
    os.mkdir(os.path.join(str(folder), 'horovod', 'lib'))
    open(os.path.join(str(folder), 'horovod', 'lib', 'world_of_one'), 'w').close()
    return str(folder)


def run_alone(script, *arguments, timeout_s=60, **extra_env):
    """Runs a worker script without hvdrun: a world of one."""
    result = run([sys.executable, script] + [str(a) for a in arguments], timeout_s, HVD_AGENT=None, **extra_env)
    assert result.returncode == 0, str(result)
    return result


def processes_with(token):
    """Pids of processes that have the token in their command line."""
    found = []
    for pid in os.listdir('/proc'):
        if pid.isdigit() and int(pid) != os.getpid():
            try:
                with open('/proc/{}/cmdline'.format(pid), 'rb') as file:
                    if token.encode() in file.read():
                        found.append(int(pid))
            except OSError:
                pass
    return found
