"""jax.distributed.initialize() without arguments under hvdrun: JAX asks this class for the world, which is that of hvd.init()."""

import os

try:
    from jax._src.clusters import ClusterEnv
except ImportError:  # an older JAX, or a newer one, which needs its arguments
    ClusterEnv = None


def _coordinator(port):
    """Where rank 0 can be reached: 'host:port', the same on all ranks."""
    from horovod.common import basics, objects
    from horovod.common.process_sets import global_process_set
    world = basics.shared()
    world.init()
    address = None
    if world.rank() == 0:
        import socket
        host = '127.0.0.1'
        if world.local_size() != world.size():
            host = os.environ.get('MASTER_ADDR') or socket.getfqdn()
        if port is None:
            with socket.socket() as free:
                free.bind(('', 0))
                port = free.getsockname()[1]
        address = '{}:{}'.format('[{}]'.format(host) if ':' in host else host, port)
    return objects.broadcast_object(address, 0, 'jax.coordinator', global_process_set)


if ClusterEnv is not None:
    class HvdrunCluster(ClusterEnv):
        """The world of hvdrun, or of whatever launched the ranks."""

        name = 'hvdrun'

        @classmethod
        def is_env_present(cls):
            """Whether hvdrun started this process, or it is in a world already."""
            from horovod.common import basics
            return 'HVD_AGENT' in os.environ or basics.shared().is_initialized()

        @classmethod
        def get_coordinator_address(cls, timeout_secs=None, override_coordinator_port=None):
            """'host:port' of rank 0."""
            return _coordinator(override_coordinator_port)

        @classmethod
        def get_process_count(cls):
            """The number of ranks."""
            from horovod.common import basics
            return basics.shared().size()

        @classmethod
        def get_process_id(cls):
            """The rank of this process."""
            from horovod.common import basics
            return basics.shared().rank()

        @classmethod
        def get_local_process_id(cls):
            """The rank of this process on its host."""
            from horovod.common import basics
            return basics.shared().local_rank()

    # Before those of Open MPI and Slurm, which may have started hvdrun itself.
    ClusterEnv._cluster_types.remove(HvdrunCluster)
    ClusterEnv._cluster_types.insert(0, HvdrunCluster)
