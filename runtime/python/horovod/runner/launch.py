"""hvdrun, for what starts jobs by `python -m horovod.runner.launch` or calls run_commandline()."""

import os
import shutil
import subprocess
import sys


def _find_hvdrun():
    """hvdrun of this installation, else the one on PATH; None when there is none."""
    from horovod.common import _native
    try:
        prefix = os.path.dirname(os.path.dirname(_native.find()))
    except ImportError:
        return shutil.which('hvdrun')
    beside = os.path.join(prefix, 'bin', 'hvdrun')
    return beside if os.access(beside, os.X_OK) else shutil.which('hvdrun')


_NO_HVDRUN = 'there is no hvdrun beside the runtime or on PATH; install it, or put its folder on PATH.'

# attribute of the arguments -> the flag of hvdrun for its value
_VALUES = {
    'num_proc': '-np', 'min_num_proc': '--min-np', 'max_num_proc': '--max-np', 'slots': '--slots-per-host',
    'hosts': '-H', 'hostfile': '--hostfile', 'host_discovery_script': '--host-discovery-script',
    'ssh_port': '--ssh-port', 'ssh_identity_file': '--ssh-identity-file', 'start_timeout': '--start-timeout',
    'output_filename': '--output-filename', 'config_file': '--config-file',
    'fusion_threshold_mb': '--fusion-threshold-mb', 'cycle_time_ms': '--cycle-time-ms',
    'cache_capacity': '--cache-capacity', 'autotune_log_file': '--autotune-log-file',
    'autotune_warmup_samples': '--autotune-warmup-samples', 'autotune_steps_per_sample': '--autotune-steps-per-sample',
    'autotune_bayes_opt_max_samples': '--autotune-bayes-opt-max-samples',
    'autotune_gaussian_process_noise': '--autotune-gaussian-process-noise',
    'elastic_timeout': '--elastic-timeout', 'reset_limit': '--reset-limit', 'timeline_filename': '--timeline-filename',
    'stall_check_warning_time_seconds': '--stall-check-warning-time-seconds',
    'stall_check_shutdown_time_seconds': '--stall-check-shutdown-time-seconds', 'mpi_args': '--mpi-args',
    'binding_args': '--binding-args', 'num_nccl_streams': '--num-nccl-streams', 'thread_affinity': '--thread-affinity',
    'gloo_timeout_seconds': '--gloo-timeout-seconds', 'log_level': '--log-level',
}
# ... -> the flags for True and for False; None: False is the default
_SWITCHES = {
    'disable_cache': ('--disable-cache', None), 'verbose': ('--verbose', None), 'autotune': ('--autotune', '--no-autotune'),
    'hierarchical_allreduce': ('--hierarchical-allreduce', '--no-hierarchical-allreduce'),
    'hierarchical_allgather': ('--hierarchical-allgather', '--no-hierarchical-allgather'),
    'torus_allreduce': ('--torus-allreduce', '--no-torus-allreduce'),
    'timeline_mark_cycles': ('--timeline-mark-cycles', '--no-timeline-mark-cycles'),
    'no_stall_check': ('--no-stall-check', '--stall-check'),
    'mpi_threads_disable': ('--mpi-threads-disable', '--no-mpi-threads-disable'), 'tcp_flag': ('--tcp', None),
    'log_with_timestamp': ('--log-with-timestamp', None),
    'prefix_output_with_timestamp': ('--prefix-output-with-timestamp', None),
    'use_gloo': ('--gloo', None), 'use_mpi': ('--mpi', None), 'use_jsrun': ('--jsrun', None),
    'check_build': ('--check-build', None),
}


def _flags(args):
    """The arguments as hvdrun takes them on its command line, without the command."""
    arguments = []
    for attribute, flag in _VALUES.items():
        value = getattr(args, attribute, None)
        if value is not None:
            arguments += [flag, str(value)]
    for attribute, (on, off) in _SWITCHES.items():
        value = getattr(args, attribute, None)
        flag = None if value is None else on if value else off
        if flag is not None:
            arguments.append(flag)
    interfaces = getattr(args, 'nics', None) or getattr(args, 'nic', None)
    if interfaces:
        arguments += ['--network-interfaces', interfaces if isinstance(interfaces, str) else ','.join(sorted(interfaces))]
    cooldown = getattr(args, 'cooldown_range', None)
    if cooldown:
        arguments += ['--blacklist-cooldown-range'] + [str(seconds) for seconds in cooldown]
    return arguments


def _hvdrun():
    hvdrun = _find_hvdrun()
    if hvdrun is None:
        raise RuntimeError('horovod.run(): ' + _NO_HVDRUN)
    return hvdrun


def _run_function(settings, func, args=(), kwargs=None):
    """As horovod.run(), whose arguments the settings have."""
    from horovod.runner import _function_job
    is_elastic = settings.min_num_proc is not None or settings.host_discovery_script is not None
    count = settings.min_num_proc if is_elastic and settings.min_num_proc is not None else settings.num_proc
    return _function_job.run(_hvdrun(), _flags(settings), settings.executable or sys.executable, func, args, kwargs or {}, count)


def _run(args):
    """Runs a function or a command on several processes and waits for its end; hvdrun prints what they print.

    Args:
        args: An object with the attributes of horovod.runner._HorovodArgs. `run_func` is a function without arguments, or
            `command` a list of arguments.

    Returns:
        Of a function, a list of what the ranks returned; else None.

    Raises:
        RuntimeError: There is no hvdrun, or the job failed; the message names the first rank that did, and its exit code.
        ValueError: There is neither a command nor a function, or the function cannot be pickled.
    """
    if getattr(args, 'run_func', None) is not None:
        return _run_function(args, args.run_func)
    command = getattr(args, 'command', None)
    if not command and not getattr(args, 'check_build', None):
        raise ValueError("horovod.runner.launch._run() needs a command, such as args.command = ['python', 'train.py'].")
    from horovod.runner import _function_job
    arguments = command.split() if isinstance(command, str) else [str(argument) for argument in command or []]
    with _function_job.error_file() as error_file:
        code = subprocess.call([_hvdrun()] + _flags(args) + ['--error-file', error_file] + (['--'] + arguments if arguments else []))
        if code != 0:
            raise RuntimeError(_function_job.failure_text(code, _function_job.read_error(error_file)))


def run_commandline():
    """Replaces this process by hvdrun, with the arguments of this process. It does not return.

    Raises:
        SystemExit: With code 127 when there is no hvdrun beside the runtime or on PATH.
    """
    hvdrun = _find_hvdrun()
    if hvdrun is None:
        sys.stderr.write('horovod.runner.launch: ' + _NO_HVDRUN + '\n')
        sys.exit(127)
    os.execv(hvdrun, ['hvdrun'] + sys.argv[1:])


if __name__ == '__main__':
    run_commandline()
