"""The launcher as Horovod's scripts and suites import it: thin, over hvdrun and this package. A name that is not here is
not available yet, and importing it is an ImportError that names it."""

from horovod import run  # noqa: F401 (part of the interface)


class _HorovodArgs(object):
    """The settings of horovodrun's command line, as attributes: None where it says nothing."""

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
