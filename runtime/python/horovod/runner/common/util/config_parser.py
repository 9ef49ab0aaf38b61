"""From a configuration file to the arguments, and from the arguments to the variables of the workers.

The rules are those of horovodrun; hvdrun itself reads its configuration by its own table of settings.
"""

LOG_LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'FATAL']

# attribute of the arguments -> (variable of the workers, section and key of the file)
_NUMBERS = {
    'fusion_threshold_mb': ('HOROVOD_FUSION_THRESHOLD', 'params', 'fusion_threshold_mb'),
    'cycle_time_ms': ('HOROVOD_CYCLE_TIME', 'params', 'cycle_time_ms'),
    'cache_capacity': ('HOROVOD_CACHE_CAPACITY', 'params', 'cache_capacity'),
    'stall_check_warning_time_seconds': ('HOROVOD_STALL_CHECK_TIME_SECONDS', 'stall_check', 'warning_time_seconds'),
    'stall_check_shutdown_time_seconds': ('HOROVOD_STALL_SHUTDOWN_TIME_SECONDS', 'stall_check',
                                          'shutdown_time_seconds'),
    'num_nccl_streams': ('HOROVOD_NUM_NCCL_STREAMS', 'library_options', 'num_nccl_streams'),
    'thread_affinity': ('HOROVOD_THREAD_AFFINITY', 'library_options', 'thread_affinity'),
    'gloo_timeout_seconds': ('HOROVOD_GLOO_TIMEOUT_SECONDS', 'library_options', 'gloo_timeout_seconds'),
}
_SWITCHES = {
    'hierarchical_allreduce': ('HOROVOD_HIERARCHICAL_ALLREDUCE', 'params', 'hierarchical_allreduce'),
    'hierarchical_allgather': ('HOROVOD_HIERARCHICAL_ALLGATHER', 'params', 'hierarchical_allgather'),
    'torus_allreduce': ('HOROVOD_TORUS_ALLREDUCE', 'params', 'torus_allreduce'),
    'mpi_threads_disable': ('HOROVOD_MPI_THREADS_DISABLE', 'library_options', 'mpi_threads_disable'),
    'no_stall_check': ('HOROVOD_STALL_CHECK_DISABLE', None, None),
}
# ... whose variables are set only if autotune is on
_AUTOTUNE = {
    'autotune_log_file': ('HOROVOD_AUTOTUNE_LOG', 'autotune', 'log_file'),
    'autotune_warmup_samples': ('HOROVOD_AUTOTUNE_WARMUP_SAMPLES', 'autotune', 'warmup_samples'),
    'autotune_steps_per_sample': ('HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE', 'autotune', 'steps_per_sample'),
    'autotune_bayes_opt_max_samples': ('HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES', 'autotune', 'bayes_opt_max_samples'),
    'autotune_gaussian_process_noise': ('HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE', 'autotune',
                                        'gaussian_process_noise'),
}
_TEXTS = {
    'timeline_filename': ('HOROVOD_TIMELINE', 'timeline', 'filename'),
    'log_level': ('HOROVOD_LOG_LEVEL', 'logging', 'level'),
}
_NOT_NEGATIVE = tuple(_NUMBERS) + ('autotune_warmup_samples', 'autotune_steps_per_sample',
                                   'autotune_bayes_opt_max_samples')


def _get(args, attribute):
    return getattr(args, attribute, None)


def set_args_from_config(args, config, override_args):
    """Sets the attributes that the configuration file names and the command line does not.

    Args:
        args: An object with the attributes of horovod.runner._HorovodArgs.
        config: The content of the YAML file, a dict.
        override_args: Names of the attributes that the command line has set.

    Raises:
        ValueError: The file names an unknown controller.
    """

    def take(attribute, value):
        if value is not None and attribute not in override_args:
            setattr(args, attribute, value)

    def section(name):
        return config.get(name) or {}

    controller = config.get('controller')
    if controller is not None and not _get(args, 'use_gloo') and not _get(args, 'use_mpi'):
        if controller not in ('gloo', 'mpi'):
            raise ValueError('No such controller supported: {}'.format(controller))
        setattr(args, 'use_' + controller, True)
    for table in (_NUMBERS, _SWITCHES, _AUTOTUNE, _TEXTS):
        for attribute, (_, name, key) in table.items():
            if name is not None:
                take(attribute, section(name).get(key))
    if 'autotune' in config:
        take('autotune', bool(section('autotune').get('enabled', False)))
    take('timeline_mark_cycles', section('timeline').get('mark_cycles'))
    take('log_with_timestamp', section('logging').get('with_timestamp'))
    if 'stall_check' in config:
        take('no_stall_check', not section('stall_check').get('enabled', True))


def validate_config_args(args):
    """Checks the numbers.

    Args:
        args: An object with the attributes of horovod.runner._HorovodArgs.

    Raises:
        ValueError: A number is out of its range.
    """
    for attribute in _NOT_NEGATIVE:
        value = _get(args, attribute)
        if value is not None and value < 0:
            raise ValueError('{}={} must be >= 0'.format(attribute, value))
    noise = _get(args, 'autotune_gaussian_process_noise')
    if noise is not None and not 0 <= noise <= 1:
        raise ValueError('{}={} must be in [0, 1]'.format('autotune_gaussian_process_noise', noise))


def set_env_from_args(env, args):
    """Writes the arguments into the environment of the workers.

    Args:
        env: The variables, a dict; it is changed.
        args: An object with the attributes of horovod.runner._HorovodArgs.

    Returns: env.
    """

    def put(variable, value):
        if value is not None:
            env[variable] = str(int(value)) if isinstance(value, bool) else str(value)

    megabytes = _get(args, 'fusion_threshold_mb')
    for attribute, (variable, _, _) in _NUMBERS.items():
        put(variable, _get(args, attribute))
    if megabytes is not None:
        put('HOROVOD_FUSION_THRESHOLD', megabytes * 1024 * 1024)
    if _get(args, 'cycle_time_ms') is not None:
        put('HOROVOD_CYCLE_TIME', float(args.cycle_time_ms))
    for table in (_SWITCHES, _TEXTS):
        for attribute, (variable, _, _) in table.items():
            put(variable, _get(args, attribute))
    if _get(args, 'autotune'):
        put('HOROVOD_AUTOTUNE', True)
        for attribute, (variable, _, _) in _AUTOTUNE.items():
            put(variable, _get(args, attribute))
    if _get(args, 'timeline_filename'):
        put('HOROVOD_TIMELINE_MARK_CYCLES', _get(args, 'timeline_mark_cycles'))
    if _get(args, 'log_with_timestamp') is not None:
        put('HOROVOD_LOG_HIDE_TIME', not args.log_with_timestamp)
    return env
