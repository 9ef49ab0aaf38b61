"""The launcher as Horovod's scripts and suites import it: thin, over hvdrun and this package. A name that is not here is
not available yet, and importing it is an ImportError that names it."""

import warnings


class _HorovodArgs:
    """The settings of horovodrun's command line, as attributes: None for those not given."""

    def __init__(self):
        self.num_proc = 1
        self.check_build = None
        self.ssh_port = None
        self.ssh_identity_file = None
        self.disable_cache = None
        self.start_timeout = None
        self.nic = None
        self.nics = None
        self.output_filename = None
        self.verbose = None
        self.command = None
        self.run_func = None
        self.config_file = None
        self.executable = None

        # tunables
        self.fusion_threshold_mb = None
        self.cycle_time_ms = None
        self.cache_capacity = None
        self.hierarchical_allreduce = None
        self.hierarchical_allgather = None
        self.torus_allreduce = None

        # autotune
        self.autotune = None
        self.autotune_log_file = None
        self.autotune_warmup_samples = None
        self.autotune_steps_per_sample = None
        self.autotune_bayes_opt_max_samples = None
        self.autotune_gaussian_process_noise = None

        # elastic jobs
        self.min_num_proc = None
        self.max_num_proc = None
        self.slots = None
        self.elastic_timeout = None
        self.reset_limit = None
        self.cooldown_range = None

        # timeline and stall check
        self.timeline_filename = None
        self.timeline_mark_cycles = None
        self.no_stall_check = None
        self.stall_check_warning_time_seconds = None
        self.stall_check_shutdown_time_seconds = None

        # libraries
        self.mpi_threads_disable = None
        self.mpi_args = None
        self.tcp_flag = None
        self.binding_args = None
        self.num_nccl_streams = None
        self.thread_affinity = None
        self.gloo_timeout_seconds = None

        # logging
        self.log_level = None
        self.log_with_timestamp = None
        self.prefix_output_with_timestamp = None

        # hosts
        self.hosts = None
        self.hostfile = None
        self.host_discovery_script = None

        # controller
        self.use_gloo = None
        self.use_mpi = None
        self.use_jsrun = None


def _new_name(name, value, old_name, old_value):
    """The value of an argument that was renamed."""
    if old_value is None:
        return value
    warnings.warn('horovod.run(): the argument {} is deprecated; it is {} now.'.format(old_name, name), DeprecationWarning, stacklevel=3)
    return old_value


def run(func, args=(), kwargs=None, num_proc=1, min_num_proc=None, max_num_proc=None, slots=None, reset_limit=None,
        cooldown_range=None, hosts=None, hostfile=None, host_discovery_script=None, start_timeout=None, ssh_port=None,
        ssh_identity_file=None, disable_cache=None, output_filename=None, verbose=None, use_gloo=None, use_mpi=None, mpi_args=None,
        network_interface=None, network_interfaces=None, executable=None, np=None, min_np=None, max_np=None):
    """Runs a function on several processes, by hvdrun, and returns its result of each of them. Blocks until the job has ended;
    Ctrl-C ends it. May be called many times, from any thread.

    The function, its arguments and its results are pickled, with cloudpickle if it is installed: functions of the script itself,
    lambdas and local functions need it. Modules are found on the ranks as here. Output of the ranks is shown with their prefixes.

    Args:
        func: The function, which calls hvd.init() as a script does.
        args: Its arguments. Large data is better loaded by the function: 48 MiB are possible in all.
        kwargs: Its arguments by name; None for none.
        num_proc: The number of processes.
        min_num_proc: Of an elastic job, with which a smaller world begins.
        max_num_proc: Of an elastic job.
        slots: The number of processes on a host, where discovery does not say it.
        reset_limit: How often an elastic job may restart.
        cooldown_range: (shortest, longest) seconds for which a host rests on which a worker has failed.
        hosts: Where to run, such as 'node1:2,node2:2'; None for this machine, or the scheduler's allocation.
        hostfile: A file with a host in each line, 'node1 slots=2'. Not with hosts.
        host_discovery_script: A command that prints the hosts of an elastic job.
        start_timeout: Seconds in which all processes must have started.
        ssh_port: Of the hosts' SSH servers.
        ssh_identity_file: The private key for them.
        disable_cache: Accepted for Horovod's sake: nothing is cached.
        output_filename: A folder for the output of each rank.
        verbose: True shows what hvdrun does.
        use_gloo: True starts the processes by hvdrun itself, as is the default. Not with use_mpi.
        use_mpi: True starts them by mpirun.
        mpi_args: More arguments of mpirun, in one string.
        network_interface: Deprecated: names of interfaces, separated by commas.
        network_interfaces: A list of the network interfaces to use.
        executable: The Python interpreter of the processes; None for that of this one.
        np: Deprecated name of num_proc.
        min_np: Deprecated name of min_num_proc.
        max_np: Deprecated name of max_num_proc.

    Returns:
        A list of what the ranks have returned, by rank: num_proc of them, or min_num_proc in an elastic job.

    Raises:
        RuntimeError: The job failed; the text names the first rank that did, and its cause is the exception that was raised there.
            Or there is no hvdrun, or a rank ended without returning.
        ValueError: The arguments exclude each other, or something cannot be pickled.
    """
    if hosts is not None and hostfile is not None:
        raise ValueError('Argument hosts and hostfile only allow one provided.')
    if use_gloo and use_mpi:
        raise ValueError('Argument use_gloo and use_mpi only allow one set True.')
    settings = _HorovodArgs()
    settings.num_proc = _new_name('num_proc', num_proc, 'np', np)
    settings.min_num_proc = _new_name('min_num_proc', min_num_proc, 'min_np', min_np)
    settings.max_num_proc = _new_name('max_num_proc', max_num_proc, 'max_np', max_np)
    interfaces = _new_name('network_interfaces', network_interfaces, 'network_interface', network_interface)
    settings.nics = set(interfaces.split(',') if isinstance(interfaces, str) else interfaces) if interfaces else None
    settings.slots, settings.reset_limit, settings.cooldown_range = slots, reset_limit, cooldown_range
    settings.hosts, settings.hostfile, settings.host_discovery_script = hosts, hostfile, host_discovery_script
    settings.start_timeout, settings.ssh_port, settings.ssh_identity_file = start_timeout, ssh_port, ssh_identity_file
    settings.disable_cache, settings.output_filename, settings.verbose = disable_cache, output_filename, verbose
    settings.use_gloo, settings.use_mpi, settings.mpi_args = use_gloo, use_mpi, mpi_args
    settings.executable = executable
    settings.run_func = func

    from horovod.runner import launch
    return launch._run_function(settings, func, tuple(args), dict(kwargs or {}))
